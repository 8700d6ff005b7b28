"""A slot's turn in a batch. It is the same in a Spark task, in one process and in a simulation.

    the state as of the last commit -> feed -> advance -> results, log and small state to files -> leave the state

The turn begins with a slot whose state is that of the last commit (protocol/restoring.py).
The files of every attempt have names of their own. The returned record names them, and they count only if the driver
commits the record. Leaving the state is the last step: a turn that fails earlier leaves none, and the next attempt
rebuilds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eddyline.balance.hot_key import KeyCount, added
from eddyline.bound.evaluate import ErrorCount
from eddyline.counts import Counts, SpillCounts, StreamCounts
from eddyline.engine.groups.partial import combine
from eddyline.engine.intake import event_times
from eddyline.engine.lookups.logged_answers import got_by
from eddyline.engine.lookups.look_up import look_up
from eddyline.engine.lookups.slot_lookups import SlotLookups
from eddyline.engine.slot import Slot
from eddyline.engine.snapshot import counted
from eddyline.engine.split import Shipment
from eddyline.engine.standing import StateSize
from eddyline.engine.sweep.logged_places import CountedSpan
from eddyline.engine.sweep.sweep import Sweep
from eddyline.engine.tally import Spans
from eddyline.engine.watermarks import Watermarks
from eddyline.errors import InternalError
from eddyline.faults import reach
from eddyline.plan.bounds import FOREVER
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.commit import Commit
from eddyline.protocol.home import Home, horizon
from eddyline.protocol.outlet import RESULTS, Outlet, Staged
from eddyline.protocol.packing import REASON
from eddyline.protocol.parcel import CountsHead, Parcel, RejectedHead, RowsHead, as_shipment, logged_rows
from eddyline.protocol.record import COMBINED, Record
from eddyline.protocol.restoring import opened
from eddyline.protocol.slot_log import SlotLog
from eddyline.protocol.small_files import write_small
from eddyline.routing.gathered import snapshot
from eddyline.routing.report import Report, look

SOON = 0.6
"""The share of memory from which on rows are logged in the order of groups, because groups may leave soon: they leave
from 0.75 on (`spiller.HIGH`). Rows that were logged before are put in order when their segments are merged. Order costs
about an eighth of the time of a fast job, so a job with twice the memory that it needs does not pay for it."""


@dataclass(frozen=True)
class Turn:
    """The outcome of a turn: the record, and partial results, which `put_together` combines."""

    record: Record
    partial: list[pa.RecordBatch]


def take_turn(home: Home, decision: BatchDecision, number: int, attempt: str, parcels: Iterable[Parcel]) -> Turn:
    """Take the turn of slot `number`. `attempt` is a name that no other attempt has."""
    turn = OpenTurn(home, decision, number, attempt)
    try:
        for parcel in parcels:
            turn.take(parcel)
        turn.join()
        return turn.end()
    except BaseException:
        turn.drop()
        raise


class OpenTurn:
    """A turn that has begun: it takes parcels, joins, and ends. If one of that fails, or the batch is abandoned, it is
    dropped."""

    def __init__(
        self,
        home: Home,
        decision: BatchDecision,
        number: int,
        attempt: str,
        know: Callable[[int, Slot], None] | None = None,
    ) -> None:
        """Open the slot, and do what its groups do before the batch. `know` is told of the slot before it works;
        without it, the record has the work of the eddy in this turn."""
        self._home, self._decision, self._number = home, decision, number
        self._name = f"{decision.batch:08}-{number}-{attempt}"
        with home.changing:
            self.slot, self._rebuilt = opened(home, decision, number)
            self._open = True
            try:
                if know is not None:
                    know(number, self.slot)
                self._begin(with_report=know is None)
            except BaseException:
                self.drop()
                raise

    def _begin(self, with_report: bool) -> None:
        home, decision, slot = self._home, self._decision, self.slot
        self._errors, self._newest = slot.errors.count, dict[str, int]()
        self._begun = look_at(slot) if with_report else None
        self._spans, self._keys, self._tasks = list[Spans](), list[KeyCount](), 0
        self._output = _TurnResults(home, self._name, slot)
        self._counts = Counts()
        if decision.moves:
            self._counts = Counts(spill=_move(home, decision, self._number, slot, self._output))
        slot.pressure = decision.pressure
        is_new = decision.preference.since == decision.batch
        if is_new or decision.preference.text or slot.preferred is not None:
            slot.prefer(decision.preference, is_new)
        slot.replan()
        slot.watch(home.pulse)
        self._shipments: list[Shipment] = []
        self._rows_in = self._bytes_in = 0
        self._logged: dict[str, list[pa.RecordBatch]] = {}
        self._staged: dict[Outlet, list[str]] = {}

    def take(self, parcel: Parcel) -> None:
        """Take a parcel. Rows of streams are received by `join`, because their order matters; those of tables at
        once."""
        match parcel.head:
            case Shipment() as shipment:
                self._take(shipment, logged_rows(shipment) if self._home.keeps else None)
            case RowsHead() as head:
                self._take(*as_shipment(head, parcel.batch, self._number))
            case CountsHead() as head:
                for stream, when in head.newest.items():
                    self._newest[stream] = max(when, self._newest.get(stream, when))
                self._counts = self._counts + head.counts if self._tasks or self._decision.moves else head.counts
                self._spans.append(head.spans)
                self._keys += head.keys
                self._tasks += 1
            case RejectedHead(outlet):
                self._stage(outlet, parcel.batch)
            case other:
                raise InternalError(f"a slot received the parcel {other}")

    def _take(self, shipment: Shipment, log: pa.RecordBatch | None) -> None:
        self._rows_in += shipment.batch.num_rows
        if log is not None:
            self._bytes_in += shipment.batch.nbytes
            if log.num_rows:
                self._logged.setdefault(shipment.stream, []).append(log)
        if self._decision.kind == "load":
            self.slot.receive(shipment)
        else:
            self._shipments.append(shipment)

    def _stage(self, outlet: Outlet, rows: pa.RecordBatch) -> None:
        files = self._staged.setdefault(outlet, [])
        files += self._home.stage(outlet, f"{self._name}-{outlet.name}-{len(files)}", [rows])

    def join(self) -> None:
        """All parcels are there: receive their rows, and join what tables have to answer."""
        home, decision, slot = self._home, self._decision, self.slot
        reach("turn: everything was received")
        self._after = home.after(decision, self._newest)
        _receive(home, slot, self._shipments, in_order=self._tasks < 2)
        self._shipments.clear()
        if slot.executor.access is None:
            return
        self._logged |= _look_up(home, decision, self._number, self._name, slot, self._after.query)
        for failure in slot.executor.access.failed():
            self._stage(Outlet("dead", failure.table), failure.keys.append_column(REASON, failure.reasons))
            told = StreamCounts(dead=failure.keys.num_rows, reason=failure.reason)
            self._counts += Counts({failure.table: told})
        for one in slot.executor.access.not_readable(self._number):
            self._stage(Outlet("dead", one.table), one.dead.texts.append_column(REASON, one.dead.reasons))
            self._counts += Counts({one.table: one.counts})

    @property
    def waits(self) -> int | None:
        """The oldest time of a row that waits for the answer of a table."""
        return self.slot.executor.held

    def end(self, waits: int | None = None) -> Turn:
        """Make the results, and leave the state. `waits` is known where no restart follows, and all slots have joined:
        the oldest time of a row that waits in any of them. Otherwise results wait as long as they did after the last
        batch."""
        home, decision, number, slot, name = self._home, self._decision, self._number, self.slot, self._name
        counts, output = self._counts, self._output
        held = None if decision.held is None or not home.keeps else home.watermarks(decision.held)
        if decision.kind == "end":
            slot.end(self._after.newest)
        else:
            slot.advance(self._after.by_stream, self._after.query, held, waits)
        output.take()
        reach("turn: results are there")
        partial = output.finish()
        if output.rows:
            self._staged[RESULTS] = output.files
        counts += Counts({}, output.rows, slot.errors.count - self._errors, slot.errors.first)
        reach("turn: results are staged")
        attempt = name if home.query.asks else ""
        record = Record(
            slot=number,
            counts=counts,
            staged=tuple(Staged(outlet, tuple(files)) for outlet, files in self._staged.items()),
            newest=self._newest,
            cpu=slot.cpu,
            rows_in=self._rows_in,
            bytes_in=self._bytes_in,
            held=StateSize(slot.peak_rows, slot.peak_bytes),
            attempt=attempt,
            waits=slot.executor.held,
            spans=tuple(some for some in self._spans if some),
            keys=tuple(added(self._keys)) if self._keys else (),
            rebuilt=self._rebuilt,
        )
        if home.keeps:
            record = self._kept(record, held)
        slot.batch_done = decision.begins_at(number), decision.after + attempt
        if self._begun is not None:
            report = snapshot(look_at(slot).since(self._begun))
            estimate = None if report is None else slot.plans.estimate(slot.executor)
            record = replace(record, report=report, estimate=estimate)
        reach("turn: before the state is left")
        self._open = False
        home.keeper.leave(number, slot)
        reach("turn: the state is left")
        return Turn(record, partial)

    def _kept(self, record: Record, held: Watermarks | None) -> Record:
        """Write the rows and the small state of the turn; returns the record with what was written, and with what the
        driver must know to move groups."""
        home, decision, number, slot = self._home, self._decision, self._number, self.slot
        windows = counted(slot) if decision.held is None else decision.held.counted
        least = horizon(home.plan, held or self._after, windows, held is not None)
        epoch, merged = decision.ledger.epoch, decision.merge.get(number, ())
        own = None if decision.slot_map is None else decision.slot_map.groups_in(number)
        by_group = epoch > 0 or _may_leave_soon(home, slot)
        forgotten = None if slot.executor.access is None else slot.executor.access.forgotten
        log_file = home.log.write(self._name, number, epoch, self._logged, merged, least, by_group, own, forgotten)
        reach("turn: rows are logged")
        durable = slot.durable()
        small = write_small(home, number, self._name, durable) if durable else None
        reach("turn: small state is written")
        return replace(
            record,
            log=log_file,
            merged=merged,
            small=small,
            counted=counted(slot),
            course=slot.executor.course,
            waiting=0 if decision.kind == "end" else slot.waiting,
            spillable=slot.spillable,
        )

    def drop(self) -> None:
        """Abandon the turn: the state of the slot is discarded. Nothing is done if the turn has ended."""
        if self._open:
            self._open = False
            self._home.keeper.drop(self._number, self.slot)


def _look_up(
    home: Home, decision: BatchDecision, number: int, name: str, slot: Slot, watermark: int | None
) -> dict[str, list[pa.RecordBatch]]:
    """Ask the tables for what the rows of the batch need, and join the answers; returns these for the log. At the end
    of the streams all answers are waited for."""
    access = slot.executor.access
    assert access is not None
    lookups, is_new = home.lookups(number, decision.begins_at(number))
    if is_new:
        access.ask_again()
    is_end = decision.kind == "end"
    until = math.inf if is_end else home.running() + home.settings.batch_seconds
    most = home.tuning.engine.most_asked if decision.pressure.backlog and home.keeps_lookups else 0
    upto = FOREVER if is_end else watermark
    try:
        look_up(SlotLookups(slot, access), lookups, upto, until, home.running, home.age, most)
    except BaseException:
        lookups.close()
        raise
    home.keep_lookups(number, decision.after + name, lookups)
    reach("turn: answers are there")
    answers = access.logged()
    if not home.keeps:
        return {}
    now = home.age()
    return {section: [got_by(number, now, batch) for batch in batches] for section, batches in answers.items()}


class _TurnResults:
    """The results of a turn. Those of a sweep are staged as they come if they are many."""

    def __init__(self, home: Home, name: str, slot: Slot) -> None:
        self._home, self._name, self._slot = home, name, slot
        self._some: list[pa.RecordBatch] = []
        self._bytes = 0
        self.files: list[str] = []
        """The staged files."""
        self.rows = self._staged = 0
        """The number of staged rows."""

    def take(self) -> None:
        """Take the results that the slot has made."""
        new = [batch for batch in self._slot.drain() if batch.num_rows]
        self._some += new
        self._bytes += sum(batch.nbytes for batch in new)

    def relieve(self) -> None:
        """Take the results that the slot has made, and stage them if they are many."""
        self.take()
        if not self._home.partial and self._bytes > self._home.tuning.engine.staged_bytes:
            self._stage()

    def finish(self) -> list[pa.RecordBatch]:
        """Stage all results; partial results are returned in place of that."""
        if not self._home.partial and self._some:
            self._stage()
        return self._some

    def _stage(self) -> None:
        name = f"{self._name}-results{f'-{self._staged}' if self._staged else ''}"
        self.files += self._home.stage(RESULTS, name, self._some)
        self.rows += sum(batch.num_rows for batch in self._some)
        self._staged += 1
        self._some, self._bytes = [], 0


def _may_leave_soon(home: Home, slot: Slot) -> bool:
    memory = home.settings.memory
    return home.settings.may_spill and memory is not None and slot.peak_bytes > SOON * memory


def _receive(home: Home, slot: Slot, shipments: Sequence[Shipment], in_order: bool) -> None:
    """Feed the shipments to the slot, the oldest first, whichever task sent them: then probes seldom meet rows that are
    too new for them. Shipments of one task are `in_order` of its reading, and stay in it."""

    def oldest(shipment: Shipment) -> int:
        time = home.split.streams[shipment.stream].time
        return 0 if time is None else int(event_times(shipment.batch.column(time)).min())

    in_time = shipments if in_order else sorted(shipments, key=oldest)
    for shipment in in_time if slot.preferred is None else slot.preferred.first(in_time):
        slot.receive(shipment)


def look_at(slot: Slot) -> Report:
    """The work of a slot's eddy so far."""
    return look(slot.query, slot.executor.eddy, slot.executor.built, 0.0, slot.executor.input_batch.rows)


