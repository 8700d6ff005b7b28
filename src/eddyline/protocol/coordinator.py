"""The driver's side of the batch protocol (docs/design/batch-protocol.md): decide, run, publish, commit.

    begin(batch, offsets) -> what to do, or None if it is done already
    ... the slots take their turns and each gives one record (protocol/turn.py) ...
    finish(decision, records)

What is decided is durable before a slot begins, what a slot wrote counts only when the commit names it, and the commit
is one write. So whatever dies, and whenever, the job goes on from the newest commit: a batch that was run again writes
files of other names, and its results take the place of those that were published and never committed.

Each commit ends a *history*: a digest of everything that was decided since the checkpoint was made. State that a slot
left on a host says between which two histories it lies, so it is used only where it belongs, whatever happened to
other attempts in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from eddyline.counts import Counts
from eddyline.engine.tally import disorder
from eddyline.engine.watermarks import Advanced, Silence, Watermarks
from eddyline.errors import JobError
from eddyline.faults import reach
from eddyline.plan.bounds import FOREVER
from eddyline.protocol.batch_decision import BatchDecision, BatchKind
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.commit import Commit, LogFile
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.record import COMBINED, Record

MERGED = 8
"""So many segments of like size of one slot are merged into one."""
KEPT = 2
"""Commits between two collections of orphans: listing folders costs time."""


class Publisher(Protocol):
    """Gives results to the world."""

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        """These files are the results of the batch, by outlet, in place of any that it had."""

    def forget_after(self, batch: int) -> None:
        """Results of later batches were never committed: they go."""


class Coordinator:
    """Goes from commit to commit."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        streams: Callable[[], Watermarks],
        horizon: Callable[[Advanced], Mapping[str, int]],
        publisher: Publisher,
        slots: int,
        silence: Silence | None = None,
    ) -> None:
        """`streams` makes fresh watermarks; `horizon` says how old rows of each stream may be that are still needed,
        when slots have advanced to these watermarks; `silence` which streams are idle, if any may be."""
        self._checkpoint, self._fresh, self._horizon, self._publisher = checkpoint, streams, horizon, publisher
        self._slots, self._silence = slots, silence or Silence((), None)
        self.commit = checkpoint.last() or Commit(-1, None, streams().reached, history=checkpoint.history)
        publisher.forget_after(self.commit.batch)
        checkpoint.collect(self.commit)

    def begin(
        self, batch: int, kind: BatchKind, offsets: Any, ended: Sequence[str] = (), unread: Iterable[str] = ()
    ) -> BatchDecision | None:
        """What the batch is to do; None if it is committed already. `ended` are the streams that it is the last batch
        of; `unread` those that may have rows that it leaves for later."""
        last, offsets = self.commit, json.loads(json.dumps(offsets))
        if batch == last.batch and offsets == last.offsets:
            return None
        if last.finished:
            raise JobError("the job is finished: its streams have ended; start another with a new checkpoint")
        if batch != last.batch + 1:
            raise JobError(
                f"batch {batch} cannot follow commit {last.batch}: the checkpoint does not belong to these sources"
            )
        quiet = self._silence.begin(unread) if kind == "rows" else []
        merge = {slot: to_merge(last.log, slot, self._slots) for slot in range(self._slots)}
        what = json.dumps([last.history, batch, kind, offsets, sorted(ended), quiet], sort_keys=True)
        after = hashlib.sha256(what.encode()).hexdigest()[:32]
        decision = BatchDecision(
            batch=batch,
            kind=kind,
            offsets=offsets,
            watermarks=last.watermarks,
            slots=self._slots,
            merge=merge,
            ended=tuple(ended),
            before=last.history,
            after=after,
            quiet=tuple(quiet),
        )
        reach("before decide")
        self._checkpoint.decide(decision)
        reach("after decide")
        return decision

    def finish(self, decision: BatchDecision, records: Sequence[Record]) -> Counts:
        """Every slot took its turn: publish and commit. Returns the counts of the batch."""
        if sorted(r.slot for r in records if r.slot != COMBINED) != list(range(decision.slots)):
            raise JobError(f"batch {decision.batch}: not every slot told what it did")
        last, watermarks = self.commit, self._fresh()
        watermarks.restore(decision.watermarks)
        newest: dict[str, int] = {}
        for record in records:
            for stream, time in record.newest.items():
                newest[stream] = max(time, newest.get(stream, time))
        watermarks.finish_batch(newest, decision.ended, decision.quiet)
        self._silence.after(newest, watermarks.idle, watermarks.ended)
        counts = sum((record.counts for record in records), Counts())
        counts += disorder((spans for record in records for spans in record.spans), decision.watermarks.newest)
        staged: dict[Outlet, list[str]] = {}
        for record in sorted(records, key=lambda r: r.slot):
            for some in record.staged:
                staged.setdefault(some.outlet, []).extend(some.files)
        reached = watermarks.reached
        advanced = Advanced(
            newest=reached.newest,
            ended=reached.ended,
            idle=reached.idle,
            used=reached.used,
            counted=least_counted([r.counted for r in records]),
        )
        finished = decision.kind == "end"  # then nobody needs any state
        commit = Commit(
            batch=decision.batch,
            offsets=decision.offsets,
            watermarks=reached,
            counts=last.counts + counts,
            log=() if finished else self._live(records, self._horizon(advanced)),
            small=() if finished else tuple(r.small for r in records if r.small is not None),
            advanced=advanced,
            finished=finished,
            history=decision.after,
            plans={} if finished else {r.slot: r.course for r in records if r.slot != COMBINED},
            waiting=sum(record.waiting for record in records),
        )
        self._checkpoint.expect(commit.batch)
        reach("before publish")
        self._publisher.publish(decision.batch, staged)
        reach("after publish")
        self._checkpoint.commit(commit)
        reach("after commit")
        self.commit = commit
        if commit.batch % KEPT == 0 or commit.finished:
            self._checkpoint.collect(commit)
        return counts

    def _live(self, records: Sequence[Record], horizon: Mapping[str, int]) -> tuple[LogFile, ...]:
        """The segments whose rows may still be needed."""
        gone = {name for record in records for name in record.merged}
        files = [f for f in self.commit.log if f.name not in gone]
        files += [r.log for r in records if r.log is not None]
        return tuple(f for f in files if _needed(f, horizon))


def _needed(file: LogFile, horizon: Mapping[str, int]) -> bool:
    return any(time is None or time >= horizon.get(stream, -FOREVER) for stream, time in file.newest.items())


def least_counted(told: Iterable[Mapping[int, int | None]]) -> dict[int, int | None]:
    """What all slots agree on: they count the same rows."""
    found: dict[int, int | None] = {}
    for counted in told:
        for source, time in counted.items():
            known = found.get(source, time)
            found[source] = None if time is None or known is None else min(time, known)
    return found


def to_merge(files: Sequence[LogFile], slot: int, slots: int) -> tuple[str, ...]:
    """Segments that a slot should make one of: MERGED or more of like size. It has its own, and those of slots that are
    not there any more."""
    sizes: dict[int, list[str]] = {}
    for file in files:
        if file.slot % slots == slot:
            sizes.setdefault((max(file.rows, 1)).bit_length() // 3, []).append(file.name)
    return tuple(next((names for names in sizes.values() if len(names) >= MERGED), ()))
