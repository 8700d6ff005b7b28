"""A slot's turn in a batch. It is the same in a Spark task, in one process and in a simulation.

    the state as of the last commit -> feed -> advance -> results, log and small state to files -> leave the state

The state that the keeper holds names the histories before and after the batch that left it. If the history after that
batch is the one that the decision begins at, the turn commits the state. If the history before it is, an earlier
attempt at this batch left the state, and the turn winds it back. Any other state is dropped and rebuilt from the log.
The files of every attempt have names of their own. The returned record names them, and they count only if the driver
commits the record. Leaving the state is the last step: a turn that fails earlier leaves none, and the next attempt
rebuilds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount
from eddyline.counts import Counts, SpillCounts
from eddyline.engine.intake import event_times
from eddyline.engine.logged_places import CountedSpan
from eddyline.engine.partial import combine
from eddyline.engine.plan_course import PlanCourse
from eddyline.engine.slot import Slot
from eddyline.engine.small_state import SmallState
from eddyline.engine.snapshot import counted, restore_small_state, small_state
from eddyline.engine.split import Shipment, Split, Which, groups_along, wanted
from eddyline.engine.standing import StateSize
from eddyline.engine.sweep import Sweep
from eddyline.engine.tally import Spans
from eddyline.errors import InternalError
from eddyline.faults import reach
from eddyline.plan.bounds import FOREVER
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.checkpoint import SMALL
from eddyline.protocol.commit import Commit
from eddyline.protocol.home import Home, horizon
from eddyline.protocol.ledger import Ledger
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.protocol.parcel import CountsHead, Parcel, RejectedHead, RowsHead, as_shipment
from eddyline.protocol.record import COMBINED, Record, Staged
from eddyline.protocol.slot_log import SlotLog
from eddyline.routing.gathered import snapshot
from eddyline.routing.report import Report, look
from eddyline.spill.accounts import TABLE
from eddyline.spill.generations import NEVER, Generations
from eddyline.state.log.segment import SegmentPart, written

SOON = 0.6
"""The share of memory from which on rows are logged in the order of groups, because groups may leave soon: they leave
from 0.75 on (`spiller.HIGH`). Rows that were logged before are put in order when their segments are merged. Order costs
about an eighth of the time of a fast job, so a job with twice the memory that it needs does not pay for it."""


@dataclass(frozen=True)
class SmallMeta:
    """The metadata of a segment of small state."""

    slot: int
    numbers: SmallState


@dataclass(frozen=True)
class Turn:
    """The outcome of a turn: the record, and partial results, which `put_together` combines."""

    record: Record
    partial: list[pa.RecordBatch]


def take_turn(home: Home, decision: BatchDecision, number: int, attempt: str, parcels: Iterable[Parcel]) -> Turn:
    """Take the turn of slot `number`. `attempt` is a name that no other attempt has."""
    slot, rebuilt = _slot(home, decision, number)
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
    begun, spans = _seen(slot), list[Spans]()
    output = _TurnResults(home, name, slot)
    counts = Counts(spill=_move(home, decision, number, slot, output))
    slot.pressure = decision.pressure
    slot.replan()
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
            case RejectedHead(outlet):
                files = staged.setdefault(outlet, [])
                files += home.stage(outlet, f"{name}-{outlet.name}-{len(files)}", [parcel.batch])
            case other:
                raise InternalError(f"a slot received the parcel {other}")
    reach("turn: everything was received")
    after = home.after(decision, newest)
    _receive(home, slot, shipments)
    held = None if decision.ledger.held is None else home.watermarks(decision.ledger.held)
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
    windows = counted(slot) if decision.ledger.held is None else decision.ledger.held.counted
    least = horizon(home.plan, held or after, windows, held is not None)
    epoch, merged = decision.ledger.epoch, decision.merge.get(number, ())
    log_file = home.log.write(name, number, epoch, logged, merged, least, epoch > 0 or _may_leave_soon(home, slot))
    reach("turn: rows are logged")
    small = _small(home, slot, number, name) if home.has_small_state else None
    reach("turn: small state is written")
    slot.batch_done = (decision.before, decision.after)
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
        held=StateSize(slot.peak_rows, slot.peak_bytes),
        waiting=0 if decision.kind == "end" else slot.waiting,
        spans=tuple(some for some in spans if some),
        spillable=slot.spillable,
        report=report,
        estimate=None if report is None else slot.plans.estimate(slot.executor),
    )
    return Turn(record, partial)


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

    for shipment in sorted(shipments, key=oldest):
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


def _slot(home: Home, decision: BatchDecision, number: int) -> tuple[Slot, bool]:
    """Open the slot with its state as of the commit before the batch (see the module). Version n is the state after
    batches 0..n-1. Returns also whether the state was rebuilt from the log."""
    home.place(decision.slot_map)
    slot, rebuilt = home.keeper.open(number), False
    try:
        before, after = slot.batch_done or (None, None)
        if home.query.counts_rows and decision.slot_map != decision.map_before and slot.relocated != decision.before:
            before = after = None  # rows that wait to be counted know whether they are built here: all is rebuilt
        if after == decision.before:
            slot.commit(decision.batch)
        elif before == decision.before:
            slot.wind_back()
        else:
            if slot.version or slot.batch_done:
                home.keeper.drop(number, slot)
                slot = home.keeper.open(number)
            rebuilt = restore(home, slot, number, decision.batch, decision.ledger)
            slot.relocated = decision.before
        slot.executor.generations = decision.ledger.generations
        slot.batch_done = None
        if slot.relocated != decision.before:
            _relocate(home, decision, number, slot)
            slot.relocated = decision.before
        return slot, rebuilt
    except BaseException:
        home.keeper.drop(number, slot)
        raise


def restore(home: Home, slot: Slot, number: int, version: int, ledger: Ledger | None = None) -> bool:
    """Rebuild the state of a version from the log, without rows that are on disk according to a ledger, which may have
    moved groups after that version. Returns False if there was nothing to read."""
    if version == 0:
        return False
    commit = home.checkpoint.commit_of(version - 1)
    split = Split(home.plan, home.split.partitioning)
    split.places = home.split.places
    moved, tuning = ledger or commit.ledger, home.tuning.engine
    _restore_small(home, slot, number, commit.small)
    most = max(tuning.sweep_least, int(tuning.sweep_share * (home.settings.memory or 0)))
    for stretch in home.log.stretches(commit, moved, min(tuning.sweep_bytes, most) // 4):
        for epoch, rows in home.log.by_epoch(commit, moved, stretch):
            for stream, batch in rows:
                for shipment in split.split_table(stream, batch):
                    if shipment.slot == number:
                        slot.receive(_in_memory(slot, shipment, epoch, moved.generations))
        if stretch.until != FOREVER:  # the last one has rows that wait
            slot.input.release_counted(stretch.until, stretch.later)
    reach("turn: rows of the log are received")
    advanced = home.watermarks(commit.advanced)
    slot.load(advanced.by_stream, advanced.query, version)
    course = commit.plans.get(number, PlanCourse())
    if course.plan and home.settings.plan == "auto" and len(commit.plans) == home.slots:
        slot.resume(course)
    return bool(commit.log or commit.small)


def _relocate(home: Home, decision: BatchDecision, number: int, slot: Slot) -> None:
    """Let the groups go that another slot has from this batch on, and load those that this slot has from now on: their
    rows in the log, without those that are on disk. Results of these rows among themselves are made."""
    if decision.slot_map is None or decision.map_before is None:
        return
    here, was_here = decision.slot_map.places == number, decision.map_before.places == number
    gone, come = np.flatnonzero(was_here & ~here), np.flatnonzero(here & ~was_here)
    if gone.size:
        reach("balance: before groups go")
        slot.forget(gone)
    if come.size:
        reach("balance: before groups come")
        commit, generations = home.checkpoint.commit_of(decision.batch - 1), decision.ledger.generations
        log, axis = home.log.of_commit(commit, number, home.horizon(commit.advanced)), slot.executor.spill_axis
        assert axis is not None

        def rows() -> Iterator[tuple[int, pa.RecordBatch]]:
            for source in (source for source in range(len(slot.query.sources)) if axis.has(source)):
                for some in log.rows(source, come, copied=True):
                    in_memory = some.only(~generations.on_disk(some.groups, some.came))
                    yield source, in_memory.batch

        moved = np.frombuffer(decision.moved, TABLE)
        slot.take_over(rows(), moved[np.isin(moved["group"], come)])
        reach("balance: groups have come")


def _in_memory(slot: Slot, shipment: Shipment, epoch: int, generations: Generations) -> Shipment:
    """A shipment of rows of an epoch without those that are on disk."""
    executor, axis = slot.executor, slot.executor.spill_axis
    if axis is None or not generations.left or epoch == NEVER:  # such rows wait for the watermark
        return shipment
    build = dict[int, Which]()
    of_stream = [s for s, source in enumerate(slot.query.sources) if source.stream.name == shipment.stream]
    for source in of_stream:
        if shipment.build is None:
            which = wanted(executor.plan, source, shipment.batch, ErrorCount())[1]
        else:
            which = shipment.build[source]
        groups = groups_along(axis, executor.plan, source, shipment.batch)
        here = ~generations.on_disk(groups, np.full(groups.size, epoch))
        build[source] = here if which is None else which & here
    return replace(shipment, build=build)


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


def _restore_small(home: Home, slot: Slot, number: int, files: Sequence[str]) -> None:
    """Restore the slot's own small state if the number of slots is the same as before; otherwise slot 0 gets the cells
    of all slots."""
    segments = [(segment, segment.meta(SmallMeta)) for segment in map(home.checkpoint.segment, files)]
    if not segments:
        return
    if len(segments) == home.slots:
        mine = [segment for segment, meta in segments if meta.slot == number]
    else:
        mine = [] if number else [segment for segment, _ in segments]
    batches = [(name, batch) for s in mine for name in s.names for batch in s.batches(name)]
    restore_small_state(slot, segments[0][1].numbers, batches)


def _small(home: Home, slot: Slot, number: int, name: str) -> str:
    numbers, batches = small_state(slot)
    sections: dict[str, list[pa.RecordBatch]] = {}
    for section, batch in batches:
        sections.setdefault(section, []).append(batch)
    meta = SmallMeta(number, numbers)
    home.checkpoint.store.write(f"{SMALL}/{name}", *written([SegmentPart(*item) for item in sections.items()], meta))
    return f"{SMALL}/{name}"
