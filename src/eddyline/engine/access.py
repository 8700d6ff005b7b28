"""Access modules as a slot sees them: what it knows of the tables that are asked, what it asks for, and who waits.

The SteM of such a table is a cache of all rows that its access methods have answered, for all streams and tuples that
ask. A row that comes as an answer is built and routed as any other row, so it finds the tuples that waited for it: they
need not be kept, because the rows that they consist of are in SteMs (BuildFirst). What is kept here:

- for each index of a table the keys that are answered completely: a SteM of EOT tuples (paper 001, 2.1.3). A tuple that
  probes the table's SteM and whose key is not among them *asks* (ProbeCompletion);
- the keys that are asked and not answered, each with the oldest time of a tuple that waits for it. A key that is asked
  already is not asked again (BoundedRepetition), and rows that are not older than `held` do not expire;
- *marks* (asked_again.py), because a key may be asked again: after its lookup failed, or its answer was forgotten.

docs/design/access.md argues why each result is made exactly once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.functions import cast
from eddyline.bound.functions.arrays import truth
from eddyline.bound.model import BoundQuery
from eddyline.bound.types import decode
from eddyline.codec import Snapshot
from eddyline.engine.answers import Answers, Came, Failure, Known, KnownSnapshot, NewRows
from eddyline.engine.asked_index import Index, IndexSnapshot
from eddyline.engine.known_table import KnownTable, ScanSnapshot, without
from eddyline.engine.logged_answers import keys_section, rows_section
from eddyline.engine.lookups import Answer, AnswersKept, Request
from eddyline.errors import JobError
from eddyline.plan.bindings import IndexBinding
from eddyline.plan.bounds import FOREVER
from eddyline.plan.plan import Plan
from eddyline.routing.asker import Gather
from eddyline.routing.packet import Packet, in_parts
from eddyline.state.arena import Arena
from eddyline.state.keys import encode
from eddyline.state.rows import Rows
from eddyline.state.stem import SteM

Ints = NDArray[np.int64]


class AccessSnapshot(Snapshot, frozen=True):
    """All tables that are asked."""

    indexes: tuple[IndexSnapshot, ...]
    scans: tuple[ScanSnapshot, ...]
    now: KnownSnapshot
    committed: KnownSnapshot


class AccessModules:
    """The tables of a slot that are asked."""

    def __init__(self, query: BoundQuery, plan: Plan, arena: Arena) -> None:
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
        self._indexes = [index for table in self.tables.values() for index in table.indexes.values()]
        self._of_source = {n: table for table in self.tables.values() for n in table.sources}
        self._now, self._committed = Known(), Known()
        self._requests: list[Request] = []
        self._came: list[Came] = []
        """The rows that came since the last commit."""
        self._logged: dict[str, list[pa.RecordBatch]] = {}
        self._time = 0.0
        """The time of the batch, in seconds."""
        self._limited: Collection[str] = ()
        """The tables whose answers are not kept for ever."""
        self.failures: list[Failure] = []
        """The lookups that have failed since they were last taken."""

    # Answers are forgotten

    def forget(self, kept: Mapping[str, AnswersKept], now: float, stems: Sequence[SteM]) -> bool:
        """Before a batch: forget answers that are too old or too many, whole batches of them. `stems` are those of the
        sources. While rows wait for an answer nothing is forgotten; returns whether something should be."""
        self._limited = kept.keys()
        self._time, gone, waits = now, list[Answers](), self.held is not None
        for name, limits in kept.items():
            table, mine = self.tables[name], [a for a in self._now.answers if a.table == name]
            last = [stems[source].rows.stored for source in table.sources]
            for answers in mine:
                is_old = limits.seconds is not None and now - answers.came >= limits.seconds
                newer = sum(end - first for end, first in zip(last, answers.rows, strict=True))
                too_many = limits.rows is not None and answers is not mine[-1] and newer >= limits.rows
                if not is_old and not too_many:
                    break
                gone.append(answers)
            if gone and gone[-1].table == name:
                if len(table.indexes) > 1:  # an answer may lack rows that another index had brought before
                    gone += [answers for answers in mine if answers not in gone]
                if not waits:
                    self._forget(table, gone[-1], stems)
        if gone and not waits:
            self._now.answers = [answers for answers in self._now.answers if answers not in gone]
            self._now.marks.base = self._now.marks.add([stem.built for stem in stems])
        return bool(gone) and waits

    @staticmethod
    def _forget(table: KnownTable, last: Answers, stems: Sequence[SteM]) -> None:
        for source, rows in zip(table.sources, last.rows, strict=True):
            stems[source].expire_before(rows)
        for index, keys in zip(table.indexes.values(), last.keys, strict=True):
            index.answered.expire_before(keys)

    def _note_answers(self, stems: Sequence[SteM]) -> None:
        """Where the answers end that have come so far."""
        for name, table in ((name, self.tables[name]) for name in self._limited):
            rows = tuple(stems[source].rows.stored for source in table.sources)
            keys = tuple(index.answered.built for index in table.indexes.values())
            mine = [a for a in self._now.answers if a.table == name]
            if (mine[-1].rows, mine[-1].keys) != (rows, keys) if mine else any(rows + keys):
                self._now.answers.append(Answers(name, self._time, rows, keys))

    # Tuples ask

    def ask(self, ways: Sequence[IndexBinding], packet: Packet, rows: Sequence[Rows], gather: Gather) -> None:
        """Tuples probe the SteM of a table: ask for the rows that it may lack. `ways` are those in which the tuples
        can ask."""
        table = self._of_source[ways[0].table]
        if table.stream.name in self._now.complete:
            return
        for way in ways:
            lacking = table.indexes[way.method].lacking(way, packet, rows)
            if not lacking.size:
                return
            packet = packet if lacking.size == packet.size else packet.take(lacking)
        way = ways[0]
        for part, (keys, which) in in_parts(packet, lambda some: (some, self._keys(way, some, gather))):
            if keys.num_rows:
                since = self._oldest(part, rows)[which]
                new = table.indexes[way.method].asked.add(keys, since, self._now.marks.base)
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
            value = decode(value)
            columns.append(value if value.type == column.type else value.cast(column.type))
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
        waited = index.answer(answer.keys)
        if is_complete or not waited.values:
            return []
        self._log(keys_section(answer.table, answer.method), waited.keys)
        if not answer.rows.num_rows:
            return []
        rows = answer.rows
        for other in table.indexes.values():
            if other is not index:
                rows = without(rows, other.has(rows))
        if table.scanned:
            rows = table.beside_scan(rows, index, set(waited.values))
        if len(waited.values) < answer.keys.num_rows:
            rows = index.only(rows, set(waited.values))
        self._log(rows_section(answer.table), rows)
        if not waited.marks or not rows.num_rows:
            return [NewRows(rows, waited.since, 0)]
        marks = waited.marks_of(rows.select(list(index.columns)))
        for other in table.indexes.values():  # who waits for a row by another index gets it now: it is there once
            if other is not index and other.asked:
                marks = other.asked.least_marks(rows.select(list(other.columns)), marks)
        which = {mark: pa.array(marks == mark) for mark in np.unique(marks).tolist()}
        return [NewRows(rows.filter(some), waited.since, mark) for mark, some in which.items()]

    def _log(self, section: str, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._logged.setdefault(section, []).append(batch)

    def logged(self) -> dict[str, list[pa.RecordBatch]]:
        """What was answered since the last call, for the log: new rows, and keys."""
        found, self._logged = self._logged, {}
        return found

    def _scanned(self, table: KnownTable, answer: Answer) -> list[NewRows]:
        name = table.stream.name
        if answer.error is not None:
            raise JobError(f"the scan of table {name} failed: {answer.error}")
        if name in self._now.complete:
            return []
        held = self.held
        rows = table.take_scanned(answer.rows)
        self._log(rows_section(name), rows)
        if answer.is_last:
            self._now.complete.add(name)
            for index in table.indexes.values():
                index.asked.clear()
        return [NewRows(rows, FOREVER if held is None else held, 0)] if rows.num_rows else []

    def _fail(self, table: KnownTable, index: Index, answer: Answer, built: Sequence[int]) -> None:
        if table.scan is not None and table.stream.name not in self._now.complete:
            return  # the scan brings the rows: whoever waits for the key goes on waiting
        waited = index.asked.take(answer.keys)
        if waited.keys.num_rows:
            index.asked.fail(waited.values, self._now.marks.add(built))
            self.failures.append(Failure(table.stream.name, waited.keys, answer.error or ""))

    def failed(self) -> list[Failure]:
        """The lookups that have failed since the last call."""
        found, self.failures = self.failures, []
        return found

    def came(self, source: int, first: int, last: int, new: NewRows) -> None:
        """The new rows of an answer are stored under these numbers."""
        if last > first:
            self._came.append(Came(source, first, last, new.since))
            self._now.marks.note(source, first, last, new.mark)

    def own(self, packet: Packet) -> Packet:
        """The complete tuples without those that were there before a row of them was asked for again."""
        return self._now.marks.own(packet)

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
        return bool(self._now.marks.rows)

    # Who waits

    @property
    def held(self) -> int | None:
        """The oldest time of a row that waits for an answer; the oldest possible one while all rows wait for a scan."""
        if any(name in self._by_scan and name not in self._now.complete for name in self.tables):
            return -FOREVER
        waits = (index.asked.oldest for index in self._indexes)
        return min((oldest for oldest in waits if oldest is not None), default=None)

    def commit(self, stems: Sequence[SteM]) -> None:
        """Events before it cannot be undone any more."""
        self._note_answers(stems)
        for table in self.tables.values():
            for index in table.indexes.values():
                index.commit()
            if table.stream.name in self._now.complete:
                table.scanned.clear()
                table.again.clear()
            table.committed = len(table.scanned)
        used = {mark for index in self._indexes for mark in index.asked.marks}
        self._now.marks.prune({s: stem.rows.min_live for s, stem in enumerate(stems)}, used)
        self._committed = self._now.copy()
        self._came.clear()
        self._logged.clear()

    def wind_back(self) -> None:
        """Undo everything since the last commit. What was asked before it is asked again: the answers may have come
        since then. The caller drops the answers to earlier requests."""
        self._now = self._committed.copy()
        self.failures.clear()
        self._came.clear()
        self._logged.clear()
        for table in self.tables.values():
            for index in table.indexes.values():
                index.wind_back()
            table.wind_back()
        self.ask_again()

    def ask_again(self) -> None:
        """Ask for everything that is asked: nobody else will bring the answers."""
        self._requests = []
        for name, table in self.tables.items():
            for method, index in table.indexes.items():
                if index.asked:
                    self._requests.append(Request(name, method, index.asked.keys))
            if table.scan is not None and name in self._now.seeded - self._now.complete:
                table.wind_back()
                self._requests.append(Request(name, table.scan, pa.record_batch([])))

    # A checkpoint: answers are in the log, the rest in the small state

    def load(self, sections: Mapping[str, Sequence[pa.RecordBatch]]) -> dict[str, list[pa.RecordBatch]]:
        """Take what the log has of the answers of this slot (`logged`); returns the rows of each table."""
        found: dict[str, list[pa.RecordBatch]] = {}
        for name, table in self.tables.items():
            for method, index in table.indexes.items():
                for keys in sections.get(keys_section(name, method), ()):
                    index.cover(keys)
            found[name] = [*sections.get(rows_section(name), ())]
            if table.scan is not None and name not in self._now.complete:
                for rows in found[name]:
                    table.load(rows)
        return found

    def small_state(self) -> list[tuple[str, pa.RecordBatch]]:
        """What cannot be rebuilt from rows: the keys that are asked, and which scans have begun or ended."""
        found = []
        for name, table in self.tables.items():
            for method, index in table.indexes.items():
                if index.asked:
                    found.append((keys_section(name, method), index.asked.saved()))
            if name in self._now.seeded:
                ended = pa.record_batch({"ended": [name in self._now.complete]})
                found.append((rows_section(name), ended))
        return found

    def restore_small_state(self, batches: Sequence[tuple[str, pa.RecordBatch]]) -> None:
        """Restore from the small state of one slot or several."""
        for name, table in self.tables.items():
            for section, batch in batches:
                if section == rows_section(name):
                    self._now.seeded.add(name)
                    if batch.column("ended")[0].as_py():
                        self._now.complete.add(name)
            for method, index in table.indexes.items():
                for section, batch in batches:
                    if section == keys_section(name, method) and name not in self._now.complete:
                        index.asked.merge(batch)

    # Another process

    def saved(self) -> AccessSnapshot:
        """A snapshot for another process."""
        return AccessSnapshot(
            indexes=tuple(index.saved() for index in self._indexes),
            scans=tuple(table.saved() for table in self.tables.values()),
            now=self._now.saved(),
            committed=self._committed.saved(),
        )

    def restore(self, saved: AccessSnapshot) -> None:
        """Restore from a snapshot."""
        for index, of in zip(self._indexes, saved.indexes, strict=True):
            index.restore(of)
        for table, scan in zip(self.tables.values(), saved.scans, strict=True):
            table.restore(scan)
        self._now, self._committed = Known.of(saved.now), Known.of(saved.committed)

    @property
    def nbytes(self) -> int:
        """Bytes held by EOT tuples."""
        return sum(index.answered.nbytes for index in self._indexes)
