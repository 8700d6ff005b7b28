"""The home of slots: the query, the checkpoint, and the keeper of their state between turns.

`horizon` says which rows will still be needed: the log keeps them, and older rows may be deleted.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import RLock
from typing import Protocol

import numpy as np
import pyarrow as pa

from eddyline.balance.slot_map import SlotMap
from eddyline.balance.track import Track
from eddyline.bound.model import BoundQuery, BoundStream
from eddyline.engine.groups.seen_rows import SeenStreams
from eddyline.engine.key_sketch import KeySketch
from eddyline.engine.lookups.look_up import Lookups
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner import plan_source
from eddyline.engine.slot import Slot
from eddyline.engine.split import Split
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.engine.watermarks import Advanced, Reached, Watermarks
from eddyline.errors import InternalError, JobError
from eddyline.plan.bounds import FOREVER
from eddyline.plan.judges import Preferences
from eddyline.plan.partition import partition, partition_along
from eddyline.plan.plan import Plan, plan_of
from eddyline.plan.sharing import owners
from eddyline.plan.spill_axis import spill_axis
from eddyline.plan.tree import shape
from eddyline.protocol import attach
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.ledger import Ledger
from eddyline.protocol.log import Log
from eddyline.protocol.outlet import Outlet
from eddyline.running_time import running_seconds
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings
from eddyline.state.arena import placed, remove
from eddyline.state.log.store import Store
from eddyline.state.own_folder import OwnFolder

Stage = Callable[[Outlet, str, Sequence[pa.RecordBatch]], list[str]]
"""(outlet, name, rows) -> the files that hold the rows; an empty list if the outlet has no sink."""


class Keeper(Protocol):
    """Keeps the state of slots between their turns."""

    def open(self, number: int) -> Slot:
        """The slot as it was left, or an empty one at version 0."""

    def leave(self, number: int, slot: Slot) -> None:
        """Keep the state of the slot: its turn is over."""

    def drop(self, number: int, slot: Slot) -> None:
        """Discard the state of the slot: its turn failed."""

    def keep(self, slots: int) -> None:
        """Discard the state of all slots but the first so many: the job has no others any more."""


class ArenaKeeper:
    """Keeps slots in arenas on the host, so that another process may take the next turn. An arena larger than `limit`
    bytes is refused (JobError). With `anywhere`, each process that takes a turn on the host makes and holds the folder
    of the arenas; otherwise the folder exists already."""

    def __init__(self, folder: str, make: Callable[[str, int], Slot], limit: int | None, anywhere: bool) -> None:
        self._folder, self._make, self._limit, self._anywhere = folder, make, limit, anywhere
        self._own: OwnFolder | None = None

    def open(self, number: int) -> Slot:
        if self._anywhere:
            self._own = self._own or OwnFolder(placed(self._folder))
            self._own.hold()
        return self._make(f"{self._folder}/{number}", number)

    def leave(self, number: int, slot: Slot) -> None:
        try:
            size = slot.arena.bytes
            if self._limit is not None and size > self._limit:
                raise JobError(
                    f"slot {number} takes {size_text(size)}, more than arena_limit={size_text(self._limit)};"
                    " set a larger limit, or use more slots or smaller windows"
                )
            attach.save(slot)
        finally:  # unlock the arena, so that the next turn can open it
            attach.close(slot)

    def drop(self, number: int, slot: Slot) -> None:
        attach.close(slot)
        with contextlib.suppress(JobError):
            remove(f"{self._folder}/{number}")

    def keep(self, slots: int) -> None:
        with contextlib.suppress(FileNotFoundError, JobError):  # no slot was here yet
            for name in os.listdir(placed(self._folder)):
                if name.isdigit() and int(name) >= slots:
                    with contextlib.suppress(JobError):  # a late attempt still has it
                        remove(f"{self._folder}/{name}")


class MemoryKeeper:
    """Keeps slots in the memory of this process."""

    def __init__(self, make: Callable[[], Slot]) -> None:
        self.slots: dict[int, Slot] = {}
        """By number, the slots whose turns are over."""
        self._make = make

    def open(self, number: int) -> Slot:
        return self.slots.pop(number, None) or self._make()

    def leave(self, number: int, slot: Slot) -> None:
        self.slots[number] = slot

    def drop(self, number: int, slot: Slot) -> None:
        pass

    def keep(self, slots: int) -> None:
        self.slots = {number: slot for number, slot in self.slots.items() if number < slots}


class Home:
    """Everything that is the same in every turn of a batch. Without a `checkpoint` nothing is logged: a slot whose
    state is lost cannot be rebuilt, and groups of rows cannot move. `arenas` is the folder of this job's arenas on this
    host; None keeps slots in this process. With `anywhere` the folder is made if it does not exist."""

    def __init__(
        self,
        query: BoundQuery,
        settings: Settings,
        slots: int,
        checkpoint: Checkpoint | None,
        arenas: str | None,
        stage: Stage,
        anywhere: bool = True,
        plans: MakePlanSource = plan_source,
        tuning: Tuning = DEFAULT,
        lookups: Callable[[], Lookups] | None = None,
        age: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`lookups` makes, for a slot, what asks the tables that are asked. `age` is the clock by which their answers
        grow old, in seconds, the same in all processes. `clock` measures how long things take in this process."""
        self._plans, self.tuning, self.clock = plans, tuning, clock
        self.running = running_seconds if clock is time.perf_counter else clock
        """The clock of time-outs: it stands still while the process is stopped."""
        self._make_lookups, self.age = lookups, age
        self._lookups: dict[int, tuple[str, Lookups]] = {}
        """By slot, the history after its last turn in this process, and what has asked in it."""
        self.query, self.slots, self._checkpoint, self.stage = query, slots, checkpoint, stage
        self.keeps = checkpoint is not None
        """Whether rows and small state are kept in a checkpoint."""
        self.plan = plan_of(query, shape(settings.plan, [s.alias for s in query.sources]))
        self.split = Split(self.plan, partition(self.plan, slots, settings.groups), logged=self.keeps)
        self.preferences = Preferences(self.plan, settings.prefer)
        axis = spill_axis(self.plan, settings.groups)
        if axis is None or not self.split.partitioning.is_along(axis) or not self.keeps:
            settings = replace(settings, balance="off")
        self.settings = settings
        self._owners = owners(self.plan, self.split.partitioning, settings) if tuning.engine.shares_stems else ()
        self.split.sketch = None if self.even_map is None else KeySketch(settings.groups, slots)
        self._axis = axis if settings.has_groups else None
        self._log = None if checkpoint is None else Log(checkpoint, self.split, self._axis, tuning.state)
        if settings.estimates == "on":
            self.split.seen = SeenStreams(query)
        self.changing = RLock()
        """Held while slots of this process change their plans. Whoever looks at them from another thread holds it."""
        self.watch_sweep: Callable[[float], None] = lambda share: None
        """Called when this share of the groups to sweep is swept in a slot."""
        self.pulse: Callable[[float], None] | None = None
        """Called often during a turn, with the share of its rows that the slot has taken in."""
        self.keeper: Keeper = (
            MemoryKeeper(self._make)
            if arenas is None
            else ArenaKeeper(arenas, self._attach, settings.arena_limit, anywhere)
        )

    def _make(self) -> Slot:
        return Slot(
            self.query,
            self.settings,
            clock=self.clock,
            partial=self.partial,
            plans=self._plans,
            tuning=self.tuning,
            owners=self._owners,
        )

    def _attach(self, folder: str, number: int) -> Slot:
        slots = f"of {self.slots}" if self.even_map is None else "with the groups of a map"
        identity = f"slot {number} {slots}, {self.settings.groups} groups"
        return attach.open_slot(
            self.query,
            self.settings,
            folder,
            partial=self.partial,
            identity=identity,
            plans=self._plans,
            tuning=self.tuning,
            owners=self._owners,
        )

    @property
    def partial(self) -> bool:
        """Whether slots return partial aggregates: if there are several slots, each may hold cells of any group, unless
        groups of rows never move, and the keys of GROUP BY determine the slot."""
        if self.query.group is None or self.slots == 1:
            return False
        return self.keeps or not self.split.partitioning.keeps_groups_whole(self.query)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint. InternalError if nothing is kept."""
        if self._checkpoint is None:
            raise InternalError("a job without a checkpoint has nothing to read")
        return self._checkpoint

    @property
    def log(self) -> Log:
        """The log of rows. InternalError if nothing is kept."""
        if self._log is None:
            raise InternalError("a job without a checkpoint has no log")
        return self._log

    @property
    def even_map(self) -> SlotMap | None:
        """The slot of each group when a job begins; None if groups cannot move to another slot."""
        return None if self.settings.balance == "off" else SlotMap(self.slots, self.settings.groups)

    def place(self, slot_map: SlotMap | None, split: Split | None = None) -> None:
        """The slot of each group, and the hot keys, from now on, in the split of new rows or in another one. The map
        may have another number of slots than before: where groups can move, an arena belongs to a slot and not to a
        number of slots."""
        if slot_map is None:
            return
        if slot_map.slots != self.slots:
            self._resize(slot_map.slots)
        split = split or self.split
        split.places = (slot_map.places.astype(np.int64),)
        split.senders = slot_map.senders.astype(np.int64) if slot_map.tracks else None
        split.hot = slot_map.hot

    def _resize(self, slots: int) -> None:
        if slots < self.slots:
            self.keeper.keep(slots)
        (axis,) = self.split.partitioning.axes
        self.slots = slots
        self.split = Split(self.plan, partition_along(self.plan, axis, slots, self.settings.groups), logged=True)
        self.split.sketch = KeySketch(self.settings.groups, slots)
        self._log = Log(self.checkpoint, self.split, self._axis, self.tuning.state)

    def is_over(self, track: Track, advanced: Advanced) -> bool:
        """Whether no row that came before a parallel track can join with a row to come, once slots have advanced so
        far. Rows of a table always can."""
        sources = [self.query.sources[number].stream for number in self.tracked_sources]
        needed = self.horizon(advanced)
        return all(
            not stream.is_table and (stream.name not in track.newest or needed[stream.name] > track.newest[stream.name])
            for stream in sources
        )

    @property
    def tracked_sources(self) -> list[int]:
        """The sources whose rows move with their groups."""
        axis = spill_axis(self.plan, self.settings.groups)
        return [] if axis is None else [number for number in range(len(self.query.sources)) if axis.has(number)]

    @property
    def spills(self) -> bool:
        """Whether groups of rows can leave memory."""
        return self.settings.may_spill and spill_axis(self.plan, self.settings.groups) is not None

    @property
    def copies(self) -> float:
        """How often a row of the log is in memory, if all its groups are: a query may read a stream several times."""
        return len(self.query.sources) / len({source.stream.name for source in self.query.sources})

    def settled(self, ledger: Ledger) -> Ledger:
        """The ledger without groups that have no row on disk any more that could join with anything."""
        if not ledger.generations.left or (axis := spill_axis(self.plan, self.settings.groups)) is None:
            return ledger

        def streams(group: int) -> list[str]:
            return [self.query.sources[source].stream.name for source in axis.sources(group)]

        return ledger.settled(streams, self.horizon, axis.size)

    @property
    def stays(self) -> str:
        """Which state stays in memory, and why, for display."""
        if not self.settings.may_spill:
            return "spill is off"
        if self.query.counts_rows:
            waits = "" if self.query.group is None else ", and combinations until they leave their windows"
            return f"rows wait in memory for the watermark{waits}"
        return "groups of GROUP BY wait in memory for the end of their window"

    @property
    def has_small_state(self) -> bool:
        """Whether slots have state that cannot be rebuilt from rows."""
        return self.query.group is not None or self.query.counts_rows or self.query.asks

    @property
    def here(self) -> Mapping[int, Slot] | None:
        """By number, the slots that live in this process between their turns; None if they live in arenas."""
        return self.keeper.slots if isinstance(self.keeper, MemoryKeeper) else None

    @property
    def keeps_lookups(self) -> bool:
        """Whether this process also takes the next turn of a slot: what it asks then, no other has to ask again."""
        return isinstance(self.keeper, MemoryKeeper)

    def lookups(self, number: int, history: str) -> tuple[Lookups, bool]:
        """What asks for a slot whose last turn ended with a history; and whether it is new, so that it knows nothing of
        what the slot has asked."""
        if number in self._lookups and self._lookups[number][0] == history:
            return self._lookups.pop(number)[1], False  # kept again if the turn succeeds: a failed one took answers
        self.drop_lookups(number)
        assert self._make_lookups is not None
        return self._make_lookups(), True

    def drop_lookups(self, number: int) -> None:
        """The slot is rebuilt: it does not know how far scans have come here."""
        known = self._lookups.pop(number, None)
        if known is not None:
            known[1].close()

    def keep_lookups(self, number: int, history: str, lookups: Lookups) -> None:
        """The slot's turn has ended with this history."""
        self._lookups[number] = history, lookups

    def close(self) -> None:
        """Stop to ask."""
        for _, lookups in self._lookups.values():
            lookups.close()
        self._lookups.clear()

    def complete(self, advanced: Advanced, waits: Sequence[int]) -> Advanced | None:
        """How far all results were made, once slots have advanced so far, while rows of these times wait for answers.
        None if no table is asked."""
        if not self.query.asks:
            return None
        watermarks = self.watermarks(advanced)
        watermarks.not_after(min(waits, default=None))
        reached = watermarks.reached
        return Advanced(reached.newest, reached.ended, reached.idle, reached.used, advanced.counted)

    @property
    def streams(self) -> dict[str, BoundStream]:
        """The query's streams, by name."""
        return {s.stream.name: s.stream for s in self.query.sources if not s.stream.is_table}

    def watermarks(self, reached: Reached | None = None) -> Watermarks:
        """The watermarks of the query's streams."""
        made = Watermarks(self.streams.values())
        if reached is not None:
            made.restore(reached)
        return made

    def horizon(self, advanced: Advanced, held: Advanced | None = None) -> dict[str, int]:
        """By stream, the time before which no row is needed once slots have advanced so far (a commit's `advanced`).
        While groups are on disk, all results of earlier rows were made when slots had advanced to `held`."""
        if held is not None:
            return horizon(self.plan, self.watermarks(held), held.counted, later=True)
        return horizon(self.plan, self.watermarks(advanced), advanced.counted)

    def after(self, decision: BatchDecision, newest: Mapping[str, int]) -> Watermarks:
        """The watermarks after a batch whose readable rows have these newest times."""
        watermarks = self.watermarks(decision.watermarks)
        watermarks.finish_batch(newest, decision.ended, decision.quiet)
        return watermarks


