"""Reports of slots for tests of the distribution manager: groups with loads, placed by a slot map."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike

from eddyline.balance.decided import Decided, GroupMove
from eddyline.balance.manager import DistributionManager
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.reports import SlotReport, group_loads
from eddyline.balance.slot_map import SlotMap

LONGEST = 600


def reports(
    slot_map: SlotMap,
    bytes: ArrayLike = 0,
    cpu: ArrayLike = 0.0,
    results: ArrayLike = 1.0,
    rows_in: int = 10_000_000,
    backlog: int = 0,
    growth: int = 0,
    spilling: Collection[int] = (),
    on_disk: Sequence[int] = (),
) -> list[SlotReport]:
    """A report for each slot; numbers are by group, and one number is for all groups."""
    sizes, work, made = (np.broadcast_to(values, slot_map.groups) for values in (bytes, cpu, results))
    found = []
    for slot in range(slot_map.slots):
        groups = slot_map.groups_of(slot)
        found.append(
            SlotReport(
                slot,
                memory=int(sizes[groups].sum()),
                growth=growth,
                cpu=float(work[groups].sum()),
                backlog=backlog,
                rows_in=rows_in,
                rows_out=int(made[groups].sum()),
                on_disk=on_disk[slot] if on_disk else 0,
                spilling=slot in spilling,
                groups=group_loads(groups, sizes[groups] // 100, sizes[groups], made[groups], work[groups]),
            )
        )
    return found


def after_moves(slot_map: SlotMap, moves: Sequence[GroupMove]) -> SlotMap:
    """The map after moves."""
    for move in moves:
        assert {slot_map.slot_of(group) for group in move.groups} == {move.sender}
        slot_map = slot_map.moved(move.groups, move.receiver)
    return slot_map


class Job:
    """A job whose load does not depend on what the manager decides. Each call of `batch` is a batch."""

    def __init__(self, manager: DistributionManager, slot_map: SlotMap, seconds: float = 10.0) -> None:
        self.manager, self.map, self.seconds = manager, slot_map, seconds
        self.state, self.at = ManagerState(), 0.0
        self.moves: list[GroupMove] = []
        self.notes: list[str] = []

    def batch(self, given: Sequence[SlotReport], stay: Collection[int] = ()) -> Decided:
        """One batch with these reports. A test that waits for something waits for at most `LONGEST` batches."""
        self.at += self.seconds
        assert self.at <= LONGEST * self.seconds, "it never happens"
        decided, self.state = self.manager.decide(self.state, self.map, given, self.at, self.seconds, stay)
        self.map = after_moves(self.map, decided.moves)
        self.moves += decided.moves
        self.notes += (*decided.notes, *(verdict.what for verdict in decided.verdicts))
        return decided
