"""The driver's side of the batch protocol (docs/design/batch-protocol.md): decide, run, publish, commit.

    begin(batch, kind, offsets) -> the decision, or None if the batch is committed already
    ... every slot takes its turn and returns one record (protocol/turn.py) ...
    finish(decision, records)

The decision is durable before a slot begins, a file that a slot wrote counts only when the commit names it, and the
commit is one write. So a job continues from the newest commit, whichever process fails at whichever moment: a batch
that runs again writes files with other names, and its results replace those that were published but not committed.
Results that cannot be replaced are delivered after the commit, which names their files: at once, and again when a run
starts. The rows of a batch are the same each time, so a sink that knows the number of its newest batch has them once.

Each commit ends a *history*: a digest of all decisions since the checkpoint was made. The state that a slot leaves on a
host names the histories before and after its batch, so it is used only where it belongs, whatever other attempts did in
between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from eddyline.balance.slot_map import SlotMap
from eddyline.balance.track_rules import check_tracks
from eddyline.counts import Counts, SpillCounts
from eddyline.engine.tally import disorder
from eddyline.engine.watermarks import Advanced, Silence
from eddyline.errors import InternalError, JobError, SettingError
from eddyline.faults import reach
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.plan.bounds import FOREVER
from eddyline.plan.preference import NO_PREFERENCE
from eddyline.protocol.adapted import Adapted, AfterBatch, Placer, accounts_that_move, stays
from eddyline.protocol.batch_decision import BatchDecision, BatchKind
from eddyline.protocol.commit import Commit, LogFile
from eddyline.protocol.home import Home
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.outlet import Outlet, Staged, Written
from eddyline.protocol.record import COMBINED, Record

KEPT = 2
"""Orphans are collected at every KEPT-th commit, because listing folders takes time."""


Mover = Callable[[Ledger, Advanced, Sequence[Record], int, SlotMap | None], Moves]
"""(the ledger after a batch, how far slots have advanced, their records, the rows in the log, the slot of each group)
-> what groups do before the next batch."""


def no_moves(
    ledger: Ledger, advanced: Advanced, records: Sequence[Record], logged: int, slot_map: SlotMap | None
) -> Moves:
    """All groups stay where they are."""
    return Moves()


class Journal(Protocol):
    """Where decisions and commits are written: a checkpoint, or `NothingKept`."""

    @property
    def history(self) -> str:
        """The history of the job before its first batch."""

    def last(self) -> Commit | None:
        """The newest commit, None before the first."""

    def decide(self, decision: BatchDecision) -> None:
        """Write the decision for a batch. It is durable before the batch begins."""

    def expect(self, batch: int) -> None:
        """JobError if the batch is committed already."""

    def commit(self, commit: Commit) -> None:
        """Commit a batch."""

    def collect(self, commit: Commit) -> None:
        """Delete what neither this commit nor a later batch needs."""


class NothingKept:
    """The journal of a job without a checkpoint: nothing is written, and no run continues the job."""

    history = ""

    def last(self) -> None:
        """There is no earlier run."""

    def decide(self, decision: BatchDecision) -> None:
        """All slots are in this process, and get the decision itself."""

    def expect(self, batch: int) -> None:
        """No other run has the job."""

    def commit(self, commit: Commit) -> None:
        """The coordinator has the commit."""

    def collect(self, commit: Commit) -> None:
        """There is no file."""


class Publisher(Protocol):
    """Makes staged results visible to readers."""

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        """Publish these files, by outlet, as the results of the batch; they replace earlier results of the batch."""

    def forget_after(self, batch: int) -> None:
        """Remove the results of later batches: they were never committed."""


class Deliverer(Protocol):
    """Gives committed results to sinks that keep the number of the batch with its rows."""

    @property
    def outlets(self) -> Collection[Outlet]:
        """The outlets whose rows go to such sinks."""

    def deliver(self, commit: Commit) -> None:
        """Give the staged files that a commit names to their sinks; a commit may come again."""


class NoDeliverer:
    """All results are published before the commit."""

    outlets: Collection[Outlet] = ()

    def deliver(self, commit: Commit) -> None:
        """There is nothing to deliver."""


class Coordinator:
    """Decides and commits the batches of one job, one after the other."""

    def __init__(
        self,
        checkpoint: Journal,
        home: Home,
        publisher: Publisher,
        silence: Silence | None = None,
        mover: Mover = no_moves,
        placer: Placer = stays,
        deliverer: Deliverer | None = None,
    ) -> None:
        """`home` is that of the slots. `silence` says which streams are idle; None if no stream can become idle."""
        self._checkpoint, self._home, self._publisher, self._mover = checkpoint, home, publisher, mover
        self._placer, self._deliverer = placer, deliverer or NoDeliverer()
        self._silence = silence or Silence((), None)
        self._slots = home.slots
        """The number of slots of the next batch."""
        self.commit = checkpoint.last() or Commit(-1, None, home.watermarks().reached, history=checkpoint.history)
        known = len(self.commit.attempts)
        if home.query.asks and known not in (0, home.slots) and not self.commit.finished:
            raise SettingError(
                f"each slot has its own answers of tables, so the number of slots cannot change: set slots={known}"
            )
        self._deliver(self.commit)  # an earlier run may have failed before this step
        publisher.forget_after(self.commit.batch)
        checkpoint.collect(self.commit)

    def begin(
        self,
        batch: int,
        kind: BatchKind,
        offsets: Any,
        ended: Sequence[str] = (),
        unread: Iterable[str] = (),
        sweep: bool = False,
        pressure: Pressure = NO_PRESSURE,
    ) -> BatchDecision | None:
        """Decide a batch; None if it is committed already. `offsets` say which rows the batch reads; nobody wants them
        without a checkpoint. `ended` are the streams that end with this batch; `unread` are the streams that may have
        rows that this batch does not read. With `sweep`, and at the end, all groups on disk are swept. `pressure` is
        that of the input."""
        last, keeps = self.commit, self._home.keeps
        offsets = json.loads(json.dumps(offsets)) if keeps else None
        if keeps and batch == last.batch and offsets == last.offsets:
            return None
        if last.finished:
            raise JobError("the job is finished: its streams have ended; start another with a new checkpoint")
        if batch != last.batch + 1:
            raise JobError(
                f"batch {batch} cannot follow commit {last.batch}: the checkpoint does not belong to these sources"
            )
        quiet = self._silence.begin(unread) if kind == "rows" else []
        least, slots = self._home.tuning.state.merged_files, self._slots
        merge = {slot: to_merge(last.log, slot, slots, least) for slot in range(slots)} if last.log else {}
        if self._home.split.seen is not None:  # an attempt may have counted rows
            self._home.split.seen.restore(last.seen or {})
        map_before, slot_map = self._maps()
        self._home.place(slot_map)
        tracks = () if slot_map is None else slot_map.tracks
        after = str(batch)  # in one process without a checkpoint there is only one history
        if keeps:
            elsewhere: list[Any] = [slot_map.elsewhere] if slot_map is not None and slot_map.elsewhere else []
            elsewhere += [[track.groups, track.sender, track.epoch] for track in tracks]
            elsewhere += [] if slot_map is None else [[key.code, key.source, key.slots] for key in slot_map.hot]
            about = [last.history, batch, kind, offsets, sorted(ended), quiet, slots, *elsewhere]
            after = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]
        moves = Moves() if kind == "end" else last.moves  # an attempt may have let groups go
        if sweep or kind == "end":
            moves = replace(moves, sweep=tuple(last.ledger.generations.clean))
        begin = any(track.epoch > last.ledger.epoch for track in tracks)
        ledger = last.ledger.begin(moves, last.advanced, self._home.settings.groups, begin)
        decision = BatchDecision(
            batch=batch,
            kind=kind,
            offsets=offsets,
            watermarks=last.watermarks,
            slots=slots,
            merge=merge,
            ended=tuple(ended),
            before=last.history,
            after=after,
            quiet=tuple(quiet),
            moves=moves,
            ledger=Ledger(batch) if self._home.query.asks else ledger,
            map_before=map_before,
            slot_map=slot_map,
            moved=last.moved,
            complete=last.complete,
            attempts=last.attempts,
            pressure=pressure,
            preference=NO_PREFERENCE if kind == "load" else self._home.preferences.at(batch),
        )
        reach("before decide")
        self._checkpoint.decide(decision)
        reach("after decide")
        return decision

    def finish(self, decision: BatchDecision, records: Sequence[Record]) -> Counts:
        """Publish and commit a batch in which every slot took its turn. Returns the counts of the batch."""
        if sorted(r.slot for r in records if r.slot != COMBINED) != list(range(decision.slots)):
            raise JobError(f"batch {decision.batch}: not every slot returned its record")
        last, watermarks = self.commit, self._home.watermarks(decision.watermarks)
        newest: dict[str, int] = {}
        for record in records:
            for stream, time in record.newest.items():
                newest[stream] = max(time, newest.get(stream, time))
        watermarks.finish_batch(newest, decision.ended, decision.quiet)
        self._silence.after(newest, watermarks.idle, watermarks.ended)
        counts = sum((record.counts for record in records[1:]), records[0].counts)
        if decision.moves:
            counts += Counts(spill=SpillCounts(left=len(decision.moves.leave), sweeps=len(decision.moves.sweep)))
        if any(record.spans for record in records):
            counts += disorder((spans for record in records for spans in record.spans), decision.watermarks.newest)
        staged: dict[Outlet, list[str]] = {}
        for record in sorted(records, key=lambda r: r.slot):
            for some in record.staged:
                staged.setdefault(some.outlet, []).extend(some.files)
        owed = {outlet: staged.pop(outlet) for outlet in self._deliverer.outlets if outlet in staged}
        reached = watermarks.reached
        advanced = Advanced(
            newest=reached.newest,
            ended=reached.ended,
            idle=reached.idle,
            used=reached.used,
            counted=least_counted([r.counted for r in records]),
        )
        ledger = self._home.settled(decision.ledger)
        finished = decision.kind == "end"  # a finished job needs no state
        complete = self._home.complete(advanced, [r.waits for r in records if r.waits is not None])
        log: tuple[LogFile, ...] = ()
        if self._home.keeps and not finished:
            log = self._live(records, self._home.horizon(advanced, complete or ledger.held))
        logged = sum(file.rows for file in log)
        moves = Moves() if finished else self._mover(ledger, advanced, records, logged, decision.slot_map)
        slot_map, next_map, balance, moved = decision.slot_map, decision.slot_map, last.balance, b""
        if slot_map is not None and not finished:
            needed = self._home.horizon(advanced)
            live = sum(file.rows for file in log if _needed(file, needed))
            adapted = self._adapted(moves, slot_map, advanced, AfterBatch(ledger, records, live, decision.pressure))
            moves, next_map, balance = adapted.moves, adapted.slot_map, adapted.balance
            moved = accounts_that_move(records, slot_map, next_map)
        commit = Commit(
            batch=decision.batch,
            offsets=decision.offsets,
            watermarks=reached,
            counts=last.counts + counts,
            log=log,
            small=() if finished else tuple(r.small for r in records if r.small is not None),
            advanced=advanced,
            finished=finished,
            history=decision.after,
            plans={} if finished else {r.slot: r.course for r in records if r.slot != COMBINED},
            waiting=sum(record.waiting for record in records),
            ledger=Ledger() if finished else ledger,
            moves=moves,
            slot_map=slot_map,
            next_map=next_map,
            moved=moved,
            complete=complete,
            waits=any(r.waits is not None for r in records),
            attempts={r.slot: r.attempt for r in records if r.attempt},
            balance=balance,
            owed=tuple(Staged(outlet, tuple(files)) for outlet, files in owed.items()),
            written=_written(last),
            seen=None if self._home.split.seen is None else self._home.split.seen.counts(),
        )
        self._checkpoint.expect(commit.batch)
        reach("before publish")
        self._publisher.publish(decision.batch, staged)
        reach("after publish")
        self._checkpoint.commit(commit)
        reach("after commit")
        self.commit = commit
        self._deliver(commit)
        if next_map is not None:
            self._slots = next_map.slots
        if commit.batch % KEPT == 0 or commit.finished:
            self._checkpoint.collect(commit)
        return counts

    def _deliver(self, commit: Commit) -> None:
        self._deliverer.deliver(commit)

    def _maps(self) -> tuple[SlotMap | None, SlotMap | None]:
        """The slot of each group in the last batch and in the next one. A run that begins with another number of slots
        begins with an even map."""
        before, after = self.commit.slot_map, self.commit.next_map
        if self._home.even_map is None:
            return None, None
        even = SlotMap(self._slots, self._home.settings.groups)
        if before is None or after is None:
            return even, even
        return before, after if after.slots == self._slots else even

    def _adapted(self, moves: Moves, slot_map: SlotMap, advanced: Advanced, after: AfterBatch) -> Adapted:
        """What is different in the next batch. Tracks end as soon as no old row is needed."""
        over = [group for t in slot_map.tracks if self._home.is_over(t, advanced) for group in t.groups]
        found = self._placer(Adapted(moves, slot_map.ended(over), self.commit.balance), after)
        epoch = after.ledger.epoch + 1
        next_map = found.slot_map.begun(epoch, advanced.newest)
        if next_map.tracks:
            if self._home.query.counts_rows:
                raise InternalError("a parallel track in a query with a ROWS window, whose rows wait to be counted")
            check_tracks(slot_map, next_map, epoch)
        return replace(found, slot_map=next_map)

    def _live(self, records: Sequence[Record], horizon: Mapping[str, int]) -> tuple[LogFile, ...]:
        """The segments whose rows may still be needed."""
        gone = {name for record in records for name in record.merged}
        files = [f for f in self.commit.log if f.name not in gone]
        files += [r.log for r in records if r.log is not None]
        return tuple(f for f in files if _needed(f, horizon))


def _written(last: Commit) -> tuple[Written, ...] | None:
    """What sinks have that get rows after the commit, as soon as they have those of this commit."""
    if last.batch < 0:
        return ()
    if last.written is None:
        return None
    now = {staged.outlet: Written(staged.outlet, last.batch, last.history) for staged in last.owed}
    return tuple({**{written.outlet: written for written in last.written}, **now}.values())


def _needed(file: LogFile, horizon: Mapping[str, int]) -> bool:
    return any(time is None or time >= horizon.get(stream, -FOREVER) for stream, time in file.newest.items())


def least_counted(told: Iterable[Mapping[int, int | None]]) -> dict[int, int | None]:
    """By source, the least time that any slot has counted up to; None if a slot does not know its time."""
    found: dict[int, int | None] = {}
    for counted in told:
        for source, time in counted.items():
            known = found.get(source, time)
            found[source] = None if time is None or known is None else min(time, known)
    return found


def to_merge(files: Sequence[LogFile], slot: int, slots: int, least: int) -> tuple[str, ...]:
    """The segments that a slot should merge into one: at least `least` of similar size. If the job has fewer slots than
    before, the segments of the missing slots are shared out to the others."""
    sizes: dict[int, list[str]] = {}
    for file in files:
        if file.slot % slots == slot:
            sizes.setdefault((max(file.rows, 1)).bit_length() // 3, []).append(file.name)
    return tuple(next((names for names in sizes.values() if len(names) >= least), ()))
