"""Builds: how many rows of a SteM are built, and in which order among all builds of the slot.

`number` is the count of tuples that the slot had built when a packet was built. `before(numbers)` returns how many rows
existed here at that moment: the TimeStamp rule as a bound on row numbers (docs/design/numbers.md). No packet outlives a
commit, so only the builds since the last commit are remembered, and they are not part of a snapshot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.state.column import RowNumbers

_ROOM = 64
"""The initial capacity; it doubles when it is full."""


class BuildsSnapshot(Snapshot, frozen=True):
    """The first row that is not built: at present, and at the last commit."""

    rows: int
    mark: int


class Builds:
    """The builds of rows from `first` on, one slice after the other."""

    def __init__(self, first: int = 0) -> None:
        self.rows = self.mark = first
        """The first row that is not built: at present, and at the last commit."""
        self._count = 0
        self._numbers = np.empty(_ROOM, np.int64)
        self._firsts = np.empty(_ROOM + 1, np.int64)
        """Element i is the first row of build i; one more element is the first row of the next build."""

    def add(self, number: int, rows: int) -> tuple[int, int]:
        """Record the build of the next `rows` rows; returns their numbers first..last-1."""
        at, first, last = self._count, self.rows, self.rows + rows
        if at == self._numbers.size:
            self._numbers, self._firsts = np.resize(self._numbers, 2 * at), np.resize(self._firsts, 2 * at + 1)
        self._numbers[at], self._firsts[at], self._firsts[at + 1] = number, first, last
        self._count, self.rows = at + 1, last
        return first, last

    def before(self, numbers: NDArray[np.int64]) -> RowNumbers:
        """How many rows were built when the slot had built this many tuples. All numbers are from after the last
        commit."""
        if not self._count:
            return np.full(numbers.size, self.rows)
        rows: RowNumbers = self._firsts[self._numbers[: self._count].searchsorted(numbers)]
        return rows

    def commit(self) -> None:
        """Forget the builds: no packet of them is left."""
        self.mark, self._count = self.rows, 0

    def wind_back(self) -> None:
        """Undo the builds since the last commit."""
        self.rows, self._count = self.mark, 0

    def skip(self, floor: int) -> None:
        """At a commit, count the rows below `floor` as built: no probe can read them any more."""
        self.rows, self.mark = max(self.rows, floor), max(self.mark, floor)

    def saved(self) -> BuildsSnapshot:
        """A snapshot for another process, at the end of a batch."""
        return BuildsSnapshot(self.rows, self.mark)

    def restore(self, saved: BuildsSnapshot) -> None:
        """Restore from a snapshot."""
        self.rows, self.mark, self._count = saved.rows, saved.mark, 0


class Unordered:
    """The builds of another owner, all of which count for every number."""

    def __init__(self, builds: Builds) -> None:
        self._builds = builds

    @property
    def rows(self) -> int:
        """The first row that is not built."""
        return self._builds.rows

    def before(self, numbers: NDArray[np.int64]) -> RowNumbers:
        """All built rows, for every number."""
        return np.full(numbers.size, self.rows)
