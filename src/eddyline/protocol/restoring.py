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

from eddyline.bound.evaluate import ErrorCount
from eddyline.engine.plan_course import PlanCourse
from eddyline.engine.slot import Slot
from eddyline.engine.split import Shipment, Split, Which, groups_along, wanted
from eddyline.faults import reach
from eddyline.plan.bounds import FOREVER
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.home import Home
from eddyline.protocol.ledger import Ledger
from eddyline.protocol.small_files import restore_small
from eddyline.spill.accounts import TABLE
from eddyline.spill.generations import NEVER, Generations


def opened(home: Home, decision: BatchDecision, number: int) -> tuple[Slot, bool]:
    """Open the slot with its state as of the commit before the batch, and with the groups that it has in the batch.
    Version n is the state after batches 0..n-1. Returns also whether the state was rebuilt from the log."""
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
    restore_small(home, slot, number, commit.small)
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
