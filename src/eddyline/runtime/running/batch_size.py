"""The number of rows in a micro-batch.

A number that the user sets stays. With `batch_rows=auto` a batch should take about a goal of seconds:

- Where rows are waited for, `batch_seconds`: a batch is how late results are.
- Where a job *catches up*, several times as long: nobody waits for a batch then, and each has a fixed cost. A job over
  what is there (without `--follow` and `trigger`) catches up from its first row to its last. A job that follows catches
  up while the rows that wait would take longer than _BEHIND times `batch_seconds`.

The first batch is small, so the first results come early; then sizes grow by a large factor. The time of a batch is a
fixed cost plus a cost for each row. A line fitted to the times of past batches, in which newer batches weigh more,
gives the fixed cost; the rest of the newest batch's time is the cost of its rows. The next size is the one that would
reach the goal, approached in damped and bounded steps. Where the fixed cost is above half of the goal, smaller batches
would hardly be faster: then the rows get as much time as the fixed cost. As long as all batches had about the same
size, the fixed cost is not known; while the job catches up, one batch is then at least twice as large as the one
before it.

A batch fits in memory: its rows have at most the bytes that the driver allows, and with `memory` at most a share of it.
While it is processed, the state is larger by its rows.

Some batches tell little about the size. A batch that was not full, because there was no more to read, changes the
estimate but not the size. A batch that took more than twice the goal counts only if the batch before it did too: a
single one may have compiled a kernel.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from eddyline.settings import Settings

_LEAST = 256
_BEHIND = 3.0
_UNKNOWN = 0.5
"""The share of a batch's time that is taken for its fixed cost while that is not known and there is time."""
_LAST = 1.25
"""A batch takes all rows that are left if they are less than this many times its rows."""
_KEPT = 0.8
"""The weight of a batch is multiplied by this factor at each later batch."""
_DAMPING = 0.7
_FAR = 2.0
"""The share of a step, on a logarithmic scale, that one batch may take; a larger step than _FAR is not damped."""
_SPREAD = 0.25
"""The spread of sizes, as a share of their mean, that is needed to tell the fixed cost from the cost of rows."""
_OTHER, _ENOUGH = 1.5, 3.0
"""If a batch takes more than _OTHER times the expected time, or less than 1 / _OTHER of it, costs have changed: older
batches are forgotten. About _ENOUGH batches are needed to expect anything."""


@dataclass(frozen=True)
class SizeLimits:
    """What is known of batches before the first one. The defaults are those of a job in one process, where a batch of
    65,536 rows has a fixed cost of some percent, and one of a million rows of some tenths of a percent."""

    first: int = 1 << 16
    """The rows of the first batch, and of a batch that may have any number of bytes."""
    live: int = 1 << 16
    """The most rows while rows are waited for."""
    most: int = 1 << 20
    """The most rows while the job catches up."""
    nbytes: int = 1 << 25
    """The most bytes of the rows of a batch."""
    patience: float = 2.0
    """The seconds of a batch while the job catches up, as a multiple of `batch_seconds`."""
    step: float = 4.0
    """The largest factor by which the size changes after one batch."""


IN_PROCESS = SizeLimits()


class BatchSize:
    """The number of rows of the next batch."""

    def __init__(self, settings: Settings, follow: bool = False, limits: SizeLimits = IN_PROCESS) -> None:
        self._auto, self._seconds, self._trigger = settings.batch_rows is None, settings.batch_seconds, settings.trigger
        self._limits = limits
        self._over_what_is_there = self._behind = not follow and settings.trigger is None
        self.busy = 0.0
        """The time of the last batch, divided by the time that it should take; 0: unknown."""
        self._wanted = settings.batch_rows or limits.first
        """The rows that time alone asks for."""
        self._light = self._fits = sys.maxsize
        """The rows that the limit of bytes allows, and those that fit in `memory`."""
        self._left = sys.maxsize
        """The rows that were left when the last batch began, if no others come."""
        self._slow = self._tried = False
        self._fixed: float | None = None
        """The fixed cost of a batch; None: not known, because all sizes were about the same."""
        self._least = float("inf")
        self._count = self._weight = self._x = self._y = self._xx = self._xy = 0.0

    @property
    def rows(self) -> int:
        """The rows of the next batch."""
        if not self._auto:
            return self._wanted
        rows = min(self._wanted, self._most, self._light)
        return min(self._left if rows < self._left < _LAST * rows else rows, self._fits)

    @property
    def _most(self) -> int:
        return self._limits.most if self._behind else self._limits.live

    @property
    def _goal(self) -> float:
        """The seconds that a batch should take."""
        return self._seconds * self._limits.patience if self._behind else self._seconds

    def observe(self, seconds: float, rows: int, backlog: int = 0, nbytes: int = 0) -> None:
        """Take into account that a batch of `rows` rows, which had so many bytes, took `seconds`; `backlog` more rows
        were waiting when it began."""
        allowed = self._trigger or (self._goal if self._auto else None)
        self.busy = 0.0 if allowed is None else seconds / allowed
        alone, self._slow = not self._slow, seconds > 2 * self._goal
        if not self._auto or rows == 0:
            return
        full, before = rows >= self.rows / 2, self.rows
        self._left = backlog if self._over_what_is_there and backlog else sys.maxsize
        limited = before < min(self._wanted, self._most)
        if nbytes:
            self._light = max(self._limits.first, self._limits.nbytes * rows // nbytes)
        self._behind = self._over_what_is_there or backlog * seconds > _BEHIND * self._seconds * rows
        if self._slow and alone:
            return
        self._learn(seconds, rows)
        if full:
            guess = _UNKNOWN * seconds if seconds < self._goal and not self._tried else 0.0
            fixed = guess if self._fixed is None else min(self._fixed, 0.9 * seconds)
            ratio = rows * (max(self._goal, 2 * fixed) - fixed) / max(seconds - fixed, 1e-9) / before
            if self._fixed is None and self._behind and seconds < self._goal and not self._tried:
                ratio, self._tried = max(ratio, _FAR), True  # another size tells the fixed cost
            step = min(max(ratio if ratio > _FAR else ratio**_DAMPING, 1 / self._limits.step), self._limits.step)
            if step < 1 or not limited:  # else memory alone keeps batches small
                self._wanted = min(max(round(before * step), min(_LEAST, self._most)), self._most)

    def fit(self, most: int | None) -> None:
        """Take into account that a batch with more rows would not fit in memory; None: any number does."""
        if most is not None:
            self._fits = max(_LEAST, most)

    def _learn(self, seconds: float, rows: int) -> None:
        if self._count > _ENOUGH:
            fixed = self._fixed or 0.0
            expected = fixed + max(self._y - fixed, 0.0) / self._x * rows
            if not expected / _OTHER < seconds < expected * _OTHER:  # the cost of a row has changed
                self._count, self._weight, self._least = 0.0, 0.0, float("inf")
        self._least = min(seconds, self._least / _KEPT)
        self._count = _KEPT * self._count + 1
        weight = 1 / max(seconds, 1e-9) ** 2  # times differ by a share of themselves
        self._weight = _KEPT * self._weight + weight
        share = weight / self._weight
        self._x += share * (rows - self._x)
        self._y += share * (seconds - self._y)
        self._xx += share * (rows * rows - self._xx)
        self._xy += share * (rows * seconds - self._xy)
        variance = self._xx - self._x**2
        if variance > (_SPREAD * self._x) ** 2:
            each = (self._xy - self._x * self._y) / variance
            self._fixed = min(max(self._y - self._x * each, 0.0), self._least)
