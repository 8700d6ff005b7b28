"""The number of rows in a micro-batch.

A number that the user sets stays. With `batch_rows=auto` a batch should take about `batch_seconds`. The time of a batch
is a fixed cost plus a cost for each row. A line fitted to the times of past batches, in which newer batches weigh more,
gives the fixed cost; the rest of the newest batch's time is the cost of its rows. The next size is the one that would
reach the goal, approached in damped and bounded steps. Where the fixed cost is above half of the goal, smaller batches
would hardly be faster: then the rows get as much time as the fixed cost.

Some batches tell little about the size. A batch that was not full, because there was no more to read, changes the
estimate but not the size. A batch that took more than twice the goal counts only if the batch before it did too: a
single one may have compiled a kernel.
"""

from __future__ import annotations

from eddyline.settings import Settings

_ROWS = 65536
"""The rows of the first batch, and the most rows of any batch, unless the driver passes other numbers."""
_LEAST = 256
_KEPT = 0.8
"""The weight of a batch is multiplied by this factor at each later batch."""
_DAMPING = 0.7
"""The share of a step, on a logarithmic scale, that one batch may take."""
_STEP = 2.0
"""The largest factor by which the size changes after one batch."""
_SPREAD = 0.25
"""The spread of sizes, as a share of their mean, that is needed to tell the fixed cost from the cost of rows."""
_OTHER, _ENOUGH = 1.5, 3.0
"""If a batch takes more than _OTHER times the expected time, or less than 1 / _OTHER of it, costs have changed: older
batches are forgotten. Batches with a total weight of _ENOUGH are needed to expect anything."""


class BatchSize:
    """The number of rows of the next batch: `first` at the beginning, and never more than `most`."""

    def __init__(self, settings: Settings, first: int = _ROWS, most: int = _ROWS) -> None:
        self._auto, self._goal = settings.batch_rows is None, settings.batch_seconds
        self._allowed = settings.trigger or (self._goal if self._auto else None)
        """The seconds that a batch should take; None: any number, because the user has chosen its rows."""
        self.busy = 0.0
        """The time of the last batch, divided by that; 0: unknown."""
        self._wanted = settings.batch_rows or first
        """The rows that time alone asks for."""
        self._largest = most
        self._fits: int | None = None
        """The rows that fit in memory; None: any number."""
        self._slow = False
        self._fixed, self._least = 0.0, float("inf")
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    @property
    def rows(self) -> int:
        """The rows of the next batch."""
        return self._wanted if self._fits is None else min(self._wanted, self._fits)

    def observe(self, seconds: float, rows: int) -> None:
        """Take into account that a batch of `rows` rows took `seconds`."""
        alone, self._slow = not self._slow, seconds > 2 * self._goal
        self.busy = 0.0 if self._allowed is None else seconds / self._allowed
        if not self._auto or rows == 0 or (self._slow and alone):
            return
        self._learn(seconds, rows)
        if rows >= self.rows / 2:
            fixed = min(self._fixed, 0.9 * seconds)
            wanted = rows * (max(self._goal, 2 * fixed) - fixed) / max(seconds - fixed, 1e-9)
            step = min(max((wanted / self.rows) ** _DAMPING, 1 / _STEP), _STEP)
            if step < 1 or self.rows == self._wanted:  # else memory alone keeps batches small
                self._wanted = min(max(round(self.rows * step), min(_LEAST, self._largest)), self._largest)

    def fit(self, most: int | None) -> None:
        """Take into account that a batch with more rows would not fit in memory; None: any number does."""
        if self._auto and most is not None:
            self._fits = max(_LEAST, most)

    def _learn(self, seconds: float, rows: int) -> None:
        if self._weight > _ENOUGH:
            expected = self._fixed + max(self._y - self._fixed, 0.0) / self._x * rows
            if not expected / _OTHER < seconds < expected * _OTHER:  # the cost of a row has changed
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
