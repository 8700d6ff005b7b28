"""A hash index over one key column of a SteM.

Invariant: every row first..rows-1 of the SteM, where first is at most the last committed `min_live`, is in the chain of
its key. Growing rebuilds the table without the keys whose rows had all expired *by the last commit*, so a wind-back to
that commit finds every chain that it needs. A rebuild leaves half of the slots free, so the next one is due only after
half as many new keys as there were live ones. So there are never more dead keys than that, and the cost per row does
not depend on how many rows have expired.
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
"""A table that is fuller than this is rebuilt, with two slots for each live key."""

ROOMIEST = 1.2
"""A rebuild keeps a table that has at most this many times the slots that it needs."""

_ANY_TIME = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])


class HashIndexSnapshot(Snapshot, frozen=True):
    """The place of a table and its chains. Without slots nothing was built."""

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
        """A table with one slot until the first build, which replaces it: a region must not be written before it is
        known to be new."""
        self._used = 0

    def _use(self, regions: tuple[int, int], slots: int) -> None:
        """Use the table in the first of these regions from now on."""
        window, self._mapping = self._arena.map(regions[0], 0, 16 * slots)
        self._regions, self._table = regions, window.view(np.int64).reshape(-1, 2)

    def build(self, first: int, last: int, floor: int) -> None:
        """Insert rows first..last-1. Rows below `floor` can never be probed again."""
        if self._used + last - first > FULLEST * len(self._table):
            self._rebuild(last - first, floor)
        self._insert(first, last)

    def _insert(self, first: int, last: int) -> None:
        """Insert rows for whose keys there is room."""
        self._after.reserve(last)
        self._after.rows = last
        self._used += int(kernels.build(self._table, self._after.values, self._keys.values, first, last))

    def renew(self, old: int, numbers: RowNumbers, last: int) -> None:
        """Hold the rows from number `old` on under other numbers, the next ones up to last-1: `numbers` has that of
        each row, or -1 if it is gone. Chains stay, without the rows that are gone, so nothing is inserted."""
        first, heads = old + numbers.size, np.empty_like(numbers)
        before = self._after.make_room(last - first)
        kernels.thin(before, self._after.values, old, numbers, heads)
        self._after.trim()
        alive = int(kernels.renumber(self._table, old, heads))
        if len(self._table) > ROOMIEST * max(SMALLEST, 2 * alive):
            self._rebuild(0, first)

    def _rebuild(self, more: int, floor: int) -> None:
        """Make room for `more` keys, in place if the table has about the right size: that avoids touching new pages."""
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

    def lacking(self, keys: RowNumbers, rows: RowNumbers, min_live: int) -> RowNumbers:
        """The numbers of the tuples whose key, keys[rows[i]], has no row at or above `min_live`."""
        found = np.empty(rows.size + 1, np.int64)
        return found[: int(kernels.lacking(self._table, keys, rows, min_live, found))]

    def pop(self, first: int) -> None:
        """Undo the build of the rows from number `first` on, even if a build failed half way."""
        kernels.pop(self._table, self._after.values, self._keys.values, first, self._after.rows)
        self._after.truncate(first)

    def release(self, row: int) -> None:
        """Release the rows below `row`: they will not be probed again."""
        self._after.release(row)

    def free(self) -> None:
        """Release everything; the index cannot be used any more."""
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
        """Restore from a snapshot."""
        self._after.restore(saved.after)
        self._used, self._regions = saved.used, saved.regions
        if saved.slots:
            self._use(self._regions, saved.slots)

    @property
    def nbytes(self) -> int:
        """Bytes held by the table and the chains."""
        return self._table.nbytes + self._after.nbytes


def _pages(size: int) -> int:
    """The size rounded up to whole pages: a table does not share its last page."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
