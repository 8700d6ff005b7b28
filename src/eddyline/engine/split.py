"""The split: processes a batch of a stream before the slots. It counts, classifies and filters rows, and decides which
slots get which rows.

A row is used, late or dead by its own time. Filters and keys are evaluated here, once, however many slots get the row.
So rows_in, rows_used, rows_late, rows_dead and the errors of filters and keys are the same for any number of slots.
Errors in what a slot evaluates on tuples (conditions across sources, selections) are counted there: if several slots
have a row, an error may be counted several times, just as in one slot on several routes.

A row is shipped to a slot at most once, with the aliases that build it there. A stream with a ROWS window is shipped
whole to every slot: all slots must count it, in the same order. Rows that are equal in all columns that the query uses
go to the same place, so the order in which equal rows are counted does not matter.

With one slot there is nothing to decide: the batch is passed on unchanged, and the slot filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.balance.hot_key import HotKey
from eddyline.bound.evaluate import ErrorCount, evaluate, mask
from eddyline.bound.expr import Expr, SourceColumn
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.bound.types import decode
from eddyline.engine.groups.seen_rows import SeenStreams
from eddyline.engine.intake import as_it_travels, classify, columns_for, event_times
from eddyline.engine.key_sketch import KeySketch
from eddyline.plan.partition import Partitioning, Places
from eddyline.plan.partition_groups import CODES, code_groups, key_groups, row_groups, rows_among, within_group
from eddyline.plan.plan import Plan
from eddyline.plan.spill_axis import SpillAxis
from eddyline.state.keys import encode, without_null

Which = NDArray[np.bool_] | None
"""Some of the rows of a batch; None for all."""


@dataclass(frozen=True)
class Logged:
    """For a durable log, in which each row occurs once: the group of each row of a shipment, and whether the slot that
    got the row logs it."""

    groups: NDArray[np.int64]
    here: NDArray[np.bool_]


@dataclass(frozen=True)
class Shipment:
    """Rows of one stream for one slot. `build` tells, by source, which rows the slot builds; None: the rows are not
    filtered yet."""

    stream: str
    slot: int
    batch: pa.RecordBatch
    build: Mapping[int, Which] | None
    log: Logged | None = None


@dataclass(frozen=True)
class SplitBatch:
    """A batch of one stream: its shipments, the number of used rows, late rows, dead rows with reasons, and the largest
    event time of a readable row."""

    shipments: list[Shipment]
    used: int
    late: pa.RecordBatch
    dead: pa.RecordBatch
    reasons: pa.Array
    newest: int | None
    oldest: int | None = None
    """The smallest event time of a readable row."""
    behind: int = 0
    """The largest distance of a readable row behind the newest row before it, in microseconds."""


class Split:
    """The split of one query. `places`, `senders` and `hot` may be changed between two batches."""

    def __init__(self, plan: Plan, partitioning: Partitioning, logged: bool = False) -> None:
        self.plan, self._query, self.partitioning, self._logged = plan, plan.query, partitioning, logged
        self.places: Places = partitioning.places()
        self.senders: NDArray[np.int64] | None = None
        """By group a second slot that gets its rows, while the group is on a parallel track; -1 for the others. Only
        where there is one axis."""
        self.hot: tuple[HotKey, ...] = ()
        """Keys that several slots share; only where there is one axis."""
        self.sketch: KeySketch | None = None
        """Counts the keys of shipped rows, if somebody wants to know."""
        self.seen: SeenStreams | None = None
        """Counts used rows by cluster, if somebody wants to know."""
        self.errors = ErrorCount()
        self.streams = {s.stream.name: s.stream for s in plan.query.sources}
        self.needed = {name: self._needed_columns(name) for name in self.streams}
        """The columns of each stream that the query reads; no others are shipped."""

    def _needed_columns(self, stream: str) -> tuple[str, ...]:
        used = {n for s in self._sources(stream) for n in self._query.columns_of_source(s)}
        names, time = self.streams[stream].schema.names, self.streams[stream].time
        needed = tuple(n for n in names if n in used or n == time)
        return needed or tuple(names[:1])  # a batch without columns would have no rows

    def _sources(self, stream: str) -> list[int]:
        return [i for i, s in enumerate(self._query.sources) if s.stream.name == stream]

    def split(
        self, stream: str, batch: pa.RecordBatch, late_before: int | None, newest: int | None = None
    ) -> SplitBatch:
        """Split a batch of a stream. Rows older than `late_before` are late. `newest` is the newest time of earlier
        rows."""
        intake = classify(self.streams[stream], as_it_travels(batch), late_before, newest)
        used = intake.used.num_rows
        if self.seen is not None and used:
            times = columns_for(self.streams[stream], intake.used, [self.streams[stream].time or ""]).column(0)
            self.seen.add(stream, event_times(times))
        shipments = self._shipments(stream, intake.used) if used else []
        times = intake.newest, intake.oldest, intake.behind
        return SplitBatch(shipments, used, intake.late, intake.dead, intake.reasons, *times)

    def split_table(self, stream: str, batch: pa.RecordBatch) -> list[Shipment]:
        """Split rows of a static table."""
        return self._shipments(stream, as_it_travels(batch))

    def share(self, source: int, batch: pa.RecordBatch, slot: int) -> Which:
        """The rows of the log that a slot has of a source, if they pass the filters."""
        if self.partitioning.slots == 1:
            return None
        return _Placed(self, source, batch).at(self.partitioning.coordinates(slot), self.senders)

    def _shipments(self, stream: str, whole: pa.RecordBatch) -> list[Shipment]:
        batch = columns_for(self.streams[stream], whole, self.needed[stream])
        if self.partitioning.slots == 1:
            return [Shipment(stream, 0, batch, None)]
        sources = self._sources(stream)
        placed = {s: _Placed(self, s, batch) for s in sources}
        to_all = any(self._query.sources[s].window.kind is WindowKind.ROWS for s in sources)
        home = _homes([*placed.values()], to_all) if self._logged else None
        if self.sketch is not None:
            for one in placed.values():
                one.count(self.sketch)
        found = []
        for slot in range(self.partitioning.slots):
            place = self.partitioning.coordinates(slot)
            build = {s: p.at(place, self.senders) for s, p in placed.items()}
            which = None if to_all else _any(list(build.values()))
            if which is None:
                log = None if home is None else Logged(home[0], home[1] == slot)
                found.append(Shipment(stream, slot, batch, build, log))
            elif (at := np.flatnonzero(which)).size:
                build = {s: None if w is None or w is which else _all(w[at]) for s, w in build.items()}
                log = None if home is None else Logged(home[0][at], home[1][at] == slot)
                found.append(Shipment(stream, slot, batch.take(pa.array(at)), build, log))
        return found


class _Placed:
    """The rows of a batch for one source: the rows that it wants, and the place of each row along each axis."""

    def __init__(self, split: Split, source: int, batch: pa.RecordBatch) -> None:
        self._query, self._source, self._batch, self._places = split.plan.query, source, batch, split.places
        self._partitioning = partitioning = split.partitioning
        values, self.wanted = wanted(split.plan, source, batch, split.errors)
        self.groups: list[NDArray[np.int64] | None] = []
        self.codes: list[NDArray[np.int64] | None] = []
        """The keys along each axis, as integers."""
        for axis in partitioning.axes:
            key = axis.keys[source]
            if key is not None:
                # Where the key is wider than WHERE has it for this source, a value that cannot be cast equals nothing
                # there.
                array = evaluate(key, values, batch.num_rows, ErrorCount())
                self.wanted = _both(self.wanted, without_null([_plain(array)]))
                self.codes.append(codes := encode(array))
                self.groups.append(code_groups(codes, partitioning.groups))
            else:
                self.codes.append(None)
                self.groups.append(self.by_row if axis.row == source else None)
        self._at = [None if g is None else p[g] for g, p in zip(self.groups, split.places, strict=True)]
        self._also: list[tuple[NDArray[np.bool_], tuple[int, ...]]] = []
        """Rows that have several places along the only axis, and these."""
        for hot in split.hot:
            self._share(hot)

    def _share(self, key: HotKey) -> None:
        codes, places = self.codes[0], self._at[0]
        if codes is None or places is None or not (rows := codes == key.code).any():
            return
        if self._source != key.source:
            self._also.append((rows, key.slots))
        else:
            some = self._batch.filter(pa.array(rows))
            places[rows] = np.array(key.slots)[_by_row(self._query, self._source, some, len(key.slots))]

    def count(self, sketch: KeySketch) -> None:
        """Count the keys of wanted rows."""
        codes, groups = self.codes[0], self.groups[0]
        if codes is not None and groups is not None:
            which = slice(None) if self.wanted is None else self.wanted
            sketch.add(self._source, codes[which], groups[which])

    @cached_property
    def by_row(self) -> NDArray[np.int64]:
        """The group of each row by all that the query uses of it."""
        return _by_row(self._query, self._source, self._batch, self._partitioning.groups)

    def at(self, place: tuple[int, ...], senders: NDArray[np.int64] | None) -> Which:
        """The rows that the slot at this place builds; `senders` has by group another place that builds its rows."""
        which = self.wanted
        for here, mine, groups in zip(place, self._at, self.groups, strict=True):
            if mine is not None and groups is not None:
                there = mine == here if senders is None else (mine == here) | (senders[groups] == here)
                for rows, places in self._also:
                    if here in places:
                        there |= rows
                which = _both(which, there)
        return _all(which)

    def home(self, anywhere: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each row a group, and one of the slots that get the row; with `anywhere` all slots get it. A row without
        a group along an axis goes to all places there; the hash of the row then chooses one."""
        slot = np.zeros(self._batch.num_rows, np.int64)
        for axis, mine, places in zip(self._partitioning.axes, self._at, self._places, strict=True):
            slot = slot * axis.size + (places[self.by_row] if mine is None or anywhere else mine)
        placed = [known for known in self.groups if known is not None and not anywhere]
        return placed[0] if placed else self.by_row, slot


