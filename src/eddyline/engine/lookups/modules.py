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

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.model import BoundQuery
from eddyline.codec import Snapshot
from eddyline.engine.lookups.answers import Arrivals, Came, Failure, Known, KnownSnapshot, NewRows, UnreadableRows
from eddyline.engine.lookups.eviction import forget, note_answers
from eddyline.engine.lookups.index import Index, IndexSnapshot, keys_of
from eddyline.engine.lookups.logged_answers import asked_at, came_at, keys_section, rows_section
from eddyline.engine.lookups.look_up import Answer, AnswersKept, DeadRows, Outgoing, Request
from eddyline.engine.lookups.partial_tuples import PartialTuples
from eddyline.engine.lookups.ranked_keys import ranked_again
from eddyline.engine.lookups.restored import loaded, restore_small_state, small_state
from eddyline.engine.lookups.retry_marks import AskedAgain
from eddyline.engine.lookups.table import KnownTable, ScanSnapshot, known_tables, without
from eddyline.engine.preferred_rows import PreferredRows
from eddyline.engine.tuning import EngineTuning
from eddyline.errors import JobError
from eddyline.plan.bindings import IndexBinding
from eddyline.plan.bounds import FOREVER
from eddyline.plan.plan import Plan
from eddyline.plan.steps import Probe
from eddyline.routing.asker import Gather
from eddyline.routing.decisions import Decision
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet, in_parts
from eddyline.state.arena import Arena
from eddyline.state.key_map import distinct
from eddyline.state.part import Cut, Named, Part
from eddyline.state.rows import Rows
from eddyline.state.stem import SteM

Ints = NDArray[np.int64]


class AccessSnapshot(Snapshot, frozen=True):
    """All tables that are asked."""

    indexes: tuple[IndexSnapshot, ...]
    scans: tuple[ScanSnapshot, ...]
    now: KnownSnapshot
    committed: KnownSnapshot
    paces: tuple[tuple[float | None, ...], ...]
    """By table, the seconds that each access method takes for an answer."""


