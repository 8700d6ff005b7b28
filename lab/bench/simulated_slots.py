"""A simulation of slots under load, with the real distribution manager: what a batch costs, what it stores, what moves.

Each group has a rate (rows a batch), a window (rows expire at an even rate) and a join ratio (results per row). A slot
takes CPU for its rows and results, with noise, and for rows of groups that have moved to it, which it reads from the
log. A batch lasts as long as its slowest slot, and at least its interval. Where slots have a limit, the least
productive groups of a full slot leave memory; rows of a cold group make no results before the end. All numbers come
from one seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.decided import Decided
from eddyline.balance.manager import DistributionManager
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.reports import GROUP_LOAD, Floats, SlotReport
from eddyline.balance.slot_map import Places32, SlotMap
from eddyline.codec import as_json, packed
from eddyline.protocol.spiller import HIGH
from eddyline.spill.accounts import KEPT

Rates = Callable[[int, Places32], Floats]
"""Rows by group in a batch, by the number of the batch and by where groups are."""

ROW_BYTES, ROW_SECONDS, RESULT_COST, OPEN_COST = 100, 1e-6, 0.5, 0.3
"""Bytes and CPU seconds of a row; what a result costs, and what opening a row of a group that moved, in rows."""
SHARE = 0.3
"""The share of the limit that leaves memory at a time."""


@dataclass(frozen=True)
class Workload:
    """Slots, groups and what comes to them."""

    name: str
    slot_map: SlotMap
    rates: Rates
    batches: int
    seconds: float = 10.0
    """The time between two batches."""
    window: float = 60.0
    """Batches after which a row has expired; infinite: never."""
    ratio: Floats | float = 1.0
    """Results per row, by group."""
    noise: float = 0.05
    """The standard deviation of a slot's CPU, as a share of it."""
    limit: int | None = None


@dataclass
class Course:
    """What happened, batch by batch."""

    most: list[float] = field(default_factory=list)
    """CPU of the most loaded slot over the mean."""
    possible: list[float] = field(default_factory=list)
    """The least that any map could make of it: no group can be divided."""
    memory: list[Floats] = field(default_factory=list)
    """Bytes by slot, where there are few slots."""
    least_most: list[float] = field(default_factory=list)
    """Memory of the least loaded slot over that of the most loaded one."""
    seconds: list[float] = field(default_factory=list)
    """How long a batch took."""
    results: list[float] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    groups_moved: list[int] = field(default_factory=list)
    returns: int = 0
    """Groups that moved back to the slot from which they had come."""
    undone: int = 0
    forced: int = 0
    decision_seconds: list[float] = field(default_factory=list)
    decided: list[tuple[int, Decided]] = field(default_factory=list)
    """The decisions that changed or found something, with their batches."""
    state: ManagerState = field(default_factory=ManagerState)
    slot_map: SlotMap | None = None
    opened: float = 0.0
    """CPU seconds for rows of groups that moved."""
    worked: float = 0.0
    """CPU seconds for everything else."""
    on_disk: Floats = field(default_factory=lambda: np.zeros(0))
    """Rows on disk by slot, at the end."""