def wanted(plan: Plan, source: int, batch: pa.RecordBatch, errors: ErrorCount) -> tuple[dict[Expr, pa.Array], Which]:
    """The values that a SteM keeps of each row, and which rows pass the filters and have no NULL in a key."""
    graph, layout, rows = plan.graph, plan.layouts[source], batch.num_rows
    values = _columns(plan, source, batch)
    keep: Which = np.zeros(rows, np.bool_) if graph.never else None
    for predicate in graph.filters[source]:
        keep = _both(keep, mask(predicate, values, rows, errors))
    kept = _kept(layout.needed, values, rows, errors)
    keys = [kept[expr] for expr in (*layout.keys, *layout.order_keys)]
    known = [_plain(array) for array in keys]
    errors.count += sum(new.null_count - old.null_count for new, old in zip(known, keys, strict=True))
    return kept, _all(_both(keep, without_null(known)))


def groups_along(axis: SpillAxis, plan: Plan, source: int, batch: pa.RecordBatch) -> NDArray[np.int64]:
    """The group of each row of a source; meaningless for a row whose key is NULL."""
    return axis.first(source) + _codes(axis, plan, source, batch, axis.size)


def rows_along(
    axis: SpillAxis, plan: Plan, source: int, batch: pa.RecordBatch, asked: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of a source whose groups are asked for, and these; both counted from the first group of the source."""
    key = axis.key(source)
    if key is None:
        groups = _by_row(plan.query, source, batch, axis.size)
        rows = np.flatnonzero(asked[groups])
        return rows, groups[rows]
    codes = encode(evaluate(key, _columns(plan, source, batch), batch.num_rows, ErrorCount()))
    rows = rows_among(codes, asked)
    return rows, code_groups(codes[rows], axis.size)


def codes_along(axis: SpillAxis, plan: Plan, source: int, batch: pa.RecordBatch) -> NDArray[np.uint32]:
    """By row a code of what gives it its group: where that is equal, so are the codes. Rows of one group have different
    ones."""
    return within_group(_codes(axis, plan, source, batch, axis.size * CODES), axis.size)


def _codes(axis: SpillAxis, plan: Plan, source: int, batch: pa.RecordBatch, count: int) -> NDArray[np.int64]:
    key = axis.key(source)
    if key is None:
        return _by_row(plan.query, source, batch, count)
    return key_groups(evaluate(key, _columns(plan, source, batch), batch.num_rows, ErrorCount()), count)


def _by_row(query: BoundQuery, source: int, batch: pa.RecordBatch, groups: int) -> NDArray[np.int64]:
    stream = query.sources[source].stream
    times = None if stream.time is None else event_times(batch.column(stream.time))
    columns = [batch.column(name) for name in query.columns_of_source(source)]
    return row_groups(columns, times, batch.num_rows, groups)


def kept_values(plan: Plan, source: int, batch: pa.RecordBatch) -> dict[Expr, pa.Array]:
    """The values that a SteM keeps of wanted rows. Errors are not counted again."""
    return _kept(plan.layouts[source].needed, _columns(plan, source, batch), batch.num_rows, ErrorCount())


def _kept(needed: Sequence[Expr], values: dict[Expr, pa.Array], rows: int, errors: ErrorCount) -> dict[Expr, pa.Array]:
    for expr in needed:
        if expr not in values:
            values[expr] = evaluate(expr, values, rows, errors)
    return {expr: values[expr] for expr in needed}


def _columns(plan: Plan, source: int, batch: pa.RecordBatch) -> dict[Expr, pa.Array]:
    fields = plan.query.sources[source].stream.schema
    return {SourceColumn(source, n, fields.field(n).type): batch.column(i) for i, n in enumerate(batch.schema.names)}


def _plain(array: pa.Array) -> pa.Array:
    """A key in the form that is encoded: a value that cannot be encoded is NULL."""
    return array if pa.types.is_dictionary(array.type) else decode(array)


def _homes(placed: Sequence[_Placed], to_all: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row a group, and the slot that logs it, by the first source that wants the row. If rows go to all slots,
    the hash of a row decides where no source wants it."""
    last = placed[-1]
    groups, slots = last.home(to_all)
    for one in reversed(placed if to_all else placed[:-1]):
        group, slot = one.home(False)
        if one.wanted is None:
            groups, slots = group, slot
        else:
            groups, slots = np.where(one.wanted, group, groups), np.where(one.wanted, slot, slots)
    return groups, slots


def _both(one: Which, other: Which) -> Which:
    return other if one is None else one if other is None else one & other


def _any(some: list[Which]) -> Which:
    which: Which = None
    for one in some:
        if one is None:
            return None
        which = one if which is None else which | one
    return _all(which)


def _all(which: Which) -> Which:
    return None if which is None or which.all() else which
