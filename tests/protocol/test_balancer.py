"""The balancer: slots that hold much give groups to slots that hold little, and the results stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import BalanceTuning
from eddyline.protocol.adapted import Adapted, AfterBatch, accounts_that_move
from eddyline.protocol.balancer import Balancer
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import Record
from eddyline.spill.accounts import KEPT, TABLE, Spillable
from tests.support.durable_world import Row, World
from tests.support.spilling import group_of

GROUPS, SLOTS = 30, 3
FIRST = [key for key in range(400) if group_of(key, GROUPS) < 10]
OTHERS = [key for key in range(400) if group_of(key, GROUPS) >= 10]
KEYS = FIRST[:80] + OTHERS[:40]
"""Two thirds of the rows are in the groups that the first of three slots has when a job begins."""


def batch(time: int) -> dict[str, list[Row]]:
    return {"a": [(time, key) for key in KEYS], "b": [(time + 1, key) for key in KEYS]}


class Job(World):
    """A job with a balancer."""

    def __init__(self, folder: Path, memory: int, **options: Any) -> None:
        ticks = count(0.0, 100.0)
        self.balancer = Balancer(memory, lambda: next(ticks), BalanceTuning(trial_batches=1, rest=0.5))
        options = {"slots": SLOTS, "groups": GROUPS, "balance": "moving-state", "host": None, **options}
        super().__init__(folder, memory=memory, windows=("RANGE 1 SECOND",) * 2, **options)

    def _place(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        return self.balancer(so_far, after)


def least_of_most(job: World) -> float:
    held = [job.slot(slot).state_bytes for slot in range(SLOTS)]
    return min(held) / max(held)


def test_two_thirds_of_the_rows_on_one_of_three_slots_are_spread_within_three_moves(tmp_path: Path) -> None:
    job, one = Job(tmp_path / "many", memory=150_000), World(tmp_path / "one", windows=("RANGE 1 SECOND",) * 2)
    decisions = []
    for time in range(0, 200, 10):
        for each in (job, one):
            each.batch(**batch(time))
        decisions += job.balancer.decisions()
    assert least_of_most(job) > 0.8
    for each in (job, one):
        each.batch("end", ended=["a", "b"])
    assert job.results == one.results
    moves = [decision for decision in decisions if decision.kind == "move"]
    assert 1 <= len(moves) <= 3 and all(" from slot 0 to slot " in move.what and move.why for move in moves)
    assert [d.what for d in decisions if d.kind == "balance" and " paid: " in d.what]


def test_groups_on_disk_stay_and_their_slot_takes_part_in_no_move(tmp_path: Path) -> None:
    told: list[tuple[Sequence[int], list[int]]] = []
    job = Job(tmp_path, memory=150_000)
    decide: Callable[..., Any] = job.balancer._manager.decide

    def seen(state: Any, slot_map: SlotMap, reports: Sequence[Any], *rest: Any) -> Any:
        told.append((sorted(rest[2]), [report.slot for report in reports if report.spilling]))
        return decide(state, slot_map, reports, *rest)

    job.balancer._manager.decide = seen  # type: ignore[method-assign]
    job.batch(then=Moves(leave=(0, 25)), **batch(0))
    job.batch(**batch(10))
    job.batch(then=Moves(sweep=(25,)), **batch(20))
    assert told == [([0, 25], [0, 2]), ([0, 25], []), ([0, 25], [2])]


def test_what_the_manager_remembers_is_in_the_commit(tmp_path: Path) -> None:
    job = Job(tmp_path, memory=150_000)
    for time in range(0, 30, 10):
        job.batch(**batch(time))
    commit = job.coordinator.commit
    assert commit.balance.batch == 3 and Job(tmp_path, memory=150_000).coordinator.commit.balance == commit.balance


def test_a_finished_job_decides_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path, memory=150_000)
    job.batch(**batch(0))
    job.batch("end", ended=["a", "b"])
    assert job.coordinator.commit.balance.batch == 1


def test_reports_leave_out_groups_of_sources_that_every_slot_has() -> None:
    balancer = Balancer(None, lambda: 0.0)
    records = [Record(slot) for slot in range(2)]
    even = SlotMap(2, 4)
    found = balancer(Adapted(Moves(leave=(1, 5)), even, ManagerState()), AfterBatch(Ledger(), records))
    assert found.slot_map == even and found.balance.batch == 1


def test_a_group_that_moves_keeps_its_account(tmp_path: Path) -> None:
    job = World(tmp_path, slots=SLOTS, groups=GROUPS, balance="moving-state", windows=("RANGE 1 SECOND",) * 2)
    for time in range(0, 50, 10):
        job.batch(to=SlotMap(SLOTS, GROUPS).moved(range(5), to=1) if time == 40 else None, **batch(time))
    before = {row["group"]: row for row in np.frombuffer(job.coordinator.commit.moved, TABLE)}
    assert before and before.keys() <= set(range(5))
    decision = job.begin()
    sender, receiver = (job.turn(decision, slot).record.spillable.table for slot in (0, 1))
    assert not np.isin(sender["group"], range(5)).any()
    come = receiver[receiver["group"] < 5]
    assert set(come["group"].tolist()) == before.keys(), "nothing came since"
    for row in come:
        was = before[row["group"]]
        assert row["rows"] == was["rows"] and row["idle"] == was["idle"] + 1
        assert row["results"] == pytest.approx(KEPT * was["results"])
        assert row["arrived"] == pytest.approx(KEPT * was["arrived"]), "rows that are loaded are no arrivals"


def test_accounts_of_groups_that_stay_do_not_travel() -> None:
    table = np.array([(group, 1, 10, 5.0, 0, 2) for group in (0, 1, 5)], TABLE)
    records = [Record(slot, spillable=Spillable(table.tobytes())) for slot in range(2)]
    even = SlotMap(2, 4)
    assert accounts_that_move(records, even, even) == b""
    found = np.frombuffer(accounts_that_move(records, even, even.moved([1], to=1)), TABLE)
    assert found["group"].tolist() == [1], "once, and without groups of sources that follow"


def test_time_goes_on_after_a_restart_whatever_the_clock_says() -> None:
    even, after = SlotMap(2, 4), AfterBatch(Ledger(), [Record(slot) for slot in range(2)])
    clock = iter([1000.0, 1010.0, 1040.0])
    first = Balancer(None, lambda: next(clock))
    found = first(first(Adapted(Moves(), even, ManagerState()), after), after)
    assert found.balance.at == 40
    clock = iter([5.0, 7.0])
    assert Balancer(None, lambda: next(clock))(found, after).balance.at == 42
