"""The time of row number i: the inverse of the number of rows up to a time, exact for rates that change linearly.

In a segment with rates r0 and r1 at its ends and slope k, the rows after x seconds are n = r0 x + k x^2 / 2, hence
x = 2 n / (r0 + sqrt(r0^2 + 2 k n)), which is n / r0 for k = 0 without a special case.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eddyline.runtime.sources.generate.drift import DriftSegment


class Pace:
    """Times of rows, in microseconds from the start."""

    def __init__(self, segments: Sequence[DriftSegment]) -> None:
        self._starts = np.array([s.start for s in segments], dtype=np.float64) / 1e6
        lengths = np.array([(s.end or s.start) - s.start for s in segments], dtype=np.float64) / 1e6
        self._rates = np.array([s.first["rate"] for s in segments], dtype=np.float64)
        last = np.array([s.last["rate"] for s in segments], dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            self._slopes = np.where(lengths > 0, (last - self._rates) / lengths, 0.0)
        made = (self._rates + last) / 2 * lengths
        self._before = np.concatenate([[0.0], np.cumsum(made)[:-1]])
        self.ends = bool(self._rates[-1] == 0)

    def rows_until(self, time: float) -> int:
        """The number of rows before a time (microseconds); of all rows, if the rate becomes 0 before that time."""
        seconds = min(time / 1e6, self._starts[-1]) if self.ends else time / 1e6
        at = int(np.searchsorted(self._starts, seconds, "right")) - 1
        x = seconds - self._starts[at]
        return int(np.ceil(self._before[at] + self._rates[at] * x + self._slopes[at] * x * x / 2 - 1e-9))

    def times(self, first: int, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The times of rows first .. first + rows - 1, ascending, and the numbers of their segments."""
        number = np.arange(first, first + rows, dtype=np.float64)
        at = np.searchsorted(self._before, number, "right") - 1
        n, r0 = number - self._before[at], self._rates[at]
        below = r0 + np.sqrt(np.maximum(r0 * r0 + 2 * self._slopes[at] * n, 0))
        x = np.divide(2 * n, below, out=np.zeros(rows), where=below > 0)
        return np.rint((self._starts[at] + x) * 1e6).astype(np.int64), at.astype(np.int64)
