"""Access modules as a slot sees them: what it knows of the tables that are asked, what it asks for, and who waits.

The SteM of such a table is a cache of all rows that its access methods have answered, for all streams and tuples that
ask. A row that comes as an answer is built and routed as any other row, so it finds the tuples that waited for it: they
need not be kept, because the rows that they consist of are in SteMs (BuildFirst). What is kept here:

- for each index of a table the keys that are answered completely: a SteM of EOT tuples (paper 001, 2.1.3). A tuple that
  probes the table's SteM and whose key is not among them *asks* (ProbeCompletion);
- the keys that are asked and not answered, each with the oldest time of a tuple that waits for it. A key that is asked
  already is not asked again (BoundedRepetition), and rows that are not older than `held` do not expire;
- *marks*: a key may be asked again after its lookup failed. The tuples that waited for the first lookup are dead by
  then, so rows of the second answer join only tuples with a component that came after the mark.

docs/design/access.md argues why each result is made exactly once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr
from eddyline.bound.functions import cast
from eddyline.bound.functions.arrays import truth
from eddyline.bound.model import BoundQuery, BoundStream
from eddyline.bound.types import decode, physical
from eddyline.engine.lookups import Answer, Request
from eddyline.errors import JobError
from eddyline.plan.bindings import IndexBinding
from eddyline.plan.bounds import FOREVER
from eddyline.plan.partition import of_stream
from eddyline.plan.plan import Plan
from eddyline.routing.asker import Gather
from eddyline.routing.packet import Packet, in_parts
from eddyline.state.arena import Arena
from eddyline.state.keys import combine, encode, is_exact
from eddyline.state.layout import Layout
from eddyline.state.probing import NO_BOUND
from eddyline.state.rows import Rows
from eddyline.state.stem import SteM

Ints = NDArray[np.int64]
KeyValues = tuple[object, ...]
"""A key as a value that can be looked up in a dictionary."""

_SINCE = "\0since"
"""No column of a table can have this name."""
_ROOM = 1 << 16
_NOT_A_NUMBER = "NaN"


@dataclass(frozen=True)
class Wait:
    """Tuples that wait for a key."""

    since: int
    """The oldest time of their components."""
    mark: int
    """The number of the mark that was the last when the key was first asked."""


@dataclass(frozen=True)
class Failure:
    """Lookups that have failed for good."""

    table: str
    keys: pa.RecordBatch
    reason: str


@dataclass(frozen=True)
class Came:
    """Rows of a table that came with an answer: numbers first..last-1 of a source."""

    source: int
    first: int
    last: int
    since: int
    """The oldest time of a row that may have waited for them."""
    mark: int
    """They join only tuples with a component that came after this mark."""

    def among(self, rows: Ints) -> Ints:
        """Which of these rows of the source are among them."""
        return np.flatnonzero((rows >= self.first) & (rows < self.last))


@dataclass(frozen=True)
class NewRows:
    """The new rows of an answer, for those who waited since a time and asked after a mark."""

    rows: pa.RecordBatch
    since: int
    mark: int


class Index:
    """What is known through one index of a table."""

    def __init__(self, arena: Arena, ways: Sequence[IndexBinding]) -> None:
        self.columns = tuple(column.name for column in ways[0].columns)
        self._of_columns = {column.name: of_stream(column) for way in ways for column in way.columns}
        by_way = [tuple(map(of_stream, way.keys)) for way in ways]
        keys = tuple(dict.fromkeys(key for one in by_way for key in one))
        layout = Layout(False, False, stored=(), keys=keys, indexes=tuple(dict.fromkeys(by_way)), order_keys=())
        self.answered = SteM(arena, layout)
        """The EOT tuples."""
        self.asked: dict[KeyValues, Wait] = {}
        self._committed: dict[KeyValues, Wait] = {}
        self._passed = np.zeros(1, np.int64)

    def covers(self, way: IndexBinding, packet: Packet, rows: Sequence[Rows]) -> NDArray[np.bool_]:
        """For which tuples all rows that they can match are in the SteM of the table."""
        found = np.zeros(packet.size, np.bool_)
        if not self.answered.held:
            return found
        on = tuple(map(of_stream, way.keys))
        codes = [self._codes(b.source, b.expr, packet, rows) for b in way.bound_by]
        for tuples, answers in self._probe(on, combine(codes)):
            same = np.ones(tuples.size, np.bool_)
            for key, bound in zip(on, way.bound_by, strict=True):
                if bound.source is not None and not (len(on) == 1 and is_exact(physical(key.type))):
                    theirs = rows[bound.source], bound.expr, packet.rows[bound.source][tuples]
                    same &= self.answered.rows.same_key(key, answers, *theirs)
            found[tuples[same]] = True
        return found

    def has(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows of the table have a key that is answered."""
        found = np.zeros(batch.num_rows, np.bool_)
        if self.answered.held and batch.num_rows:
            columns = [batch.column(name) for name in self.columns]
            known = {self._of_columns[name]: column for name, column in zip(self.columns, columns, strict=True)}
            on = self.answered.layout.indexes[0]
            values = [evaluate(key, known, batch.num_rows, ErrorCount()) for key in on]
            for tuples, answers in self._probe(on, combine([encode(decode(value)) for value in values])):
                same = np.ones(tuples.size, np.bool_)
                for key, value in zip(on, values, strict=True):
                    mine = self.answered.rows.key_parts(key, answers)
                    theirs = encode(value)[tuples] if isinstance(mine, np.ndarray) else value.take(pa.array(tuples))
                    same &= mine == theirs if isinstance(mine, np.ndarray) else truth(pc.equal(mine, theirs))
                found[tuples[same]] = True
            for column in columns:
                if column.null_count:
                    found &= np.asarray(column.is_valid())
        return found

    def _codes(self, source: int | None, expr: Expr, packet: Packet, rows: Sequence[Rows]) -> Ints:
        if source is not None:
            codes: Ints = rows[source].key_values((expr,))[packet.rows[source]]
            return codes
        return encode(decode(evaluate(expr, {}, 1, ErrorCount()))).repeat(packet.size)

    def _probe(self, on: tuple[Expr, ...], codes: Ints) -> Iterator[tuple[Ints, Ints]]:
        stem = self.answered
        limits = stem.prober.limits(NO_BOUND, NO_BOUND, np.array([stem.built]), _ROOM, self._passed)
        return stem.prober.probe_key(on, codes, np.arange(codes.size), limits)

    def ask(self, keys: pa.RecordBatch, since: Ints, mark: int) -> pa.RecordBatch:
        """Tuples wait for these keys, one for each tuple; returns those that are not asked yet, each once."""
        table = pa.table({**dict(zip(self.columns, keys.columns, strict=True)), _SINCE: since})
        found = table.group_by(list(self.columns)).aggregate([(_SINCE, "min")]).combine_chunks()
        new: list[int] = []
        times = found[f"{_SINCE}_min"].to_pylist()
        for number, (key, time) in enumerate(zip(values(found.select(self.columns)), times, strict=True)):
            waits = self.asked.get(key)
            if waits is None:
                new.append(number)
                self.asked[key] = Wait(time, mark)
            elif time < waits.since:
                self.asked[key] = Wait(time, waits.mark)
        return found.select(list(self.columns)).take(new).combine_chunks().to_batches()[0] if new else keys.slice(0, 0)

    def asked_keys(self, stream: BoundStream) -> pa.RecordBatch:
        """All keys that are asked and not answered."""
        columns = [[np.nan if v == _NOT_A_NUMBER else v for v in column] for column in zip(*self.asked, strict=True)]
        types = [stream.schema.field(name).type for name in self.columns]
        return pa.record_batch(
            [
                pa.array(column if pa.types.is_floating(type) else raw, type)
                for column, raw, type in zip(columns, zip(*self.asked, strict=True), types, strict=True)
            ],
            list(self.columns),
        )

    def answer(self, keys: pa.RecordBatch) -> dict[KeyValues, Wait]:
        """These keys are answered; returns who waited for them. Keys that nobody waits for were answered before."""
        found: dict[KeyValues, Wait] = {}
        which: list[int] = []
        for number, key in enumerate(values(keys)):
            waits = self.asked.pop(key, None)
            if waits is not None:
                found[key] = waits
                which.append(number)
        if which:
            self._cover(keys if len(which) == keys.num_rows else keys.take(pa.array(which)))
        return found

    def _cover(self, keys: pa.RecordBatch) -> None:
        known = {self._of_columns[name]: keys.column(name) for name in self.columns}
        needed = self.answered.layout.needed
        of_keys = {key: evaluate(key, known, keys.num_rows, ErrorCount()) for key in needed}
        self.answered.rows.append(of_keys, np.zeros(keys.num_rows, np.int64), None)
        self.answered.build(0, keys.num_rows)

    def commit(self) -> None:
        """Events before it cannot be undone any more."""
        self.answered.commit()
        self._committed = dict(self.asked)

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self.answered.wind_back()
        self.asked = dict(self._committed)


