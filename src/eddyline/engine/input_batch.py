"""How many rows are taken in at a time: the size of the input batch, which is the back pressure of the input.

A slice of n rows costs something fixed, F, for its builds and packets; and the larger it is the more rows do probes
pass over that were built with it and are too new to match: w * n for each of its n rows. A row thus costs F / n + w * n
beside what it costs anyway, and that is least for n = sqrt(F / w). Both are counted, not timed, so noise does not
matter; means of them fade, and the size moves by a factor of at most STEP at a time.
"""

from __future__ import annotations

import math

from eddyline.codec import Snapshot

LEAST, FIRST, MOST = 64, 8192, 262144
STEP = 4.0
FADE = 0.6
"""How much of the old means stays with each slice."""
CALL = 6e-5
"""Seconds that a build or a packet costs, whatever its size."""
PASS = 3e-9
"""Seconds to pass over a row."""


class InputBatchSnapshot(Snapshot, frozen=True):
    """The size of the next slice, and the means that it follows from."""

    rows: int
    fixed: float
    waste: float


class InputBatch:
    """The size of the next slice, `rows`; fixed if one is given."""

    def __init__(self, fixed: int | None = None) -> None:
        self.rows = fixed or FIRST
        self._adaptive = fixed is None
        self._fixed = self._waste = 0.0

    def observe(self, rows: int, calls: int, passed: int) -> None:
        """A slice of `rows` rows took `calls` calls, which passed over `passed` rows that were too new."""
        if not self._adaptive:
            return
        fixed, waste = calls * CALL, passed * PASS / rows**2
        old = FADE if self._fixed else 0.0
        self._fixed = old * self._fixed + (1.0 - old) * fixed
        self._waste = old * self._waste + (1.0 - old) * waste
        best = math.sqrt(self._fixed / self._waste) if self._waste else MOST
        size = min(rows, self.rows) if best < rows else self.rows
        self.rows = int(min(max(best, size / STEP, LEAST), size * STEP, MOST))

    def saved(self) -> InputBatchSnapshot:
        """A snapshot for another process."""
        return InputBatchSnapshot(self.rows, self._fixed, self._waste)

    def restore(self, saved: InputBatchSnapshot) -> None:
        """Restore the size of a snapshot, unless the settings give one."""
        if self._adaptive:
            self.rows, self._fixed, self._waste = saved.rows, saved.fixed, saved.waste
