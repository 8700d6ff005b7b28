"""Rows: the columns of one SteM, which grow at one end and expire at the other.

Only this file owns columns of values: indexes hold row numbers, builds hold counts, and all other code reads. A row has
the same number in every column; rows are numbered from 0 in the order in which they are appended. Invariant:

    floor <= min_live <= stored

Rows below `min_live` have expired. They stay readable until the next commit, so that the batch can be wound back; rows
below `floor`, the `min_live` of the last commit, have been released to the arena.

A tuple of a larger span consists of the row numbers of its components and copies of the keys by which it is probed, so
a probe does not read the components. Its time is that of the newest component. The tuple dies with the first of its
components, whose values may then be gone: a reader of a tuple first checks that it is live (`Prober.live`). A tuple
that stands for several has a weight (carried.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.expr import Expr, of_source, sources_of
from eddyline.codec import Snapshot
from eddyline.kernels import groups as group_kernels
from eddyline.kernels import scan
from eddyline.state import keys as key_codes
from eddyline.state.arena import Arena
from eddyline.state.carried import Carried, CarriedStore
from eddyline.state.column import RETAINED, Column, ColumnSnapshot, RowNumbers
from eddyline.state.key_column import KeyColumn
from eddyline.state.layout import Key, Layout
from eddyline.state.newest_times import NewestTimes
from eddyline.state.row_groups import RowGroups
from eddyline.state.stores.any import store
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.snapshots import StoreSnapshot
from eddyline.state.stores.store import ValueStore


class RowsSnapshot(Snapshot, frozen=True):
    """The numbers of the rows, and the places of their columns."""

    stored: int
    min_live: int
    floor: int
    block: int
    newest: ColumnSnapshot
    columns: tuple[ColumnSnapshot, ...]
    stores: tuple[StoreSnapshot, ...]


@dataclass(frozen=True)
class Renumbered:
    """The new numbers of rows, after some were forgotten."""

    first: int
    """The old number of the first row."""
    numbers: RowNumbers
    """The new number of each row from there on; -1 if it is gone."""

    def of(self, rows: RowNumbers) -> RowNumbers:
        """The new numbers of rows."""
        numbers: RowNumbers = self.numbers[rows - self.first]
        return numbers


class Rows:
    """The columns of one SteM."""

    def __init__(self, arena: Arena, layout: Layout, groups: RowGroups | None = None) -> None:
        """With `groups` every row has a partition group."""
        self.timed = layout.timed
        self.times = Column(arena, "i8")
        self.newest = NewestTimes(arena)
        self._ordinals = Column(arena, "i8") if layout.ordinal else None
        self._row_groups = groups
        self._groups = Column(arena, "i4") if groups is not None and groups.key is None else None
        """The partition groups of rows, if no key tells them."""
        self._keys = {expr: KeyColumn(arena, expr) for expr in layout.keys}
        self._order = {expr: Column(arena, "i8") for expr in layout.order_keys}
        edges = dict.fromkeys((*layout.edges, *layout.indexes))  # the keys of edges and their order never change
        self._codes = {on: Column(arena, "i8") for on in edges if layout.components or len(on) > 1}
        self.components = {source: Column(arena, "i8") for source in layout.components}
        """For a larger span: the row numbers of each component."""
        self.carried = None if layout.states is None else CarriedStore(arena, layout.states)
        self._stores = {expr: self._store(arena, expr) for expr in layout.stored}
        exact = {id(key.exact) for key in self._keys.values()}
        self._plain = {expr: kept for expr, kept in self._stores.items() if id(kept) not in exact}
        """The stores that are not shared with keys."""
        self._columns = self._all_columns()
        self._names: dict[Expr, Expr] = {}
        """The expressions of other aliases, and what they are called here."""
        self.stored = self.min_live = self.floor = 0

    def _store(self, arena: Arena, expr: Expr) -> ValueStore:
        key = self._keys.get(expr)
        if key is not None and pa.types.is_integer(expr.type) and expr.type.bit_width == 64:
            return FixedStore(arena, expr.type, key.codes)
        if key is not None and key.exact is not None and key.exact.type == expr.type:
            return key.exact
        return store(arena, expr.type)

    def add_names(self, layout: Layout, source: int) -> None:
        """Answer to the names of another alias of source number `source`, whose layout is the same but for the
        names."""
        self._names |= {expr: of_source(expr, source) for expr in layout.needed}

    def _named(self, on: Key) -> Key:
        return tuple(self._names.get(expr, expr) for expr in on) if self._names else on

    # Grow

    def append(
        self,
        values: Mapping[Expr, pa.Array],
        times: RowNumbers,
        ordinals: RowNumbers | None,
        groups: RowNumbers | None = None,
    ) -> None:
        """Add rows of a source."""
        first, last = self.stored, self.stored + times.size
        self.times.append(times)
        if self._ordinals is not None and ordinals is not None:
            self._ordinals.append(ordinals)
        if self._groups is not None:
            assert groups is not None
            self._groups.append(groups)
        for expr, key in self._keys.items():
            key.append(values[expr])
        for expr, column in self._order.items():
            column.append(key_codes.in_order(values[expr]))
        for on, column in self._codes.items():
            column.append(key_codes.combine([self._keys[e].codes.values[first:last] for e in on]))
        for expr, kept in self._plain.items():
            kept.append(values[expr])
        self.stored = last
        self._note_newest()

    def append_tuples(
        self, rows: Mapping[int, RowNumbers], bases: Sequence[Rows], carried: Carried | None = None
    ) -> None:
        """Add tuples of a larger span, given by the row numbers of their components in the sources, and by their
        carried columns."""
        size = next(iter(rows.values())).size
        self.times.append(newest(bases, rows, size))
        for source, component in self.components.items():
            component.append(rows[source])
        for on, column in self._codes.items():
            (source,) = sources_of(on[0])
            column.append(bases[source].key_values(on)[rows[source]])
        for expr, column in self._order.items():
            (source,) = sources_of(expr)
            column.append(bases[source].order_values(expr)[rows[source]])
        if self.carried is not None and carried is not None:
            self.carried.append(carried)
        self.stored += size
        self._note_newest()

    def _note_newest(self) -> None:
        if self.timed:
            self.newest.note(self.times, self.stored, self.floor)

    # Read

    def ordinals(self, rows: RowNumbers) -> RowNumbers:
        """The ordinals of rows in their stream; only for a source with a ROWS window."""
        assert self._ordinals is not None
        ordinals: RowNumbers = self._ordinals.values[rows]
        return ordinals

    @property
    def stores_groups(self) -> bool:
        """Whether rows come with their partition groups."""
        return self._groups is not None

    def groups(self, rows: RowNumbers | slice) -> NDArray[np.int64]:
        """The partition groups of rows."""
        assert self._row_groups is not None
        if self._row_groups.key is not None:
            return self._row_groups.of_codes(self._keys[self._row_groups.key].codes.values[rows])
        assert self._groups is not None
        return self._groups.values[rows].astype(np.int64)

    def add_by_group(self, rows: slice, number: int, out: NDArray[np.int64]) -> None:
        """Add a number to that of the partition group of each of these rows."""
        assert self._row_groups is not None
        if self._row_groups.key is not None:
            codes = self._keys[self._row_groups.key].codes.values[rows]
            group_kernels.add_by_code(codes, self._row_groups.size, number, out[self._row_groups.first :])
        else:
            group_kernels.add_by_group(self.groups(rows), number, out)

    def outside(self, rows: slice, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of those of these rows that are in none of these partition groups."""
        assert self._row_groups is not None
        if self._row_groups.key is not None:
            found = self._row_groups.outside(self._keys[self._row_groups.key].codes.values[rows], groups)
        else:
            found = np.flatnonzero(~np.isin(self.groups(rows), groups))
        found += rows.start
        return found

    def has_key(self, on: Key) -> bool:
        """Whether the codes of this key are kept, so that an index over it can be made."""
        on = self._named(on)
        return on in self._codes or (len(on) == 1 and on[0] in self._keys)

    def key_column(self, on: Key) -> Column:
        """The column of the codes of a key."""
        on = self._named(on)
        return self._codes[on] if on in self._codes else self._keys[on[0]].codes

    def key_values(self, on: Key) -> NDArray[np.int64]:
        """The codes of a key, by row number."""
        codes: NDArray[np.int64] = self.key_column(on).values
        return codes

    def order_column(self, on: Expr) -> Column:
        """The column of the codes of an order key."""
        return self._order[self._names.get(on, on)]

    def order_values(self, on: Expr) -> NDArray[np.int64]:
        """The codes of an order key, by row number."""
        codes: NDArray[np.int64] = self.order_column(on).values
        return codes

    def gather(self, expr: Expr, rows: RowNumbers) -> pa.Array:
        """The values of a stored expression."""
        return self._stores[self._names.get(expr, expr)].gather(rows)

    def key_parts(self, on: Expr, rows: RowNumbers) -> pa.Array | RowNumbers:
        """Values that are equal exactly if the keys of rows are: their codes or, if codes are only hashes, the keys."""
        key = self._keys[self._names.get(on, on)]
        exact, codes = key.exact, key.codes.values
        return codes[rows] if exact is None else exact.gather(rows)

    def same_key(
        self, expr: Expr, rows: RowNumbers, other: Rows, other_expr: Expr, other_rows: RowNumbers
    ) -> NDArray[np.bool_]:
        """Which pairs of rows, one here and one of another SteM, really have the same key."""
        mine, theirs = self._names.get(expr, expr), other._names.get(other_expr, other_expr)
        return self._keys[mine].same(rows, other._keys[theirs], other_rows)

    # Expire. Only rows below `end` may expire: those that are built.

    def expire(self, horizon: int, end: int) -> None:
        """Raise min_live past the oldest rows with a time below `horizon`: they cannot join any more."""
        self.min_live = int(scan.first_at_least(self.times.values, self.min_live, end, horizon))

    def expire_ordinals(self, least: int, end: int) -> None:
        """Raise min_live past the oldest rows whose ordinal in the stream is below `least`: they are in no window any
        more."""
        assert self._ordinals is not None
        self.min_live = int(scan.first_at_least(self._ordinals.values, self.min_live, end, least))

    def expire_tuples(self, bases: Sequence[Rows], end: int) -> None:
        """Raise min_live past the oldest tuples with an expired component."""
        row, before = self.min_live, -1
        while row != before:
            before = row
            for source, component in self.components.items():
                row = int(scan.first_at_least(component.values, row, end, bases[source].min_live))
        self.min_live = row

    # Retain: only between a commit and the next batch

    def retain(self, rows: RowNumbers, renumbered: Mapping[int, Renumbered]) -> Renumbered:
        """Keep only these rows of those that live, under new numbers: the next ones, in the same order. Values of a
        fixed size move within their pages. Others are copied, one column after the other, so at most one of them is
        there twice. `renumbered` has the new numbers of the rows of other SteMs, for components; returned are those of
        the rows here."""
        first, numbers = self.stored, np.full(self.stored - self.min_live, -1)
        numbers[rows - self.min_live] = np.arange(first, first + rows.size)
        found = Renumbered(self.min_live, numbers)
        moved = {id(column): renumbered[s] for s, column in self.components.items() if s in renumbered}
        for column in self._columns:
            if isinstance(column, Column):
                column.retain(rows, moved[id(column)].of if id(column) in moved else None)
            elif isinstance(column, FixedStore):
                column.retain(rows)
            else:
                for piece in np.array_split(rows, max(1, rows.size // RETAINED)):
                    column.append(column.gather(piece))
                column.release(first)
        self.stored, self.min_live, self.floor = first + rows.size, first, first
        self._note_newest()
        self.newest.release(first)
        return found

    # Commit, wind back, hand over

    def commit(self) -> None:
        """Release expired rows. Events before this commit cannot be undone any more."""
        for column in self._columns:
            column.release(self.min_live)
        self.newest.release(self.min_live)
        self.floor = self.min_live

    def wind_back(self, rows: int) -> None:
        """Drop the rows from number `rows` on, and undo expiry since the last commit."""
        for column in self._columns:
            column.truncate(rows)
        self.newest.truncate(rows)
        self.stored, self.min_live = rows, self.floor

    def drop_keys(self, kept: Collection[Key]) -> None:
        """For a larger span: keep only the copies of these keys, in this order. Only indexes need the copies."""
        for on in self._codes.keys() - set(kept):
            self._codes.pop(on).free()
        self._codes = {on: self._codes[on] for on in kept}
        self._columns = self._all_columns()

    def free(self) -> None:
        """Release everything; the rows cannot be used any more. Only for a larger span, which has no stores."""
        self.newest.free()
        columns = [self.times, *self._order.values(), *self._codes.values(), *self.components.values()]
        for column in (*columns, *(() if self.carried is None else self.carried.parts)):
            column.free()

    def saved(self) -> RowsSnapshot:
        """A snapshot for another process."""
        plain, stores = _by_kind(self._columns)
        return RowsSnapshot(
            stored=self.stored,
            min_live=self.min_live,
            floor=self.floor,
            block=self.newest.block,
            newest=self.newest.saved(),
            columns=tuple(column.saved() for column in plain),
            stores=tuple(kept.saved() for kept in stores),
        )

    def restore(self, saved: RowsSnapshot) -> None:
        """Restore from a snapshot, including what is needed to wind back to the last commit."""
        self.stored, self.min_live, self.floor = saved.stored, saved.min_live, saved.floor
        self.newest.restore(saved.block, saved.newest)
        plain, stores = _by_kind(self._columns)
        for column, of_column in zip(plain, saved.columns, strict=True):
            column.restore(of_column)
        for kept, of_store in zip(stores, saved.stores, strict=True):
            kept.restore(of_store)

    def _all_columns(self) -> list[Column | ValueStore]:
        """All columns with one value per row."""
        columns: list[Column | ValueStore] = [self.times, *self._order.values()]
        columns += [column for column in (self._ordinals, self._groups) if column is not None]
        for key in self._keys.values():
            columns.append(key.codes)
            if key.exact is not None:
                columns.append(key.exact)
        columns += [*self._codes.values(), *self.components.values(), *self._plain.values()]
        columns += [] if self.carried is None else self.carried.parts
        return columns

    @property
    def row_bytes(self) -> float:
        """Bytes of a row, without its indexes."""
        return self.nbytes / max(1, self.stored - self.floor)

    @property
    def nbytes(self) -> int:
        """Bytes held by the columns."""
        return sum(column.nbytes for column in self._columns)


def _by_kind(columns: Sequence[Column | ValueStore]) -> tuple[list[Column], list[ValueStore]]:
    """Plain columns, and stores."""
    plain = [column for column in columns if isinstance(column, Column)]
    return plain, [column for column in columns if not isinstance(column, Column)]


def newest(bases: Sequence[Rows], rows: Mapping[int, RowNumbers], size: int) -> RowNumbers:
    """The newest time among the components of each tuple."""
    times = np.full(size, np.iinfo(np.int64).min)
    for source, numbers in rows.items():
        if source >= 0 and bases[source].timed:
            np.maximum(times, bases[source].times.values[numbers], out=times)
    return times
