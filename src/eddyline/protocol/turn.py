"""A slot's turn in a batch. It is the same in a Spark task, in one process and in a simulation.

    the state as of the last commit -> feed -> advance -> results, log and small state to files -> leave the state

The turn begins with a slot whose state is that of the last commit (protocol/restoring.py).
The files of every attempt have names of their own. The returned record names them, and they count only if the driver
commits the record. Leaving the state is the last step: a turn that fails earlier leaves none, and the next attempt
rebuilds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eddyline.balance.hot_key import KeyCount, added
from eddyline.bound.evaluate import ErrorCount
from eddyline.counts import Counts, SpillCounts, StreamCounts
from eddyline.engine.intake import event_times
from eddyline.engine.logged_answers import got_by
from eddyline.engine.logged_places import CountedSpan
from eddyline.engine.lookups import look_up
from eddyline.engine.partial import combine
from eddyline.engine.slot import Slot
from eddyline.engine.slot_lookups import SlotLookups
from eddyline.engine.snapshot import counted
from eddyline.engine.split import Shipment
from eddyline.engine.standing import StateSize
from eddyline.engine.sweep import Sweep
from eddyline.engine.tally import Spans
from eddyline.errors import InternalError
from eddyline.faults import reach
from eddyline.plan.bounds import FOREVER
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.commit import Commit
from eddyline.protocol.home import Home, horizon
from eddyline.protocol.outlet import RESULTS, Outlet, Staged
from eddyline.protocol.packing import REASON
from eddyline.protocol.parcel import CountsHead, Parcel, RejectedHead, RowsHead, as_shipment
from eddyline.protocol.record import COMBINED, Record
from eddyline.protocol.restoring import opened
from eddyline.protocol.slot_log import SlotLog
from eddyline.protocol.small_files import write_small
from eddyline.routing.gathered import snapshot
from eddyline.routing.report import Report, look
from eddyline.running_time import running_seconds

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
    slot, rebuilt = opened(home, decision, number)
    try:
        turn = _work(home, decision, number, f"{decision.batch:08}-{number}-{attempt}", parcels, slot)
        reach("turn: before the state is left")
    except BaseException:
        home.keeper.drop(number, slot)
        raise
    home.keeper.leave(number, slot)
    reach("turn: the state is left")
    return Turn(replace(turn.record, rebuilt=rebuilt), turn.partial)


def _work(home: Home, decision: BatchDecision, number: int, name: str, parcels: Iterable[Parcel], slot: Slot) -> Turn:
    before, newest = slot.errors.count, dict[str, int]()
    begun, spans, keys = _seen(slot), list[Spans](), list[KeyCount]()
    output = _TurnResults(home, name, slot)
    counts = Counts(spill=_move(home, decision, number, slot, output))
    slot.pressure = decision.pressure
    slot.prefer(decision.preference, is_new=decision.preference.since == decision.batch)
    slot.replan()
    slot.watch(home.pulse)
    shipments: list[Shipment] = []
    logged: dict[str, list[pa.RecordBatch]] = {}
    staged: dict[Outlet, list[str]] = {}
    for parcel in parcels:
        match parcel.head:
            case RowsHead() as head:
                shipment, log = as_shipment(head, parcel.batch, number)
                shipments.append(shipment)
                if log.num_rows:
                    logged.setdefault(shipment.stream, []).append(log)
            case CountsHead() as head:
                for stream, when in head.newest.items():
                    newest[stream] = max(when, newest.get(stream, when))
                counts += head.counts
                spans.append(head.spans)
                keys += head.keys
            case RejectedHead(outlet):
                files = staged.setdefault(outlet, [])
                files += home.stage(outlet, f"{name}-{outlet.name}-{len(files)}", [parcel.batch])
            case other:
                raise InternalError(f"a slot received the parcel {other}")
    reach("turn: everything was received")
    after = home.after(decision, newest)
    _receive(home, slot, shipments)
    held = None if decision.held is None else home.watermarks(decision.held)
    if slot.executor.access is not None:
        logged |= _look_up(home, decision, number, name, slot, after.query)
        for failure in slot.executor.access.failed():
            outlet, dead = Outlet("dead", failure.table), failure.keys.append_column(REASON, failure.reasons)
            files = staged.setdefault(outlet, [])
            files += home.stage(outlet, f"{name}-{outlet.name}-{len(files)}", [dead])
            told = StreamCounts(dead=dead.num_rows, reason=failure.reason)
            counts += Counts({failure.table: told})
        for one in slot.executor.access.not_readable(number):
            outlet, dead = Outlet("dead", one.table), one.dead.texts.append_column(REASON, one.dead.reasons)
            files = staged.setdefault(outlet, [])
            files += home.stage(outlet, f"{name}-{outlet.name}-{len(files)}", [dead])
            counts += Counts({one.table: one.counts})
    if decision.kind == "end":
        slot.end(after.newest)
    else:
        slot.advance(after.by_stream, after.query, held)
    output.take()
    reach("turn: results are there")
    partial = output.finish()
    if output.rows:
        staged[RESULTS] = output.files
        counts += Counts(rows_out=output.rows)
    counts += Counts(expression_errors=slot.errors.count - before, first_error=slot.errors.first)
    reach("turn: results are staged")
    windows = counted(slot) if decision.held is None else decision.held.counted
    least = horizon(home.plan, held or after, windows, held is not None)
    epoch, merged = decision.ledger.epoch, decision.merge.get(number, ())
    own = None if decision.slot_map is None else decision.slot_map.groups_in(number)
    by_group = epoch > 0 or _may_leave_soon(home, slot)
    forgotten = None if slot.executor.access is None else slot.executor.access.forgotten
    log_file = home.log.write(name, number, epoch, logged, merged, least, by_group, own, forgotten)
    reach("turn: rows are logged")
    durable = slot.durable()
    small = write_small(home, number, name, durable) if durable else None
    reach("turn: small state is written")
    attempt = name if home.query.asks else ""
    slot.batch_done = decision.begins_at(number), decision.after + attempt
    report = snapshot(_seen(slot).since(begun))
    record = Record(
        slot=number,
        counts=counts,
        staged=tuple(Staged(outlet, tuple(files)) for outlet, files in staged.items()),
        newest=newest,
        log=log_file,
        merged=decision.merge.get(number, ()),
        small=small,
        counted=counted(slot),
        course=slot.executor.course,
        cpu=slot.cpu,
        rows_in=sum(shipment.batch.num_rows for shipment in shipments),
        bytes_in=sum(shipment.batch.nbytes for shipment in shipments),
        held=StateSize(slot.peak_rows, slot.peak_bytes),
        waiting=0 if decision.kind == "end" else slot.waiting,
        attempt=attempt,
        waits=slot.executor.held,
        spans=tuple(some for some in spans if some),
        keys=tuple(added(keys)),
        spillable=slot.spillable,
        report=report,
        estimate=None if report is None else slot.plans.estimate(slot.executor),
    )
    return Turn(record, partial)


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
    until = math.inf if is_end else running_seconds() + home.settings.batch_seconds
    most = home.tuning.engine.most_asked if decision.pressure.backlog and home.keeps_lookups else 0
    upto = FOREVER if is_end else watermark
    try:
        look_up(SlotLookups(slot, access), lookups, upto, until, running_seconds, home.age, most)
    except BaseException:
        lookups.close()
        raise
    home.keep_lookups(number, decision.after + name, lookups)
    reach("turn: answers are there")
    now = home.age()
    return {section: [got_by(number, now, batch) for batch in batches] for section, batches in access.logged().items()}


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


def _receive(home: Home, slot: Slot, shipments: Sequence[Shipment]) -> None:
    """Feed the shipments to the slot, the oldest first, whichever task sent them: then probes seldom meet rows that are
    too new for them."""

    def oldest(shipment: Shipment) -> int:
        time = home.split.streams[shipment.stream].time
        return 0 if time is None else int(event_times(shipment.batch.column(time)).min())

    in_time = sorted(shipments, key=oldest)
    for shipment in in_time if slot.preferred is None else slot.preferred.first(in_time):
        slot.receive(shipment)


def _seen(slot: Slot) -> Report:
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