def put_together(home: Home, decision: BatchDecision, name: str, partial: Sequence[pa.RecordBatch]) -> Record:
    """Combine the partial results of all slots for some groups into results."""
    errors = ErrorCount()
    reach("together: before cells are combined")
    results = combine(home.query, partial, errors, home.tuning.engine)
    files = home.stage(RESULTS, f"{decision.batch:08}-{name}-results", results) if results else []
    counts = Counts({}, sum(batch.num_rows for batch in results), errors.count, errors.first)
    reach("together: results are staged")
    return Record(COMBINED, counts, (Staged(RESULTS, tuple(files)),) if results else ())


def _move(home: Home, decision: BatchDecision, number: int, slot: Slot, output: _TurnResults) -> SpillCounts:
    """Do what groups do before a batch."""
    moves, counts = decision.moves, SpillCounts()
    if moves.sweep:
        reach("spill: before a sweep")
        commit = home.checkpoint.commit_of(decision.batch - 1)
        log = _swept_log(home, decision, commit, number, slot)
        sweep = Sweep(slot, commit.ledger.generations, log, output.relieve, home.watch_sweep)
        sweep.run(log.own(np.array(moves.sweep)))
        counts += SpillCounts(results=sweep.results)
        reach("spill: groups are swept")
    if moves.leave:
        reach("spill: before groups leave")
        counts += SpillCounts(rows=slot.forget(np.array(moves.leave)))
        reach("spill: groups have left")
    return counts


def _swept_log(home: Home, decision: BatchDecision, commit: Commit, number: int, slot: Slot) -> SlotLog:
    """The rows of a commit for the sweep before a batch. In a query with a ROWS window, rows that wait for the
    watermark are not among them; but if the streams have ended, they come with this batch, and no sweep comes after
    it."""
    least, held = home.horizon(commit.advanced, commit.ledger.held), commit.ledger.held
    if not home.query.counts_rows:
        return home.log.of_commit(commit, number, least)
    used, marks = commit.advanced.used, commit.ledger.marks
    if decision.kind == "end":
        marks = {**marks, decision.ledger.epoch: commit.advanced}
    released = replace(commit.ledger, marks=marks).released(FOREVER if decision.kind == "end" else used)
    watermark, since = (-FOREVER if time is None else time for time in (used, None if held is None else held.used))
    counted = {
        source: CountedSpan(
            least[home.query.sources[source].stream.name], released.until, watermark, window.rows, since
        )
        for source, window in slot.executor.rows_windows.items()
    }
    return home.log.of_commit(commit, number, least, released, counted)
