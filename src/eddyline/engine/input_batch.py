"""The size of the input batch: how many rows are taken in at a time. It is the back pressure of the input.

A slice of n rows has a fixed cost F for its builds and packets. And each of its n rows passes over rows that were built
with it and are too new to match; their number grows with n, so that costs w * n per row. A row thus has an extra cost
of F / n + w * n, which is least for n = sqrt(F / w). Both costs are computed from counts, not measured by a clock, so
noise does not matter. Their means fade, and the size changes by a limited factor at a time (tuning.py).
"""

from __future__ import annotations

import math

from eddyline.codec import Snapshot
from eddyline.engine.tuning import ENGINE, EngineTuning
from eddyline.state.part import Part


class InputBatchSnapshot(Snapshot, frozen=True):
    """The size of the next slice, and the means that determine it."""

    rows: int
    fixed: float
    waste: float


class InputBatch(Part):
    """The size of the next slice, `rows`; constant if `fixed` is given."""

    name, snapshot = "slices", InputBatchSnapshot

    def __init__(self, fixed: int | None = None, tuning: EngineTuning = ENGINE) -> None:
        self.rows = fixed or tuning.first_input
        self._adaptive, self._tuning = fixed is None, tuning
        self._fixed = self._waste = 0.0

    def observe(self, rows: int, fixed: float, passed: int) -> None:
        """Take into account that the calls of a slice of `rows` rows had a fixed cost of `fixed` seconds in all, and
        passed over `passed` rows that were too new."""
        if not self._adaptive:
            return
        tuning = self._tuning
        waste = passed * tuning.pass_seconds / rows**2
        old = tuning.input_fade if self._fixed else 0.0
        self._fixed = old * self._fixed + (1.0 - old) * fixed
        self._waste = old * self._waste + (1.0 - old) * waste
        best = math.sqrt(self._fixed / self._waste) if self._waste else tuning.most_input
        size = min(rows, self.rows) if best < rows else self.rows
        step, least, most = tuning.input_step, tuning.least_input, tuning.most_input
        self.rows = int(min(max(best, size / step, least), size * step, most))

    def saved(self) -> InputBatchSnapshot:
        """A snapshot for another process."""
        return InputBatchSnapshot(self.rows, self._fixed, self._waste)

    def restore(self, saved: InputBatchSnapshot) -> None:
        """Restore the size of a snapshot, unless the settings fix it."""
        if self._adaptive:
            self.rows, self._fixed, self._waste = saved.rows, saved.fixed, saved.waste
