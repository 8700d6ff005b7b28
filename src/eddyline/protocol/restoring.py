"""The state with which a slot begins its turn: as of the last commit, with the groups that it has in the batch.

The state that the keeper holds names the histories before and after the batch that left it. If the history after that
batch is the one that the decision begins at, the state is committed. If the history before it is, an earlier attempt at
this batch left the state, and it is wound back. Any other state is dropped and rebuilt from the log. Then groups go and
come as the slot map says (docs/design/relocation.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.balance.slot_map import SlotMap
from eddyline.bound.evaluate import ErrorCount
from eddyline.engine.lookups.logged_answers import of_slot, table_of
from eddyline.engine.lookups.slot_lookups import SlotLookups
from eddyline.engine.plan_course import PlanCourse
from eddyline.engine.slot import Slot
from eddyline.engine.split import Shipment, Split, Which, groups_along, wanted
from eddyline.faults import reach
from eddyline.plan.bounds import FOREVER
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.home import Home
from eddyline.protocol.ledger import Ledger
from eddyline.protocol.small_files import adopt_small, restore_small
from eddyline.protocol.tracks import begin_tracks, follow_tracks
from eddyline.spill.accounts import TABLE
from eddyline.spill.generations import NEVER, Generations

Ints = NDArray[np.int64]


def opened(home: Home, decision: BatchDecision, number: int) -> tuple[Slot, bool]:
    """Open the slot with its state as of the commit before the batch, and with the groups that it has in the batch.
    Version n is the state after batches 0..n-1. Returns also whether the state was rebuilt from the log."""
    home.place(decision.slot_map)
    slot, rebuilt = home.keeper.open(number), False
    try:
        before, after = slot.batch_done or (None, None)
        if slot.relocated != decision.arrangement and not _can_relocate(home, decision, number, slot):
            before = after = None
        if after == decision.begins_at(number):
            if slot.version != decision.batch:  # otherwise it was committed with the batch (in_process.py)
                slot.commit(decision.batch)
        elif before == decision.begins_at(number):
            slot.wind_back()
        else:
            if slot.version or slot.batch_done:
                home.keeper.drop(number, slot)
                slot = home.keeper.open(number)
            if decision.batch > 0:
                home.drop_lookups(number)
            rebuilt = restore(home, slot, number, decision.batch, decision.ledger, decision.slot_map)
            _exchange_parts(home, decision, number, slot)
            slot.relocated = decision.arrangement
        slot.executor.generations = decision.ledger.generations
        slot.batch_done = None
        if slot.relocated == decision.arrangement:
            follow_tracks(slot, decision.slot_map, number)
        else:
            _relocate(home, decision, number, slot)
            slot.relocated = decision.arrangement
        return slot, rebuilt
    except BaseException:
        home.keeper.drop(number, slot)
        raise


def restore(
    home: Home,
    slot: Slot,
    number: int,
    version: int,
    ledger: Ledger | None = None,
    slot_map: SlotMap | None = None,
) -> bool:
    """Rebuild the state of a version from the log, without rows that are on disk according to a ledger, and with the
    groups of a slot map; both may have moved groups after that version. Returns False if there was nothing to read."""
    if version == 0:
        return False
    commit = home.checkpoint.commit_of(version - 1)
    split = Split(home.plan, home.split.partitioning)
    moved, tuning = ledger or commit.ledger, home.tuning.engine
    restore_small(home, slot, number, commit.small)
    access = slot.executor.access
    loaded = None if access is None else SlotLookups(slot, access)
    own = None if slot_map is None else slot_map.groups_in(number)
    most = max(tuning.sweep_least, int(tuning.sweep_share * (home.settings.memory or 0)))
    for stretch in home.log.stretches(commit, moved, min(tuning.sweep_bytes, most) // 4):
        for epoch, rows in home.log.by_epoch(commit, moved, stretch, own):
            home.place(slot_map and slot_map.as_of(epoch), split)
            begin_tracks(slot, slot_map, number, epoch)
            if loaded is not None:
                loaded.begin_load(epoch)
            answers: dict[str, list[pa.RecordBatch]] = {}
            for stream, batch in rows:
                if table_of(stream) is not None:
                    answers.setdefault(stream, []).append(of_slot(number, batch))
                    continue
                for shipment in split.split_table(stream, batch):
                    if shipment.slot == number:
                        slot.receive(_in_memory(slot, shipment, epoch, moved.generations))
            if loaded is not None:
                loaded.load_answers(answers)
        if stretch.until != FOREVER:  # the last one has rows that wait
            slot.input.release_counted(stretch.until, stretch.later)
    begin_tracks(slot, slot_map, number, moved.epoch)
    follow_tracks(slot, slot_map, number)
    reach("turn: rows of the log are received")
    advanced = home.watermarks(commit.advanced)
    held = None if commit.complete is None else home.watermarks(commit.complete)
    slot.load(advanced.by_stream, advanced.query, version, held)
    course = commit.plans.get(number, PlanCourse())
    if course.plan and home.settings.plan == "auto" and len(commit.plans) == home.slots:
        slot.resume(course)
    return bool(commit.log or commit.small)


def _can_relocate(home: Home, decision: BatchDecision, number: int, slot: Slot) -> bool:
    """Whether the slot gets from the state that it was left in to the groups of this batch by `_relocate`. If not, it
    is rebuilt from the log."""
    before, now = decision.map_before, decision.slot_map
    if slot.relocated[0] == decision.before:
        return False  # an earlier attempt, with another number of slots, has moved other groups
    if before is None or now is None:
        return slot.relocated[1] == decision.arrangement[1]  # not if groups had moved in a run with balance
    if before == now:
        return True
    if home.query.counts_rows:
        return False  # rows that wait to be counted know whether they are built here
    # The slots that are gone leave their cells to others.
    return home.query.group is None or all(left % now.slots != number for left in range(now.slots, before.slots))


def _relocate(home: Home, decision: BatchDecision, number: int, slot: Slot) -> None:
    """Let the groups go that this slot does not have from this batch on, and load the rows that it has from now on and
    did not have before. Groups that begin a parallel track stay in the sender, and bring nothing to the receiver."""
    slot_map, last = decision.slot_map, decision.map_before
    if slot_map is None or last is None:
        return
    now, before = slot_map.since(number), last.since(number)
    follow_tracks(slot, slot_map, number, max((track.epoch for track in last.tracks), default=0))
    if ((last.senders == number) & (slot_map.senders != number) & (now == 0)).any():
        slot.regroup()
    anew = [key.group for key in {*slot_map.hot} ^ {*last.hot}]  # a key is shared, or not any more
    gone = (now > before) | (np.isin(np.arange(before.size), anew) & (before != NEVER))
    before[anew] = NEVER
    if (gone := np.flatnonzero(gone)).size:
        reach("balance: before groups go")
        slot.forget(gone)
    if (now < before).any():
        _load(home, decision, number, slot, now, before)
        _adopt(home, decision, slot, np.flatnonzero(now < before))
    begin_tracks(slot, slot_map, number, decision.ledger.epoch)
    follow_tracks(slot, slot_map, number)


def _load(home: Home, decision: BatchDecision, number: int, slot: Slot, now: Ints, before: Ints) -> None:
    """Load rows of groups: those in the log that the slot did not have, without those that are on disk. Results of
    these rows among themselves are made. `now` and `before` are the epochs since which it has the rows of each group
    (`SlotMap.since`). The receiver of a parallel track that is over needs no more rows."""
    commit, generations = home.checkpoint.commit_of(decision.batch - 1), decision.ledger.generations
    lacking = (now < before) & (now <= commit.ledger.epoch)
    tracks = () if decision.map_before is None else decision.map_before.tracks
    over = [group for t in tracks if home.is_over(t, commit.advanced) for group in t.groups if before[group] != NEVER]
    lacking[over] = False
    come = np.flatnonzero(lacking)
    if not come.size:
        return
    reach("balance: before groups come")
    log, axis = home.log.of_commit(commit, number, home.horizon(commit.advanced)), slot.executor.spill_axis
    assert axis is not None

    def rows() -> Iterator[tuple[int, pa.RecordBatch]]:
        for source in (source for source in range(len(slot.query.sources)) if axis.has(source)):
            for some in log.rows(source, come, copied=True):
                missing = (some.came < before[some.groups]) & ~generations.on_disk(some.groups, some.came)
                yield source, some.only(missing).batch

    moved = np.frombuffer(decision.moved, TABLE)
    slot.take_over(rows(), moved[np.isin(moved["group"], come)])
    reach("balance: groups have come")


def _exchange_parts(home: Home, decision: BatchDecision, number: int, slot: Slot) -> None:
    """After a slot was rebuilt with the rows of its groups in this batch: what its parts have in the small state is of
    the commit, when it had other groups."""
    if decision.slot_map is None or decision.map_before is None:
        return
    now, before = decision.slot_map.since(number), decision.map_before.since(number)
    if (gone := np.flatnonzero(now > before)).size:
        for part in slot.parts:
            if part.adopts:
                part.forget(gone)
    if (come := np.flatnonzero(now < before)).size:
        _adopt(home, decision, slot, come)


def _adopt(home: Home, decision: BatchDecision, slot: Slot, come: Ints) -> None:
    assert decision.map_before is not None
    small = home.checkpoint.commit_of(decision.batch - 1).small
    adopt_small(home, slot, come, decision.map_before.places[come].astype(np.int64), small)


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
