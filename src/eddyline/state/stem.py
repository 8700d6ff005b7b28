"""The SteM: the rows of one source or, an intermediate one, the tuples of a larger span, built once, probed many times.

A SteM stores what the query needs of its rows in append-only columns and answers two requests, build and probe. Which
index answers a probe, or whether a list does, is its own affair. Rows are stored as they come, many at a time, and
built (indexed, and from then on found) in the same order, when the eddy wants them: rows from `rows` to `stored` are
there but not built. They are numbered from 0 in that order;
`number` is the count of tuples built in the whole slot when a packet was built, so `rows_before(number)` are the rows
that existed then: the TimeStamp rule as a bound on row numbers. No packet outlives a commit, so only the builds since
the last one are remembered for it.

A tuple of a larger span is the row numbers of its components, with copies of the keys by which it is looked up, so a
probe does not read its components; its time is that of the newest. It dies with the first of its components, whose
values may then be gone: those who probe look at `live` first. If it stands for several, it has a weight (carried.py).

Wind-back: `commit` notes (rows, min_live); `wind_back` pops every index newest first and lowers the counts. Until the
commit nothing that expired is released, so raising min_live can be undone by lowering it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.kernels import scan
from eddyline.query.expr import Expr, sources_of
from eddyline.state import keys as key_codes
from eddyline.state.arena import Arena
from eddyline.state.carried import Carried, CarriedStore
from eddyline.state.column import Column
from eddyline.state.hash_index import HashIndex
from eddyline.state.key_column import KeyColumn
from eddyline.state.layout import Layout
from eddyline.state.probing import Limits, Matches, chunks
from eddyline.state.shelf import Saved
from eddyline.state.sorted_index import SortedIndex
from eddyline.state.stores.any import store
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.store import Store

BLOCK = 64
"""Rows for which the newest time up to them is kept, to find the rows before a time."""

TINY = 64
"""Up to so many live rows a range probe looks at the list instead of a sorted index."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class _Mark:
    rows: int
    min_live: int


