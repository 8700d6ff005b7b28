"""The balancer: which slot has which partition group in the next batch, decided after each batch.

The distribution manager decides (balance/manager.py) from what slots have measured. Groups with rows on disk stay where
they are, and no group moves before a batch that begins with a sweep or with groups that leave memory: both at once
would take the memory that they are about to free.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from eddyline.balance.manager import DistributionManager
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.reports import SlotReport, group_loads, shared_cpu
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import DEFAULT, BalanceTuning
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import COMBINED, Record
from eddyline.routing.decisions import Decision

Placer = Callable[[ManagerState, SlotMap, Ledger, Moves, Sequence[Record]], tuple[SlotMap, ManagerState]]
"""(what the manager remembers, the slot of each group in a batch, the ledger after it, what groups do before the next
one, the records of the slots) -> the slot of each group in the next batch, and what the manager remembers then."""

_instead: Placer | None = None


def place_by(placer: Placer | None) -> None:
    """From now on the balancers of this process do what this placer says, and do not ask the manager; None ends it.
    For tests."""
    global _instead
    _instead = placer


class Balancer:
    """Decides the slot maps of one job."""

    def __init__(
        self, memory: int | None, clock: Callable[[], float] = time.time, tuning: BalanceTuning = DEFAULT
    ) -> None:
        """`memory` is the most that a slot may hold."""
        self._manager, self._clock = DistributionManager(memory, tuning=tuning), clock
        self._before = clock()
        self._decisions: list[Decision] = []

    def __call__(
        self, state: ManagerState, slot_map: SlotMap, ledger: Ledger, moves: Moves, records: Sequence[Record]
    ) -> tuple[SlotMap, ManagerState]:
        """The slot of each group in the next batch."""
        if _instead is not None:
            return _instead(state, slot_map, ledger, moves, records)
        now = self._clock()
        seconds, self._before = max(now - self._before, 1e-6), now
        spilling = bool(moves.leave or moves.sweep)
        reports = [_report(record, slot_map.groups, spilling) for record in records if record.slot != COMBINED]
        stay = _led(slot_map, (*ledger.generations.left, *moves.leave))
        decided, state = self._manager.decide(state, slot_map, reports, now, seconds, stay)
        for move in decided.moves:
            slot_map = slot_map.moved(move.groups, move.receiver)
        self._decisions += replace(decided, spills=()).decisions  # slots are not forced to spill yet
        return slot_map, state

    def decisions(self) -> list[Decision]:
        """The decisions since the last call."""
        found, self._decisions = self._decisions, []
        return found


def stays(
    state: ManagerState, slot_map: SlotMap, ledger: Ledger, moves: Moves, records: Sequence[Record]
) -> tuple[SlotMap, ManagerState]:
    """No group moves to another slot."""
    return slot_map, state


def _led(slot_map: SlotMap, groups: Collection[int]) -> set[int]:
    """Those of these groups that slots have by the map; the others are of sources that every slot has."""
    return {group for group in groups if group < slot_map.groups}


def _report(record: Record, groups: int, spilling: bool) -> SlotReport:
    table = record.spillable.table
    table = table[table["group"] < groups]
    cpu = shared_cpu(record.cpu, table["rows"], table["results"])
    return SlotReport(
        record.slot,
        memory=record.held.bytes,
        growth=record.spillable.growth,
        cpu=record.cpu,
        rows_out=record.counts.rows_out,
        spilling=spilling,
        rows_in=record.rows_in,
        groups=group_loads(table["group"], table["rows"], table["bytes"], table["results"], cpu),
    )
