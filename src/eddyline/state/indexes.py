"""Indexes over the rows of one SteM: row numbers by key (hash) and in the order of a key (sorted).

An index holds row numbers and no values, so it can always be rebuilt from the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from eddyline.bound.expr import Expr
from eddyline.codec import Snapshot
from eddyline.state.arena import Arena
from eddyline.state.column import RowNumbers
from eddyline.state.hash_index import HashIndex, HashIndexSnapshot
from eddyline.state.layout import Key
from eddyline.state.rows import Rows
from eddyline.state.sorted_index import SortedIndex, SortedIndexSnapshot


class IndexesSnapshot(Snapshot, frozen=True):
    """Indexes in the order of their keys."""

    hashed: tuple[HashIndexSnapshot, ...]
    ordered: tuple[SortedIndexSnapshot, ...]


class Indexes:
    """The indexes of one SteM or view, which are built and undone together."""

    def __init__(self, arena: Arena, rows: Rows, keys: Sequence[Key], order_keys: Sequence[Expr] = ()) -> None:
        self.hashed = {on: HashIndex(arena, rows.key_column(on)) for on in keys}
        self.ordered = {expr: SortedIndex(arena, rows.order_column(expr)) for expr in order_keys}
        self._all: list[HashIndex | SortedIndex] = [*self.hashed.values(), *self.ordered.values()]

    def named(self, keys: Mapping[Key, Key], order_keys: Mapping[Expr, Expr]) -> Indexes:
        """The same indexes under other names, for readers: `keys` has by name the one here. Only these indexes here are
        built, undone and released."""
        found = copy(self)
        found.hashed = {on: self.hashed[mine] for on, mine in keys.items()}
        found.ordered = {expr: self.ordered[mine] for expr, mine in order_keys.items()}
        found._all = []
        return found

    def build(self, first: int, last: int, floor: int) -> None:
        """Insert rows first..last-1. Rows below `floor` can never be probed again."""
        for index in self._all:
            index.build(first, last, floor)

    def renew(self, old: int, numbers: RowNumbers, last: int) -> None:
        """Hold the rows from number `old` on under other numbers, the next ones up to last-1: `numbers` has that of
        each row, or -1 if it is gone."""
        for index in self._all:
            index.renew(old, numbers, last)

    def pop(self, first: int) -> None:
        """Undo the build of the rows from number `first` on."""
        for index in self._all:
            index.pop(first)

    def release(self, row: int) -> None:
        """Release the rows below `row`: they will not be probed again."""
        for index in self._all:
            index.release(row)

    def adopt(self, keys: Sequence[Key], made: Mapping[Key, HashIndex]) -> None:
        """Change to the hash indexes of these keys, in this order: some are here, the others are in `made`. All others
        are freed. The dictionary object stays the same, because probers refer to it."""
        for on in self.hashed.keys() - set(keys):
            self.hashed.pop(on).free()
        wanted = {on: self.hashed[on] if on in self.hashed else made[on] for on in keys}
        self.hashed.clear()
        self.hashed.update(wanted)
        self._all = [*self.hashed.values(), *self.ordered.values()]

    def free(self) -> None:
        """Release everything; the indexes cannot be used any more."""
        for index in self._all:
            index.free()

    def saved(self) -> IndexesSnapshot:
        """A snapshot for another process."""
        hashed, ordered = self.hashed.values(), self.ordered.values()
        return IndexesSnapshot(tuple(i.saved() for i in hashed), tuple(i.saved() for i in ordered))

    def restore(self, saved: IndexesSnapshot) -> None:
        """Restore from a snapshot."""
        for hashed, of_hashed in zip(self.hashed.values(), saved.hashed, strict=True):
            hashed.restore(of_hashed)
        for ordered, of_ordered in zip(self.ordered.values(), saved.ordered, strict=True):
            ordered.restore(of_ordered)

    @property
    def nbytes(self) -> int:
        """Bytes held by all indexes."""
        return sum(index.nbytes for index in self._all)
