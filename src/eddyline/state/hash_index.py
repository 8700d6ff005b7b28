"""A hash index over one key column of a SteM.

Invariant: every row first..rows-1 of the SteM, where first is at most the last committed `min_live`, is in the chain
of its key. Growing rebuilds the table without the keys whose rows have all expired *by the last commit*, so winding
back to that commit finds every chain it needs. A rebuild leaves half of the slots free, so the next one comes only
after half as many new keys as there were live ones: dead keys are never more than that, and the cost per row does not
depend on how many rows have expired.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator

import numpy as np

from eddyline.codec import Snapshot
from eddyline.kernels import hash_index as kernels
from eddyline.state.arena import Arena, punch
from eddyline.state.column import Column, ColumnSnapshot, RowNumbers
from eddyline.state.probing import Limits, Matches, chunks

SMALLEST = 256
"""Slots of the smallest table."""

FULLEST = 0.75
"""A table fuller than this is rebuilt, with two slots for each key that is alive."""

ROOMIEST = 1.2
"""A table is kept if it has at most this many times the slots that it should have."""

_ANY_TIME = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])


class HashIndexSnapshot(Snapshot, frozen=True):
    """Where a table and its chains are; without slots nothing was built."""

    after: ColumnSnapshot
    regions: tuple[int, int]
    slots: int
    used: int


class HashIndex:
    """key -> newest row -> previous row of that key -> ..."""

    def __init__(self, arena: Arena, keys: Column) -> None:
        self._arena, self._keys, self._together = arena, keys, arena.tuning.together
        self._after = Column(arena, "i8")
        self._regions = arena.region(), arena.region()
        """The region of the current table, and the other one."""
        self._mapping: mmap.mmap | None = None
        self._table = np.full((1, 2), kernels.EMPTY)
        """A table with one slot until the first build, which finds it too small: a region is not written before it is
        known to be new."""
        self._used = 0

    def _use(self, regions: tuple[int, int], slots: int) -> None:
        """From now on the table is the one in the first of these regions."""
        window, self._mapping = self._arena.map(regions[0], 0, 16 * slots)
        self._regions, self._table = regions, window.view(np.int64).reshape(-1, 2)

    def build(self, first: int, last: int, floor: int) -> None:
        """Insert rows first..last-1; rows below `floor` can never be asked for again."""
        if self._used + last - first > FULLEST * len(self._table):
            self._rebuild(last - first, floor)
        self._after.reserve(last)
        self._after.rows = last
        self._used += int(kernels.build(self._table, self._after.values, self._keys.values, first, last))

    def _rebuild(self, more: int, floor: int) -> None:
        """Make room for `more` keys, in place if the table has about the right size: that spares touching new pages."""
        found, old, mapping = np.empty((self._used + 1, 2), np.int64), self._table, self._mapping
        alive = found[: int(kernels.living(old, floor, found))]
        slots = max(SMALLEST, 2 * (len(alive) + more))
        stays = slots <= len(old) <= ROOMIEST * slots
        if not stays:
            self._use(self._regions[::-1], slots)
            assert self._mapping is not None
            self._arena.reserve(self._regions[0], 0, 16 * slots, self._mapping, 0)
        kernels.fill(self._table, alive)
        self._used = len(alive)
        if mapping is not None and not stays:
            punch(mapping, 0, _pages(old.nbytes))

    def probe(self, keys: RowNumbers, rows: RowNumbers, times: RowNumbers, limits: Limits) -> Iterator[Matches]:
        """Matches for tuples with the keys keys[rows[i]]."""
        table, after, before, min_live = self._table, self._after.values, limits.before, limits.min_live
        low, high = (limits.low, limits.high) if limits.low.size else _ANY_TIME
        newest, block, passed = limits.newest, limits.block, limits.passed
        waiting = np.empty(2 * self._together, np.int64)

        def step(first: int, chains: int, out_tuple: RowNumbers, out_row: RowNumbers) -> tuple[int, int, int]:
            bounds = low, high, before, min_live, newest, block
            found: tuple[int, int, int] = kernels.probe(
                table, after, times, keys, rows, *bounds, passed, waiting, first, chains, out_tuple, out_row
            )
            return found

        return chunks(step, rows.size, 0, limits.room)

    def pop(self, first: int) -> None:
        """Undo the build of the rows from number `first` on: those that came so far, if a build failed half way."""
        kernels.pop(self._table, self._after.values, self._keys.values, first, self._after.rows)
        self._after.truncate(first)

    def release(self, row: int) -> None:
        """Rows below `row` will not be asked for again."""
        self._after.release(row)

    def free(self) -> None:
        """Give everything back; it cannot be used any more."""
        if self._mapping is not None:
            punch(self._mapping, 0, _pages(self._table.nbytes))
        for region in self._regions:
            self._arena.free(region)
        self._after.free()

    def saved(self) -> HashIndexSnapshot:
        """A snapshot for another process."""
        slots = 0 if self._mapping is None else len(self._table)
        return HashIndexSnapshot(self._after.saved(), self._regions, slots, self._used)

    def restore(self, saved: HashIndexSnapshot) -> None:
        """See the same table and chains."""
        self._after.restore(saved.after)
        self._used, self._regions = saved.used, saved.regions
        if saved.slots:
            self._use(self._regions, saved.slots)

    @property
    def nbytes(self) -> int:
        """Bytes held by the table and the chains."""
        return self._table.nbytes + self._after.nbytes


def _pages(size: int) -> int:
    """Whole pages: a table has the last one for itself."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