@dataclass
class KnownTable:
    """What a slot knows of one table."""

    stream: BoundStream
    sources: tuple[int, ...]
    indexes: dict[int, Index]
    scan: int | None
    """The access method that is a scan."""
    scanned: list[pa.RecordBatch] = field(default_factory=list)
    """The rows that a scan has brought which has not ended."""
    committed: int = 0
    """How many of these batches came before the last commit."""
    again: Counter[KeyValues] = field(default_factory=Counter)
    """The rows that a scan which was begun again will bring for the second time."""

    def take_scanned(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a scan; returns those that are new."""
        for index in self.indexes.values():
            rows = _without(rows, index.has(rows))
        if self.again:
            rows = _beyond(rows, self.again)
        self.scanned.append(rows)
        return rows

    def wind_back(self) -> None:
        """Undo everything since the last commit. If there was a scan it begins again, and brings the rows again that
        came before."""
        del self.scanned[self.committed :]
        self.again = Counter(row for part in self.scanned for row in values(part))

    def beside_scan(self, rows: pa.RecordBatch, index: Index, keys: Collection[KeyValues]) -> pa.RecordBatch:
        """The rows of an answer without those that the scan has brought so far: of equal rows as many are left out as
        it has brought."""
        there = Counter(
            row
            for part in self.scanned
            for key, row in zip(values(part.select(list(index.columns))), values(part), strict=True)
            if key in keys
        )
        return _beyond(rows, there) if there else rows


@dataclass
class _Known:
    """What changes and is wound back as a whole."""

    marks: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    """For each mark the number of rows of each source that came before it. The first one is that of no failure."""
    late: list[Came] = field(default_factory=list)
    """The rows that came for keys that were asked after a mark."""
    complete: set[str] = field(default_factory=set)
    """The tables whose scan has ended: nothing is asked of them any more."""
    seeded: set[str] = field(default_factory=set)
    """The tables whose scan was begun (in the paper: by a seed tuple)."""

    def copy(self) -> _Known:
        """A copy."""
        return _Known(list(self.marks), list(self.late), set(self.complete), set(self.seeded))


class AccessModules:
    """The tables of a slot that are asked."""

    def __init__(self, query: BoundQuery, plan: Plan, arena: Arena) -> None:
        self._sources = len(query.sources)
        self.tables: dict[str, KnownTable] = {}
        for source in query.sources:
            stream = source.stream
            if not stream.is_asked or stream.name in self.tables:
                continue
            mine = tuple(n for n, s in enumerate(query.sources) if s.stream.name == stream.name)
            ways = [way for n in mine for way in plan.bindings[n]]
            by_method = {m: [way for way in ways if way.method == m] for m in dict.fromkeys(w.method for w in ways)}
            scan = next((m for m, method in enumerate(stream.methods) if method.is_scan), None)
            indexes = {m: Index(arena, some) for m, some in by_method.items()}
            self.tables[stream.name] = KnownTable(stream, mine, indexes, scan)
        self._by_scan = {source.stream.name for n, source in enumerate(query.sources) if not plan.bindings[n]}
        """The tables for whose scan all rows wait."""
        self._of_source = {n: table for table in self.tables.values() for n in table.sources}
        self._now, self._committed = _Known(), _Known()
        self._requests: list[Request] = []
        self._came: list[Came] = []
        """The rows that came since the last commit."""
        self.failures: list[Failure] = []
        """The lookups that have failed since they were last taken."""

    # Tuples ask

    def ask(self, ways: Sequence[IndexBinding], packet: Packet, rows: Sequence[Rows], gather: Gather) -> None:
        """Tuples probe the SteM of a table: ask for the rows that it may lack. `ways` are those in which the tuples
        can ask."""
        table = self._of_source[ways[0].table]
        if table.stream.name in self._now.complete:
            return
        lacking = np.arange(packet.size)
        for way in ways:
            some = packet if lacking.size == packet.size else packet.take(lacking)
            lacking = lacking[~table.indexes[way.method].covers(way, some, rows)]
            if not lacking.size:
                return
        way = ways[0]
        for part, (keys, which) in in_parts(packet.take(lacking), lambda some: (some, self._keys(way, some, gather))):
            if keys.num_rows:
                since = self._oldest(part, rows)[which]
                new = table.indexes[way.method].ask(keys, since, len(self._now.marks) - 1)
                if new.num_rows:
                    self._requests.append(Request(table.stream.name, way.method, new))

    def _keys(self, way: IndexBinding, packet: Packet, gather: Gather) -> tuple[pa.RecordBatch, Ints]:
        """The keys that tuples ask for, and which tuples these are: a value that the column of the table cannot have
        matches no row."""
        known = gather(packet, [b.expr for b in way.bound_by])
        columns, keep = [], np.ones(packet.size, np.bool_)
        for column, bound in zip(way.columns, way.bound_by, strict=True):
            value = evaluate(bound.expr, known, packet.size, ErrorCount())
            if bound.expr.type != column.type:
                narrow = cast(bound.expr, column.type, try_=True)
                fits = evaluate(narrow, known, packet.size, ErrorCount())
                back = evaluate(cast(narrow, bound.expr.type), known, packet.size, ErrorCount())
                keep &= (encode(back) == encode(value)) & truth(fits.is_valid())
                value = fits
            columns.append(decode(value).cast(column.type))
        which = np.flatnonzero(keep)
        batch = pa.record_batch(columns, [column.name for column in way.columns])
        return (batch if which.size == packet.size else batch.take(pa.array(which))), which

    def seed(self) -> None:
        """Begin the scans that are not begun."""
        for name, table in self.tables.items():
            if table.scan is not None and name not in self._now.seeded:
                self._now.seeded.add(name)
                self._requests.append(Request(name, table.scan, pa.record_batch([])))

    def requests(self) -> list[Request]:
        """What was asked since the last call."""
        found, self._requests = self._requests, []
        return found

    # Answers come

    def answered(self, answer: Answer, built: Sequence[int]) -> list[NewRows]:
        """Take an answer; returns its new rows. `built` are the rows of each source that were built so far."""
        table = self.tables[answer.table]
        if answer.method == table.scan:
            return self._scanned(table, answer)
        index = table.indexes[answer.method]
        if answer.error is not None:
            self._fail(table, index, answer, built)
            return []
        is_complete = table.stream.name in self._now.complete
        waits = index.answer(answer.keys)
        if is_complete or not waits or not answer.rows.num_rows:
            return []
        rows = answer.rows
        for other in table.indexes.values():
            if other is not index:
                rows = _without(rows, other.has(rows))
        if table.scanned:
            rows = table.beside_scan(rows, index, waits)
        marks = {wait.mark for wait in waits.values()}
        since = min(wait.since for wait in waits.values())
        if len(marks) == 1 and len(waits) == answer.keys.num_rows:
            return [NewRows(rows, since, marks.pop())]
        keys = list(values(rows.select(list(index.columns))))
        of_rows = np.array([waits[key].mark if key in waits else -1 for key in keys], np.int64)
        return [NewRows(rows.filter(pa.array(of_rows == mark)), since, mark) for mark in sorted(marks)]

    def _scanned(self, table: KnownTable, answer: Answer) -> list[NewRows]:
        name = table.stream.name
        if answer.error is not None:
            raise JobError(f"the scan of table {name} failed: {answer.error}")
        if name in self._now.complete:
            return []
        held = self.held
        rows = table.take_scanned(answer.rows)
        if answer.is_last:
            self._now.complete.add(name)
            for index in table.indexes.values():
                index.asked.clear()
        return [NewRows(rows, FOREVER if held is None else held, 0)] if rows.num_rows else []

    def _fail(self, table: KnownTable, index: Index, answer: Answer, built: Sequence[int]) -> None:
        asked = [number for number, key in enumerate(values(answer.keys)) if index.asked.pop(key, None) is not None]
        if asked:
            self._now.marks.append(tuple(built))
            reason = answer.error or ""
            self.failures.append(Failure(table.stream.name, answer.keys.take(pa.array(asked)), reason))

    def came(self, source: int, first: int, last: int, new: NewRows) -> None:
        """The new rows of an answer are stored under these numbers."""
        if last > first:
            came = Came(source, first, last, new.since, new.mark)
            self._came.append(came)
            if new.mark:
                self._now.late.append(came)

    def own(self, packet: Packet) -> Packet:
        """The complete tuples without those that were dead when a row of them was asked for."""
        keep = np.ones(packet.size, np.bool_)
        for late in self._now.late:
            which = late.among(packet.rows[late.source])
            if which.size:
                after = np.zeros(which.size, np.bool_)
                for source, before in enumerate(self._now.marks[late.mark]):
                    if source != late.source:
                        after |= packet.rows[source][which] >= before
                keep[which] &= after
        return packet.kept(keep)

    def _oldest(self, packet: Packet, rows: Sequence[Rows]) -> Ints:
        """The oldest time of a row that waits if these tuples wait: of their components, or of those that waited for a
        row with which a tuple started."""
        found = np.full(packet.size, FOREVER)
        for source, of_source in packet.rows.items():
            if source >= 0 and rows[source].timed:
                np.minimum(found, rows[source].times.values[of_source], out=found)
        for came in self._came:
            if came.source in packet.rows:
                which = came.among(packet.rows[came.source])
                found[which] = np.minimum(found[which], came.since)
        return found

    @property
    def has_late(self) -> bool:
        """Whether some rows join only tuples that came after a mark."""
        return bool(self._now.late)

    # Who waits

    @property
    def held(self) -> int | None:
        """The oldest time of a row that waits for an answer; the oldest possible one while all rows wait for a scan."""
        if any(name in self._by_scan and name not in self._now.complete for name in self.tables):
            return -FOREVER
        waits = (index.asked.values() for table in self.tables.values() for index in table.indexes.values())
        return min((wait.since for some in waits for wait in some), default=None)

    @property
    def waiting(self) -> int:
        """The number of keys that are asked and not answered, and of scans that have not ended."""
        scans = len(self._now.seeded - self._now.complete)
        return scans + sum(len(index.asked) for table in self.tables.values() for index in table.indexes.values())

    def commit(self) -> None:
        """Events before it cannot be undone any more."""
        for table in self.tables.values():
            for index in table.indexes.values():
                index.commit()
            if table.stream.name in self._now.complete:
                table.scanned.clear()
                table.again.clear()
            table.committed = len(table.scanned)
        self._committed = self._now.copy()
        self._came.clear()

    def wind_back(self) -> None:
        """Undo everything since the last commit. What was asked before it is asked again: the answers may have come
        since then. The caller drops the answers to earlier requests."""
        self._now, self._requests = self._committed.copy(), []
        self.failures.clear()
        self._came.clear()
        for table in self.tables.values():
            for method, index in table.indexes.items():
                index.wind_back()
                if index.asked:
                    self._requests.append(Request(table.stream.name, method, index.asked_keys(table.stream)))
            table.wind_back()
            if table.scan is not None and table.stream.name in self._now.seeded - self._now.complete:
                self._requests.append(Request(table.stream.name, table.scan, pa.record_batch([])))

    @property
    def nbytes(self) -> int:
        """Bytes held by EOT tuples."""
        return sum(i.answered.nbytes for table in self.tables.values() for i in table.indexes.values())


def values(keys: pa.RecordBatch | pa.Table) -> Iterator[KeyValues]:
    """The keys as values that can be compared and hashed; NaN equals itself.

    >>> list(values(pa.record_batch({"a": [1, 2], "b": ["x", "y"]})))
    [(1, 'x'), (2, 'y')]
    """
    if not keys.num_columns:
        return repeat((), keys.num_rows)
    return zip(*(_hashable(column) for column in keys.columns), strict=True)


def _hashable(column: pa.Array | pa.ChunkedArray) -> list[object]:
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [_NOT_A_NUMBER if value != value else value for value in values]
    return [repr(value) for value in values] if pa.types.is_nested(column.type) else values


def _without(rows: pa.RecordBatch, known: NDArray[np.bool_]) -> pa.RecordBatch:
    return rows.filter(pa.array(~known)) if known.any() else rows


def _beyond(rows: pa.RecordBatch, there: Counter[KeyValues]) -> pa.RecordBatch:
    """The rows without those that are there already: of equal rows as many are left out as are there. Those are taken
    out of `there`."""
    keep = []
    for row in values(rows):
        keep.append(not there[row])
        there[row] -= there[row] > 0
    return rows.filter(pa.array(keep, pa.bool_()))