class AccessModules(Part):
    """The tables of a slot that are asked."""

    name, snapshot = "lookups", AccessSnapshot

    def __init__(
        self,
        query: BoundQuery,
        plan: Plan,
        arena: Arena,
        clock: Callable[[], float],
        tuning: EngineTuning,
        stems: Sequence[SteM],
    ) -> None:
        """`stems` are those of the sources."""
        self._stems = stems
        self.decisions: list[Decision] = []
        """Which access methods are asked now, and why, since they were last taken."""
        self.tables = known_tables(query, plan, arena, clock, tuning, self.decisions)
        self._by_scan = {source.stream.name for n, source in enumerate(query.sources) if not plan.bindings[n]}
        """The tables for whose scan all rows wait."""
        self._indexes = [index for table in self.tables.values() for index in table.indexes.values()]
        self._of_source = {n: table for table in self.tables.values() for n in table.sources}
        self._streams = {number for number, source in enumerate(query.sources) if not source.stream.is_table}
        self._now, self._committed = Known(), Known()
        self._ways = [way for ways in plan.bindings for way in ways]
        self.preferred: PreferredRows | None = None
        """Which tuples ask first."""
        self.is_ranked = True
        """Whether keys that are asked are in their line as the preference says."""
        self.outgoing = Outgoing()
        self._came = Arrivals()
        self._logged: dict[str, list[pa.RecordBatch]] = {}
        self.batch = 0
        """The number of the batch."""
        self._limited: Collection[KnownTable] = ()
        """The tables whose answers are not kept for ever."""
        self._waiting = PartialTuples(query.partial)
        """The tuples of this batch that wait."""
        self.failures: list[Failure] = []
        """The lookups that have failed since they were last taken."""
        self.unreadable: list[UnreadableRows] = []
        """The rows that could not be read, likewise."""

    # Answers are forgotten

    def evict(self, kept: Mapping[str, AnswersKept], now: float, watermark: int | None, stems: Sequence[SteM]) -> bool:
        """Before a batch: forget answers that are too old or too many. `stems` are those of the sources. While rows
        wait for an answer nothing is forgotten; returns whether something should be."""
        self._limited = [self.tables[name] for name in kept]
        return forget(self._now, self.tables, kept, now, self.batch, self.needs_since is not None, watermark, stems)

    def note_answers(self, now: float, stems: Sequence[SteM]) -> None:
        """The answers that have come in the batch came until now."""
        note_answers(self._now, self._limited, now, self.batch, stems)

    # Tuples ask

    def ask(self, step: Probe, packet: Packet, rows: Sequence[Rows], gather: Gather) -> None:
        """Tuples probe the SteM of a table: ask for the rows that it may lack. Those that wait now will probe the
        SteMs of other tables later, if they find a row: they ask these at once, unless most keys have no row."""
        lacking = self._lacking(step.target, step.asks, packet, rows)
        if not lacking.size:
            return
        self._waiting.add(step, lacking, gather)
        if step.asks:
            self._ask_for(step.asks, lacking, rows, gather)
        if step.ahead and (
            self._waiting.wanted or self._of_source[step.target].finds(step.asks[0].method, rows[step.target].stored)
        ):
            for ways in step.ahead:
                self._ask_for(ways, self._lacking(ways[0].table, ways, lacking, rows), rows, gather)

    def _ask_for(self, ways: Sequence[IndexBinding], packet: Packet, rows: Sequence[Rows], gather: Gather) -> None:
        """Ask for the rows that the SteM of a table lacks, in one of these ways."""
        table = self._of_source[ways[0].table]
        ways = ways[:1] if self._waiting.wanted else ways  # who is dead is known for one index (partial_tuples.py)
        by_index = {way.method: way for way in (*ways, *reversed(ways))}  # the first way of each, in their order
        for rank, some in ((0, packet),) if self.preferred is None else self.preferred.ranked(packet, gather):
            for part, known in in_parts(
                some, lambda some: (some, {n: keys_of(way, some, gather) for n, way in by_index.items()})
            ):
                since = self._came.oldest(part, rows)
                for number, keys, which in table.competing.shares(known):
                    new = table.indexes[number].asked.add(keys, since[which], self._now.marks.base, self.batch)
                    new = distinct(keys) if rank else new
                    if new.num_rows:
                        self.outgoing.send(table.competing.ask(number, new, rank))

    def check(self, step: Probe, packet: Packet, rows: Sequence[Rows], gather: Gather) -> None:
        """Check that tuples which have probed the SteM of a table have asked for what it lacks."""
        lacking = self._lacking(step.target, step.asks, packet, rows) if step.asks else packet.take(slice(0))
        for _ in in_parts(lacking, lambda some: self._of_source[step.target].check_asked(step.asks, some, gather)):
            pass

    def rank_again(self, stems: Sequence[SteM], gather: Gather) -> None:
        """Keys that are asked move forward if a preferred row asks for them, after another preference or after
        everything was asked again."""
        self.is_ranked = True
        if self.preferred is not None:
            for request in ranked_again(self.preferred, self._ways, self._of_source, stems, gather):
                self.outgoing.send(self.tables[request.table].competing.ask(request.method, request.keys, request.rank))

    def _lacking(self, target: int, ways: Sequence[IndexBinding], packet: Packet, rows: Sequence[Rows]) -> Packet:
        """The tuples that may match a row which is not in the SteM of a table. `ways` are those in which they ask."""
        table = self._of_source[target]
        is_complete = table.stream.name in self._now.complete
        return packet.take(slice(0)) if is_complete else table.lacking(ways, packet, rows)

    def waiting(self, eddy: Eddy, rows: Sequence[Rows]) -> list[Packet]:
        """At the end of a batch: the tuples that are partial results, because they asked in this batch and have no
        answer yet."""

        def lacking(table: int, packet: Packet) -> Packet:
            return self._lacking(table, eddy.plan.ways(packet.signature[0], table), packet, rows)

        return [packet for packet in map(self.own, self._waiting.take(eddy, lacking)) if packet.size]

    def seed(self) -> None:
        """Begin the scans that are not begun."""
        for name, table in self.tables.items():
            if table.scan is not None and name not in self._now.seeded:
                self._now.seeded.add(name)
                self.outgoing.send([Request(name, table.scan, pa.record_batch([]))])

    def look(self) -> None:
        """After tuples have asked: ask besides what slow access methods owe, or take it back."""
        for name, table in self.tables.items():
            self.outgoing.send([] if name in self._now.complete else table.competing.look())

    # Answers come

    def answered(self, answers: Sequence[Answer]) -> list[NewRows]:
        """Take answers of one access method; returns their new rows."""
        table, method = self.tables[answers[0].table], answers[0].method
        if method == table.scan:
            return [new for answer in answers for new in self._scanned(table, answer)]
        number = table.competing.index_of[method]
        for answer in answers:
            table.competing.answered(answer)
            self.is_ranked = self.is_ranked and not answer.is_withdrawn  # a preferred key is asked all the same
            if answer.error is not None:
                self._fail(table, table.indexes[number], answer)
        given = [answer for answer in answers if answer.error is None and not answer.is_withdrawn]
        return self._found(table, number, given) if given else []

    def _found(self, table: KnownTable, method: int, answers: Sequence[Answer]) -> list[NewRows]:
        """The new rows of answers of an index."""
        name, index = table.stream.name, table.indexes[method]
        waited = index.answer(pa.concat_batches([answer.keys for answer in answers]))
        if name in self._now.complete or not waited.keys.num_rows:
            return []
        self._log(keys_section(name, method), waited.keys)
        if table.scan is None:  # a scan brings all such rows
            for dead in index.dead_of(waited, answers):
                self._note_unreadable(table, index, dead)
        rows = index.rows_of(waited, answers)
        for other in table.indexes.values():
            if other is not index:
                rows = without(rows, other.has(rows))
        if table.scanned:
            rows = table.beside_scan(rows, index, set(waited.values))
        if not rows.num_rows:
            return []
        if waited.marks is None:
            return [self._new(name, rows, waited.since, 0)]
        marks = table.marks_of(rows, index, waited)
        which = {mark: pa.array(marks == mark) for mark in np.unique(marks).tolist()}
        return [self._new(name, rows.filter(some), waited.since, mark) for mark, some in which.items()]

    def _note_unreadable(self, table: KnownTable, index: Index, dead: DeadRows) -> None:
        """Rows that an index has answered, without those that another one has answered before."""
        known = np.zeros(dead.rows.num_rows, np.bool_)
        for other in table.indexes.values():
            if other is not index:
                known |= other.has(dead.rows)
        new = dead.having(~known)
        if new is not None:
            self.unreadable.append(UnreadableRows(table.stream.name, new, by_scan=False))

    def _new(self, table: str, rows: pa.RecordBatch, since: int, mark: int) -> NewRows:
        self._log(rows_section(table), asked_at(mark, rows))
        return NewRows(rows, since, mark)

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
        held = self.needs_since
        table.competing.scanned(answer.rows)
        rows = table.take_scanned(answer.rows)
        table.take_dead(answer.dead)
        if answer.is_last:
            self._now.complete.add(name)
            self.unreadable += [UnreadableRows(name, dead, by_scan=True) for dead in table.dead]
            table.dead.clear()
            for index in table.indexes.values():
                index.asked.clear()
            self.outgoing.send(table.competing.ended())
        since = FOREVER if held is None else held
        return [self._new(name, rows, since, self._now.marks.base)] if rows.num_rows else []

    def _fail(self, table: KnownTable, index: Index, answer: Answer) -> None:
        if table.scan is not None and table.stream.name not in self._now.complete:
            return  # the scan brings the rows: whoever waits for the key goes on waiting
        lost, requests = table.competing.failed(answer)
        self.outgoing.send(requests)
        waited = index.asked.take(lost)
        if waited.keys.num_rows:
            index.asked.fail(waited.keys, self.batch + 1)
            self._waiting.fail(table.competing.index_of[answer.method], table.sources, set(waited.values))
            self.failures.append(Failure(table.stream.name, waited.keys, answer.error or ""))

    def failed(self) -> list[Failure]:
        """The lookups that have failed since the last call."""
        found, self.failures = self.failures, []
        return found

    def not_readable(self, slot: int) -> list[UnreadableRows]:
        """The rows that could not be read since the last call, as far as this slot counts them."""
        found, self.unreadable = self.unreadable, []
        return [one for one in found if one.is_told_by(slot)]

    def came(self, source: int, first: int, last: int, new: NewRows) -> None:
        """The new rows of an answer are stored under these numbers."""
        if last > first:
            self._came.rows.append(Came(source, first, last, new.since))
            self._now.marks.note(source, first, last, new.mark)

    def own(self, packet: Packet) -> Packet:
        """The complete tuples without those that were there before a row of them was asked for again."""
        return self._now.marks.own(packet)

    @property
    def has_late(self) -> bool:
        """Whether some rows join only tuples that came after a mark."""
        return bool(self._now.marks.rows)

    # Who waits

    @property
    def needs_since(self) -> int | None:
        """The oldest time of a row that waits for an answer; the oldest possible one while all rows wait for a scan."""
        if any(name in self._by_scan and name not in self._now.complete for name in self.tables):
            return -FOREVER
        waits = (index.asked.oldest for index in self._indexes)
        return min((oldest for oldest in waits if oldest is not None), default=None)

    def commit(self, cut: Cut) -> None:
        stems = self._stems
        live = {source: stem.rows.min_live for source, stem in enumerate(stems)}
        passed = self._now.marks.passed({source: row for source, row in live.items() if source in self._streams})
        for table in self.tables.values():
            for index in table.indexes.values():
                index.asked.forget_failures(passed)
                index.commit()
            if table.stream.name in self._now.complete:
                table.end_scan()
            table.committed = len(table.scanned)
        used = {mark for index in self._indexes for mark in index.asked.marks}
        self._now.marks.end([stem.built for stem in stems], cut.watermark, live, used)
        self._committed = self._now.copy()
        self._came.rows.clear()
        self._logged.clear()

    def wind_back(self) -> None:
        """Undo everything since the last commit. What was asked before it is asked again: the answers may have come
        since then. The caller drops the answers to earlier requests."""
        self._now = self._committed.copy()
        self._waiting.clear()
        self.failures.clear()
        self.unreadable.clear()
        self._came.rows.clear()
        self._logged.clear()
        for table in self.tables.values():
            for index in table.indexes.values():
                index.wind_back()
            table.wind_back()
        self.ask_again()

    def ask_again(self) -> None:
        """Ask for everything that is asked: nobody else will bring the answers."""
        self.outgoing.clear()
        self.is_ranked = False
        for name, table in self.tables.items():
            self.outgoing.send(table.ask_again(name in self._now.seeded - self._now.complete))

    # A checkpoint: answers are in the log, the rest in the small state

    @property
    def marks(self) -> AskedAgain:
        """The marks at which keys were asked again."""
        return self._now.marks

    @property
    def forgotten(self) -> Mapping[str, int]:
        """By table, the batch before which its answers are forgotten."""
        return self._now.forgotten

    def begin_load(self, batch: int, stems: Sequence[SteM]) -> None:
        """The rows of a batch are next, of those that the log has."""
        self.batch = batch
        self.marks.load(batch, [stem.rows.stored for stem in stems])

    def load(self, sections: Mapping[str, Sequence[pa.RecordBatch]]) -> list[tuple[str, NewRows]]:
        """Take what the log has of the answers that this slot got in the batch (`logged`); returns the rows by
        table."""
        return list(loaded(self._now, self.tables, self.batch, sections))

    def end_load(self, sections: Mapping[str, Sequence[pa.RecordBatch]], stems: Sequence[SteM]) -> None:
        """The rows that `load` returned are stored."""
        came = [came_at(batch)[0] for batches in sections.values() for batch in batches if batch.num_rows]
        note_answers(self._now, self.tables.values(), max(came, default=0.0), self.batch, stems)

    def durable(self, cut: Cut) -> Named:
        """What was asked and answered; the answers themselves are in the log. A job that asks tables keeps its slots,
        so `restore_durable` gets that of one slot."""
        return small_state(self._now, self.tables)

    def restore_durable(self, own: Named, any_slot: Named) -> None:
        restore_small_state(self._now, self.tables, own)

    # Another process

    def saved(self) -> AccessSnapshot:
        """A snapshot for another process."""
        return AccessSnapshot(
            indexes=tuple(index.saved() for index in self._indexes),
            scans=tuple(table.saved() for table in self.tables.values()),
            now=self._now.saved(),
            committed=self._committed.saved(),
            paces=tuple(table.competing.saved() for table in self.tables.values()),
        )

    def restore(self, saved: AccessSnapshot) -> None:
        """Restore from a snapshot."""
        for index, of in zip(self._indexes, saved.indexes, strict=True):
            index.restore(of)
        for table, scan, paces in zip(self.tables.values(), saved.scans, saved.paces, strict=True):
            table.restore(scan)
            table.competing.restore(paces)
        self._now, self._committed = Known.of(saved.now), Known.of(saved.committed)

    @property
    def state_bytes(self) -> int:
        """Bytes held by EOT tuples."""
        return sum(index.answered.nbytes for index in self._indexes)