class SteM:
    """State Module of one span."""

    def __init__(self, arena: Arena, layout: Layout) -> None:
        self.layout, self._arena = layout, arena
        self.times = Column(arena, "i8")
        self._newest = Column(arena, "i8")
        """For each BLOCK of rows the newest time up to its end: it never falls."""
        self.ordinals = Column(arena, "i8")
        self._keys = {expr: KeyColumn(arena, expr) for expr in layout.keys}
        self._order = {expr: Column(arena, "i8") for expr in layout.order_keys}
        self._sorted = {expr: SortedIndex(arena, column) for expr, column in self._order.items()}
        self._sorts = False
        """Whether there are enough rows for the sorted indexes to be used."""
        edges = dict.fromkeys((*layout.edges, *layout.indexes))  # those of edges never change, nor does their order
        self._codes = {on: Column(arena, "i8") for on in edges if layout.components or len(on) > 1}
        self.components = {source: Column(arena, "i8") for source in layout.components}
        self.carried = None if layout.states is None else CarriedStore(arena, layout.states)
        self._hashed = {on: HashIndex(arena, self._key_column(on)) for on in layout.indexes}
        self._stores = {expr: self._store(arena, expr) for expr in layout.stored}
        self._build_numbers = Column(arena, "i8")
        self._build_firsts = Column(arena, "i8")
        self.rows = self.stored = self.min_live = 0
        self._committed = _Mark(0, 0)

    def _store(self, arena: Arena, expr: Expr) -> Store:
        key = self._keys.get(expr)
        if key is not None and pa.types.is_integer(expr.type) and expr.type.bit_width == 64:
            return FixedStore(arena, expr.type, key.codes)
        if key is not None and key.exact is not None and key.exact.type == expr.type:
            return key.exact
        return store(arena, expr.type)

    def _key_column(self, on: tuple[Expr, ...]) -> Column:
        return self._codes[on] if on in self._codes else self._keys[on[0]].codes

    # Store and build

    def store(self, values: Mapping[Expr, pa.Array], times: Rows, ordinals: Rows | None) -> None:
        """Append rows that are to be built."""
        first, last = self.stored, self.stored + times.size
        self.times.append(times)
        if ordinals is not None:
            self.ordinals.append(ordinals)
        for expr, key in self._keys.items():
            key.append(values[expr])
        for expr, column in self._order.items():
            column.append(key_codes.in_order(values[expr]))
        for on, column in self._codes.items():
            column.append(key_codes.combine([self._keys[e].codes.values[first:last] for e in on]))
        for expr, kept in self._stores.items():
            if not self._is_key_store(expr, kept):
                kept.append(values[expr])
        self.stored = last
        self._note_newest()

    def store_tuples(self, rows: Mapping[int, Rows], stems: Sequence[SteM], carried: Carried | None = None) -> None:
        """Append tuples that are to be built, given by the rows of their components in the SteMs of sources, and by
        what they carry."""
        size = next(iter(rows.values())).size
        self.times.append(newest(stems, rows, size))
        for source, component in self.components.items():
            component.append(rows[source])
        for on, column in self._codes.items():
            (source,) = sources_of(on[0])
            column.append(stems[source].key_values(on)[rows[source]])
        for expr, column in self._order.items():
            (source,) = sources_of(expr)
            column.append(stems[source].order_values(expr)[rows[source]])
        if self.carried is not None and carried is not None:
            self.carried.append(carried)
        self.stored += size
        self._note_newest()

    def _note_newest(self) -> None:
        known = self._newest.rows
        blocks = self.stored // BLOCK - known
        if blocks and self.layout.timed:
            first = max(known * BLOCK, self._committed.min_live)  # those before it were given back
            starts = np.arange(known, known + blocks) * BLOCK - first
            newest = np.maximum.reduceat(self._times[first : (known + blocks) * BLOCK], np.maximum(starts, 0))
            if known > self._committed.min_live // BLOCK:
                newest[0] = max(newest[0], self._newest.values[known - 1])
            self._newest.append(np.maximum.accumulate(newest))

    def first_at(self, time: int) -> int:
        """A row such that every one before it is older than `time` or has expired."""
        first = self.min_live // BLOCK
        return max(
            self.min_live, BLOCK * (first + int(self._newest.values[first : self._newest.rows].searchsorted(time)))
        )

    def build(self, number: int, rows: int) -> tuple[int, int]:
        """Index the next stored rows; returns their numbers first..last-1."""
        first, last = self.rows, self.rows + rows
        if not self._build_firsts.rows:
            self._forget_builds()
        self._add_to_indexes(first, last)
        self._build_numbers.append(np.array([number]))
        self._build_firsts.append(np.array([last]))
        self.rows = last
        return first, last

    def _add_to_indexes(self, first: int, last: int) -> None:
        floor = self._committed.min_live
        for hashed in self._hashed.values():
            hashed.build(first, last, floor)
        if self._sorts or last - floor > TINY:
            for index in self._sorted.values():
                index.build(first if self._sorts else floor, last, floor)
            self._sorts = True

    def _is_key_store(self, expr: Expr, kept: Store) -> bool:
        key = self._keys.get(expr)
        return key is not None and kept is key.exact

    def rows_before(self, numbers: NDArray[np.int64]) -> Rows:
        """How many rows had been built when the slot had built so many tuples, all since the last commit."""
        if not self._build_firsts.rows:
            self._forget_builds()
        at = self._build_numbers.values[: self._build_numbers.rows].searchsorted(numbers)
        rows: Rows = self._build_firsts.values[at]
        return rows

    def _forget_builds(self) -> None:
        """Element i of `_build_firsts` is the first row of build i, and there is one more: that of the next build. It
        is there once it is needed: a region is not written before it is known to be new."""
        self._build_numbers.truncate(0)
        self._build_firsts.truncate(0)
        self._build_firsts.append(np.array([self.rows]))

    def is_indexed_by(self, on: tuple[Expr, ...]) -> bool:
        """Whether there is such an index."""
        return on in self._hashed

    def fits(self, layout: Layout) -> bool:
        """Whether it has all that another layout asks for, but for indexes of keys that are here."""
        here = self._codes.keys() if self.components else layout.indexes
        return layout.order_keys == self.layout.order_keys and all(on in here for on in layout.indexes)

    def adopt(self, indexes: Sequence[tuple[Expr, ...]], made: Mapping[tuple[Expr, ...], HashIndex]) -> None:
        """Have these hash indexes from now on, at a commit: some are new, and were made, others are given up."""
        for on in self._hashed.keys() - set(indexes):
            self._hashed.pop(on).free()
        self._hashed = {on: self._hashed[on] if on in self._hashed else made[on] for on in indexes}
        if self.components:  # keys are copied for the indexes alone, in their order
            for on in self._codes.keys() - set(indexes):
                self._codes.pop(on).free()
            self._codes = {on: self._codes[on] for on in indexes}
        self.layout = replace(self.layout, indexes=tuple(indexes))

    def free(self) -> None:
        """Give everything back; it cannot be used any more. It is of a larger span, so it has no stores."""
        columns = [self.times, *self._others]
        columns += [*self._order.values(), *self._codes.values(), *self.components.values()]
        indexes = [*self._hashed.values(), *self._sorted.values()]
        for part in (*columns, *indexes, *(() if self.carried is None else self.carried.parts)):
            part.free()

    # Probe

    def limits(self, low: Rows, high: Rows, before: Rows, room: int, passed: Rows) -> Limits:
        """What a probe says of the rows that may match, and what is known here of their times."""
        if not (low.size and self.layout.timed):
            return Limits(low, high, before, self.min_live, room, passed)
        newest = self._newest.values[: self._newest.rows]
        return Limits(low, high, before, self.first_at(int(low.min())), room, passed, newest, BLOCK)

    def probe_key(self, on: tuple[Expr, ...], keys: NDArray[np.int64], rows: Rows, limits: Limits) -> Iterator[Matches]:
        """Rows whose key `on` equals keys[rows[i]] (by its code: see `same_key`)."""
        return self._hashed[on].probe(keys, rows, self._times, limits)

    def probe_range(self, on: Expr, least: Rows, most: Rows, limits: Limits) -> Iterator[Matches]:
        """Rows whose order key lies between least[i] and most[i], both included."""
        if self._sorts:
            yield from self._sorted[on].probe(least, most, self._times, limits)
            return
        keys = self._order[on].values
        for tuples, rows in self.probe_all(least.size, limits):
            keep = (keys[rows] >= least[tuples]) & (keys[rows] <= most[tuples])
            if keep.any():
                yield tuples[keep], rows[keep]

    def probe_all(self, tuples: int, limits: Limits) -> Iterator[Matches]:
        """Every row."""
        times = self._times

        def step(at: int, row: int, out_tuple: Rows, out_row: Rows) -> tuple[int, int, int]:
            low, high, before, min_live = limits.low, limits.high, limits.before, limits.min_live
            found: tuple[int, int, int] = scan.probe(
                times, low, high, before, min_live, limits.passed, tuples, at, row, out_tuple, out_row
            )
            return found

        return chunks(step, tuples, -1, limits.room)

    # Read

    @property
    def _times(self) -> Rows:
        times: Rows = self.times.values
        return times

    def key_values(self, on: tuple[Expr, ...]) -> NDArray[np.int64]:
        """The codes of a key, by row number."""
        codes: NDArray[np.int64] = self._key_column(on).values
        return codes

    def order_values(self, on: Expr) -> NDArray[np.int64]:
        """The codes of an order key, by row number."""
        codes: NDArray[np.int64] = self._order[on].values
        return codes

    def gather(self, expr: Expr, rows: Rows) -> pa.Array:
        """The values of a stored expression."""
        return self._stores[expr].gather(rows)

    def key_parts(self, on: Expr, rows: Rows) -> pa.Array | Rows:
        """What tells the keys of rows apart: their codes or, if these are only hashes, their values."""
        exact, codes = self._keys[on].exact, self._keys[on].codes.values
        return codes[rows] if exact is None else exact.gather(rows)

    def same_key(self, expr: Expr, rows: Rows, other: SteM, other_expr: Expr, other_rows: Rows) -> NDArray[np.bool_]:
        """Which pairs of rows, one here and one in another SteM, really have the same key."""
        return self._keys[expr].same(rows, other._keys[other_expr], other_rows)

    # Expiry, commit, wind-back

    def expire(self, horizon: int) -> None:
        """Rows with a time below `horizon` can join nothing any more: raise min_live past those at the old end."""
        self.min_live = int(scan.first_at_least(self._times, self.min_live, self.rows, horizon))

    def expire_ordinals(self, least: int) -> None:
        """Rows whose place in the stream is below `least` are in no window any more."""
        self.min_live = int(scan.first_at_least(self.ordinals.values, self.min_live, self.rows, least))

    def expire_tuples(self, stems: Sequence[SteM]) -> None:
        """Tuples of which a component has expired are dead: raise min_live past those at the old end."""
        row, before = self.min_live, -1
        while row != before:
            before = row
            for source, component in self.components.items():
                row = int(scan.first_at_least(component.values, row, self.rows, stems[source].min_live))
        self.min_live = row

    def live(self, rows: Rows, stems: Sequence[SteM]) -> NDArray[np.bool_]:
        """Which of these tuples have no component that has expired."""
        keep = np.ones(rows.size, np.bool_)
        for source, component in self.components.items():
            keep &= component.values[rows] >= stems[source].min_live
        return keep

    def commit(self) -> None:
        """What happened since the last commit cannot be undone from here on; what expired is given back."""
        for part in self._parts:
            part.release(self.min_live)
        self._newest.release(self.min_live // BLOCK)
        self._committed = _Mark(self.rows, self.min_live)
        self._forget_builds()

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        mark = self._committed
        for part in self._parts:
            if isinstance(part, HashIndex):
                part.pop(mark.rows)
            elif isinstance(part, SortedIndex):
                part.pop(mark.rows if self._sorts else 0)  # 0: some may be there if making them failed
        for part in self._parts:
            if not isinstance(part, HashIndex | SortedIndex):
                part.truncate(mark.rows)
        self._newest.truncate(mark.rows // BLOCK)
        self.rows, self.stored, self.min_live = mark.rows, mark.rows, mark.min_live
        self._forget_builds()

    def saved(self) -> Saved:
        """What another process must know of it. The builds since the last commit are not: no packet of them is left."""
        mark = self._committed
        return {
            "rows": [self.rows, self.stored, self.min_live, mark.rows, mark.min_live],
            "sorts": self._sorts,
            "others": [column.saved() for column in self._others],
            "parts": [part.saved() for part in self._parts],
        }

    def restore(self, saved: Saved) -> None:
        """See the same rows, with what is needed to wind back to the last commit."""
        self.rows, self.stored, self.min_live, rows, min_live = saved["rows"]
        self._committed, self._sorts = _Mark(rows, min_live), saved["sorts"]
        for column, of_column in zip(self._others, saved["others"], strict=True):
            column.restore(of_column)
        for part, of_part in zip(self._parts, saved["parts"], strict=True):
            part.restore(of_part)
        self._forget_builds()

    @property
    def _others(self) -> list[Column]:
        """What is not by row number, or may not be used."""
        return [self._newest, self.ordinals, self._build_numbers, self._build_firsts]

    @property
    def _parts(self) -> list[Column | Store | HashIndex | SortedIndex]:
        parts: list[Column | Store | HashIndex | SortedIndex] = [self.times, *self._order.values()]
        if self.layout.ordinal:
            parts.append(self.ordinals)
        for key in self._keys.values():
            parts.append(key.codes)
            if key.exact is not None:
                parts.append(key.exact)
        parts += [*self._codes.values(), *self.components.values()]
        parts += [kept for expr, kept in self._stores.items() if not self._is_key_store(expr, kept)]
        parts += [] if self.carried is None else self.carried.parts
        return [*parts, *self._hashed.values(), *self._sorted.values()]

    @property
    def row_bytes(self) -> float:
        """Bytes of a row, without its indexes."""
        plain = sum(p.nbytes for p in self._parts if not isinstance(p, HashIndex | SortedIndex))
        return plain / max(1, self.rows - self._committed.min_live)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self._parts)


def newest(stems: Sequence[SteM], rows: Mapping[int, Rows], size: int) -> Rows:
    """The newest time among the components of each tuple."""
    times = np.full(size, np.iinfo(np.int64).min)
    for source, of_source in rows.items():
        if source >= 0 and stems[source].layout.timed:
            np.maximum(times, stems[source].times.values[of_source], out=times)
    return times
