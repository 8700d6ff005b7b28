"""How many rows a micro-batch has.

A number that was set stays. With `auto` batches are to take about `batch_seconds`. A batch costs something however
small it is, and something for every row. The fixed cost is estimated by a line through what batches took, newer ones
counting more; what is left of the newest batch is the cost of its rows. The next size is the one that would come to the
goal, approached in damped and bounded steps. Where the fixed cost is above half of the goal, smaller batches would only
do less: then rows get as much time as the fixed cost.

Some batches say nothing about size: one that was not full (there was no more to read) changes the estimate, not the
size; one that took more than twice the goal counts if it is not the only one (it may have compiled a kernel).
"""

from __future__ import annotations

from eddyline.settings import Settings

_ROWS = 65536
"""The rows of the first batch, and of the largest, where the driver does not say otherwise."""
_LEAST = 256
_KEPT = 0.8
"""What a batch still weighs after the next one."""
_DAMPING = 0.7
"""The share of a step, on a logarithmic scale, that is taken at once."""
_STEP = 2.0
"""The largest step."""
_SPREAD = 0.25
"""How far sizes must differ, as a share of their mean, to tell the fixed cost from that of rows."""
_OTHER, _ENOUGH = 1.5, 3.0
"""A batch that takes so many times as long as was expected, or so many times less, is of another time: what was before
is forgotten. To expect something takes a few batches."""


class BatchSize:
    """The rows of the next batch: `first` to begin with, and never more than `most`."""

    def __init__(self, settings: Settings, first: int = _ROWS, most: int = _ROWS) -> None:
        self._auto, self._goal = settings.batch_rows is None, settings.batch_seconds
        self.rows = settings.batch_rows or first
        self._most = most
        self._slow = False
        self._fixed, self._least = 0.0, float("inf")
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    def observe(self, seconds: float, rows: int) -> None:
        """A batch of `rows` rows took `seconds`."""
        alone, self._slow = not self._slow, seconds > 2 * self._goal
        if not self._auto or rows == 0 or (self._slow and alone):
            return
        self._learn(seconds, rows)
        if rows >= self.rows / 2:
            fixed = min(self._fixed, 0.9 * seconds)
            wanted = rows * (max(self._goal, 2 * fixed) - fixed) / max(seconds - fixed, 1e-9)
            step = min(max((wanted / self.rows) ** _DAMPING, 1 / _STEP), _STEP)
            self.rows = min(max(round(self.rows * step), min(_LEAST, self._most)), self._most)

    def _learn(self, seconds: float, rows: int) -> None:
        if self._weight > _ENOUGH:
            expected = self._fixed + max(self._y - self._fixed, 0.0) / self._x * rows
            if not expected / _OTHER < seconds < expected * _OTHER:  # rows have become dearer or cheaper
                self._weight, self._least = 0.0, float("inf")
        self._least = min(seconds, self._least / _KEPT)
        self._weight = _KEPT * self._weight + 1
        share = 1 / self._weight
        self._x += share * (rows - self._x)
        self._y += share * (seconds - self._y)
        self._xx += share * (rows * rows - self._xx)
        self._xy += share * (rows * seconds - self._xy)
        variance = self._xx - self._x**2
        if variance > (_SPREAD * self._x) ** 2:
            each = (self._xy - self._x * self._y) / variance
            self._fixed = min(max(self._y - self._x * each, 0.0), self._least)