class SimulatedSlots:
    """Runs one workload; without a manager no group moves."""

    def __init__(self, load: Workload, manager: DistributionManager | None, seed: int = 0) -> None:
        self._load, self._manager = load, manager
        self._rng = np.random.default_rng(seed)
        self._map, groups = load.slot_map, load.slot_map.groups
        self._rows, self._disk = np.zeros(groups), np.zeros(groups)
        self._cold = np.zeros(groups, bool)
        self._arrived, self._results = np.zeros(groups), np.zeros(groups)
        """Decayed, as slots keep them."""
        self._came_from = np.full(groups, -1, np.int32)
        self._opening = np.zeros(load.slot_map.slots)
        self._now = 0.0
        self.course = Course()
        self.report_bytes = 0
        """The size of all reports of the last batch, as slots send them."""
        self.state_bytes = 0
        """The largest state of the manager in a commit."""

    def run(self) -> Course:
        """All batches."""
        for batch in range(self._load.batches):
            self._batch(batch)
        self.course.slot_map = self._map
        self.course.on_disk = self._by_slot(self._disk)
        return self.course

    def _by_slot(self, values: Floats) -> Floats:
        return np.bincount(self._map.places, values, self._map.slots).astype(np.float64)

    def _batch(self, batch: int) -> None:
        load, course = self._load, self.course
        arrived = load.rates(batch, self._map.places)
        warm = np.where(self._cold, 0.0, arrived)
        results = warm * load.ratio
        kept = 1 - 1 / load.window
        before = self._by_slot(self._rows)
        self._rows = self._rows * kept + warm
        self._disk = np.where(self._cold, self._disk * kept + arrived, 0.0)
        self._arrived = KEPT * self._arrived + (1 - KEPT) * warm
        self._results = KEPT * self._results + (1 - KEPT) * results
        work = (warm + RESULT_COST * results) * ROW_SECONDS
        noise = 1 + load.noise * self._rng.standard_normal(self._map.slots)
        cpu = self._by_slot(work) * np.maximum(noise, 0.1)
        course.worked += float(cpu.sum())
        course.opened += float(self._opening.sum())
        took = max(load.seconds, float((cpu + self._opening).max()))
        self._now += took
        self._opening = np.zeros(self._map.slots)
        memory = self._by_slot(self._rows) * ROW_BYTES
        mean = max(float(cpu.mean()), 1e-12)
        course.most.append(float(cpu.max()) / mean)
        course.possible.append(max(1.0, float(work.max()) / mean))
        course.least_most.append(float(memory.min() / max(memory.max(), 1.0)))
        course.seconds.append(took)
        course.results.append(float(results.sum()))
        if self._map.slots <= 16:
            course.memory.append(memory)
        growth = memory - before * ROW_BYTES
        leave = self._leaving(memory, growth)
        self._decide(batch, cpu, memory, growth, arrived, results, took, leave)
        self._spill(leave)

    def _decide(
        self,
        batch: int,
        cpu: Floats,
        memory: Floats,
        growth: Floats,
        arrived: Floats,
        results: Floats,
        took: float,
        leave: NDArray[np.bool_],
    ) -> None:
        if self._manager is None:
            return
        spilling = self._by_slot(leave.astype(np.float64)) > 0
        reports = self._reports(cpu, memory, growth, self._by_slot(arrived), self._by_slot(results), spilling, took)
        stay = np.flatnonzero(self._cold | leave)
        begin = time.thread_time()
        decided, state = self._manager.decide(self.course.state, self._map, reports, self._now, took, stay)
        self.course.decision_seconds.append(time.thread_time() - begin)
        self.course.state = state
        if decided.moves:
            self.report_bytes = sum(len(packed(report)) for report in reports)
            self.state_bytes = max(self.state_bytes, len(as_json(state)))
        self.course.moves.append(len(decided.moves))
        self.course.groups_moved.append(sum(len(move.groups) for move in decided.moves))
        if decided != Decided():
            self.course.decided.append((batch, decided))
        self._move(decided)
        self._force(decided, memory)

    def _reports(
        self,
        cpu: Floats,
        memory: Floats,
        growth: Floats,
        rows_in: Floats,
        rows_out: Floats,
        spilling: NDArray[np.bool_],
        took: float,
    ) -> list[SlotReport]:
        order = np.argsort(self._map.places, kind="stable")
        table = np.empty(order.size, GROUP_LOAD)
        table["group"], table["rows"] = order, self._rows[order]
        table["bytes"], table["results"] = self._rows[order] * ROW_BYTES, self._results[order]
        shares = self._arrived + RESULT_COST * self._results
        whole = self._by_slot(shares)
        table["cpu"] = (shares * (cpu / np.maximum(whole, 1e-12))[self._map.places])[order]
        ends = np.searchsorted(self._map.places[order], np.arange(self._map.slots + 1)).tolist()
        disk = self._by_slot(self._disk) * ROW_BYTES
        backlog = int(took > self._load.seconds)
        columns = zip(
            *(np.rint(values).astype(int).tolist() for values in (memory, growth, rows_out, disk, rows_in)),
            cpu.tolist(),
            spilling.tolist(),
            strict=True,
        )
        return [
            SlotReport(slot, held, grown, used, backlog, out, cold, leaving, came, table[a:b].tobytes())
            for slot, ((held, grown, out, cold, came, used, leaving), a, b) in enumerate(
                zip(columns, ends[:-1], ends[1:], strict=True)
            )
        ]

    def _move(self, decided: Decided) -> None:
        if not decided.moves:
            return
        places = self._map.places.copy()
        for move in decided.moves:
            groups = np.array(move.groups)
            assert (places[groups] == move.sender).all()
            assert not self._cold[groups].any()
            self.course.undone += move.undoes
            self.course.returns += int((self._came_from[groups] == move.receiver).sum())
            self._came_from[groups] = move.sender
            places[groups] = move.receiver
            self._opening[move.receiver] += float(self._rows[groups].sum()) * OPEN_COST * ROW_SECONDS
        self._map = SlotMap.of(self._map.slots, places)

    # Spilling

    def _leaving(self, memory: Floats, growth: Floats) -> NDArray[np.bool_]:
        """The groups that leave because their slot is full."""
        leave = np.zeros(self._map.groups, bool)
        if self._load.limit is None:
            return leave
        above = memory + np.maximum(growth, 0) - HIGH * self._load.limit
        for slot in np.flatnonzero(above > 0).tolist():
            leave |= self._poorest(slot, max(float(above[slot]), SHARE * self._load.limit))
        return leave

    def _poorest(self, slot: int, size: float) -> NDArray[np.bool_]:
        groups = self._map.groups_of(slot)
        groups = groups[(self._rows[groups] > 0) & ~self._cold[groups]]
        order = groups[np.argsort(self._results[groups] / self._rows[groups], kind="stable")]
        sizes = self._rows[order] * ROW_BYTES
        found = np.zeros(self._map.groups, bool)
        found[order[np.cumsum(sizes) - sizes < size]] = True
        return found

    def _force(self, decided: Decided, memory: Floats) -> None:
        for spill in decided.spills:
            assert spill.slot not in decided.busy
            self.course.forced += spill.bytes
            self._spill(self._poorest(spill.slot, spill.bytes))

    def _spill(self, leave: NDArray[np.bool_]) -> None:
        self._cold |= leave
        self._disk[leave] += self._rows[leave]
        self._rows[leave] = 0.0
