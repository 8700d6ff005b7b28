"""The number of slots follows the cores of executors, and not every change of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.protocol.adapted import Adapted, AfterBatch
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import Record
from eddyline.protocol.resizer import Resizer
from eddyline.spill.accounts import TABLE, Spillable

GROUPS = 12


def _record(slot: int, groups: Iterable[int], arrived: dict[int, float]) -> Record:
    table = np.zeros(len(list(groups)), TABLE)
    table["group"] = list(groups)
    table["arrived"] = [arrived.get(group, 1) for group in groups]
    return Record(slot, cpu=float(table["arrived"].sum()), spillable=Spillable(accounts=table.tobytes()))


class Job:
    """The slot maps of a job."""

    def __init__(self, slots: int, arrived: dict[int, float] | None = None) -> None:
        self.cores: int | None = slots
        self.asked, self._arrived = 0, arrived or {}
        self.resizer = Resizer(lambda: self.cores, self._ask)
        self.map = SlotMap(slots, GROUPS)

    def _ask(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        self.asked += 1
        return so_far

    def after(self, *cores: int | None) -> int:
        """The number of slots after batches with these numbers of cores."""
        for self.cores in cores:
            records = [_record(slot, self.map.groups_of(slot), self._arrived) for slot in range(self.map.slots)]
            so_far = Adapted(Moves(), self.map, ManagerState())
            self.map = self.resizer(so_far, AfterBatch(Ledger(), records)).slot_map
        return self.map.slots


def test_a_number_of_cores_that_stays_is_followed() -> None:
    job = Job(3)
    assert job.after(4, 4) == 3 and job.after(4) == 4
    assert job.after(2, 2) == 4 and job.after(2) == 2
    assert job.asked == 4, "the balancer decides after all other batches"
    assert [(d.kind, d.what, d.why) for d in job.resizer.decisions()] == [
        ("slots", "4 slots in place of 3: 3 groups move", "executors have had 4 cores after 3 batches"),
        ("slots", "2 slots in place of 4: 6 groups move", "executors have had 2 cores after 3 batches"),
    ]
    assert job.resizer.decisions() == []


@pytest.mark.parametrize("cores", [(2, 2, 3) * 3, (2, 4) * 5, (None,) * 9, (2, 2, None) * 3, (3,) * 9])
def test_what_does_not_stay_changes_nothing(cores: tuple[int | None, ...]) -> None:
    assert Job(3).after(*cores) == 3


def test_there_are_at_least_two_slots_and_at_most_as_many_as_groups() -> None:
    assert Job(3).after(1, 1, 1) == 2 and Job(3).after(90, 80, 99) == GROUPS


def test_a_few_more_cores_are_not_worth_a_move_and_a_few_fewer_are() -> None:
    job = Job(11)
    job.map = SlotMap(11, GROUPS)
    assert job.after(*(12,) * 5) == 11 and job.after(*(10,) * 3) == 10


def test_new_slots_get_their_share_of_the_load() -> None:
    job = Job(2, arrived={0: 9, 1: 3, 2: 3})
    assert job.after(3, 3, 3) == 3
    load = np.bincount(job.map.places, [9, 3, 3, *[1] * 9])
    assert load.max() <= 9 and load.min() >= 7, "the heaviest group alone has more than the mean"
    assert (job.map.places == SlotMap(2, GROUPS).places).sum() >= 6


def test_other_decisions_stay() -> None:
    job = Job(3)
    records = [_record(slot, job.map.groups_of(slot), {}) for slot in range(3)]
    so_far, job.cores = Adapted(Moves(leave=(1,)), job.map, ManagerState(batch=7)), 4
    found = [job.resizer(so_far, AfterBatch(Ledger(), records)) for _ in range(3)][-1]
    assert found == replace(so_far, slot_map=found.slot_map) and found.slot_map.slots == 4