def horizon(
    plan: Plan, watermarks: Watermarks, counted: Mapping[int, int | None], later: bool = False
) -> dict[str, int]:
    """By stream, the time before which no row is needed once slots have advanced to these watermarks. A row is needed
    while it waits for the watermark, and after that as long as a future row may join with it. The time bounds tell how
    long that is and, for a source with a ROWS window, the time up to which it has `counted`. With `later`, rows that
    came after that are needed too, whatever they may join with."""
    sources, by_stream = plan.query.sources, watermarks.by_stream
    in_order = plan.query.counts_rows
    by_source = [
        FOREVER if s.stream.is_table else watermarks.query if in_order else by_stream[s.stream.name] for s in sources
    ]
    found: dict[str, int] = {}
    for number, source in enumerate(sources):
        if not source.stream.is_table:
            least = plan.graph.bounds.horizon(number, by_source)
            if in_order:
                gone = counted.get(number)
                least = least if gone is None else max(least, gone)
                least = -FOREVER if watermarks.query is None else min(least, watermarks.query)
            if later:
                since = by_source[number]
                least = -FOREVER if since is None else min(least, since)
            found[source.stream.name] = min(least, found.get(source.stream.name, FOREVER))
    return found


def checkpoint_at(root: str) -> Checkpoint:
    """The checkpoint in a folder."""
    return Checkpoint(Store(root))
