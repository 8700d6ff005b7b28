"""The prober: the read access to a SteM. It finds matches, and it cannot build.

A probe limits the rows that may match (`Limits`): those built before the probing tuple, not expired, and within its
time interval. The prober chooses the index, or the list of all rows. Several probers may read the same rows: each has
its own order of builds and its own first row (view.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.expr import Expr
from eddyline.state.builds import Builds, Unordered
from eddyline.state.column import RowNumbers
from eddyline.state.hash_index import HashIndex
from eddyline.state.layout import Key
from eddyline.state.probing import Limits, Matches, scanned
from eddyline.state.rows import Rows
from eddyline.state.sorted_index import SortedIndex


class Prober:
    """Reads the rows of one SteM from `first` on."""

    def __init__(
        self,
        rows: Rows,
        hashed: Mapping[Key, HashIndex],
        ordered: Mapping[Expr, SortedIndex],
        builds: Builds | Unordered,
        first: int = 0,
    ) -> None:
        self.rows, self.first = rows, first
        self._hashed, self._ordered, self._builds = hashed, ordered, builds

    @property
    def built(self) -> int:
        """How many rows are built, including those that have expired."""
        return self._builds.rows

    @property
    def min_live(self) -> int:
        """The first row that a probe may find."""
        first, live = self.first, self.rows.min_live
        return live if live > first else first

    def rows_before(self, numbers: NDArray[np.int64]) -> RowNumbers:
        """How many rows were built when the slot had built this many tuples. All numbers are from after the last
        commit."""
        return self._builds.before(numbers)

    def first_at(self, time: int) -> int:
        """A row such that every row before it is older than `time` or has expired."""
        return self.rows.newest.first_at(time, self.min_live)

    def live(self, tuples: RowNumbers, probers: Sequence[Prober]) -> NDArray[np.bool_]:
        """Which of these tuples of a larger span have only components that the probers of the sources can still
        find."""
        keep = np.ones(tuples.size, np.bool_)
        for source, component in self.rows.components.items():
            keep &= component.values[tuples] >= probers[source].min_live
        return keep

    def limits(
        self, low: RowNumbers, high: RowNumbers, before: RowNumbers, room: int, passed: NDArray[np.int64]
    ) -> Limits:
        """The limits of a probe, completed by what is known about the times of rows."""
        if not (low.size and self.rows.timed):
            return Limits(low, high, before, self.min_live, room, passed)
        newest = self.rows.newest
        return Limits(low, high, before, self.first_at(int(low.min())), room, passed, newest.times, newest.block)

    def probe_key(self, on: Key, keys: NDArray[np.int64], rows: RowNumbers, limits: Limits) -> Iterator[Matches]:
        """The rows whose key `on` equals keys[rows[i]]. Codes are compared, so matches by a hash must be verified
        (`Rows.same_key`)."""
        return self._hashed[on].probe(keys, rows, self.rows.times.values, limits)

    def lacking(self, on: Key, keys: NDArray[np.int64], rows: RowNumbers) -> RowNumbers:
        """The numbers of the tuples for which no row has a key `on` that equals keys[rows[i]]. Codes are compared."""
        return self._hashed[on].lacking(keys, rows, self.min_live)

    def probe_range(
        self, on: Expr, least: NDArray[np.int64], most: NDArray[np.int64], limits: Limits
    ) -> Iterator[Matches]:
        """The rows whose order key lies between least[i] and most[i], both included."""
        return self._ordered[on].probe(least, most, self.rows.times.values, limits)

    def probe_all(self, tuples: int, limits: Limits) -> Iterator[Matches]:
        """Every row within the limits, for each tuple."""
        return scanned(self.rows.times.values, tuples, limits)
