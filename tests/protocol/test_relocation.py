"""Partition groups move from one slot to another between two batches: every result is made once."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eddyline.balance.slot_map import SlotMap
from eddyline.protocol.ledger import Moves
from tests.support.durable_world import Row, World, in_one_slot
from tests.support.spilling import group_of

GROUPS = 8
KEYS = range(24)
BATCHES: list[dict[str, list[Row]]] = [
    {"a": [(t, key) for key in KEYS], "b": [(t + 1, key) for key in KEYS if key % 3]} for t in range(1, 60, 6)
]
ROUND = [SlotMap.of(3, [(group + n) % 3 for group in range(GROUPS)]) for n in range(len(BATCHES))]
"""Before each batch every group moves on to the next slot."""


def world(folder: Path, **options: Any) -> World:
    return World(folder, **{"slots": 3, "groups": GROUPS, "balance": "moving-state", **options})


expected = partial(in_one_slot, BATCHES)


@pytest.mark.parametrize("host", [None, "host"])
def test_groups_that_move_before_every_batch(host: str | None, tmp_path: Path) -> None:
    found = world(tmp_path, host=host).run(BATCHES, ROUND)
    assert found == expected(tmp_path) and len(found) > 100


def test_rows_move_and_no_other_is_touched(tmp_path: Path) -> None:
    job = world(tmp_path, host=None)
    for batch in BATCHES[:3]:
        job.batch(to=SlotMap(3, GROUPS), **batch)
    before = [job.slot(slot).state_rows for slot in range(3)]
    moved = SlotMap(3, GROUPS).moved([0, 1], to=2)
    job.batch(to=moved)
    job.batch(to=moved)
    after = [job.slot(slot).state_rows for slot in range(3)]
    assert after[1] == before[1] and sum(after) == sum(before)
    assert (
        before[0] - after[0]
        == after[2] - before[2]
        == sum(
            len([key for _, key in batch[s] if key is not None and group_of(key, GROUPS) < 2])
            for batch in BATCHES[:3]
            for s in "ab"
        )
    )


def test_aggregates_of_groups_that_move(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "windows": ("RANGE 20 MICROSECONDS SLIDE 5 MICROSECONDS",) * 2,
        "outputs": ("a.k", "count(*) AS n", "max(b.ts) AS t", "window_end() AS w"),
        "keys": ("a.k",),
    }
    assert world(tmp_path, **options).run(BATCHES, ROUND) == expected(tmp_path, **options)


def test_a_turn_that_is_taken_again_loads_nothing_twice(tmp_path: Path) -> None:
    job = world(tmp_path)
    for batch, then in zip(BATCHES, ROUND, strict=True):
        decision = job.begin()
        for slot in range(3):
            job.turn(decision, slot, **batch)  # the batch fails after it: its state is there and is wound back
        job.batch(to=then, **batch)
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path)


def test_a_slot_whose_state_is_lost_has_the_groups_of_the_map(tmp_path: Path) -> None:
    sink = world(tmp_path).sink
    for number, (batch, then) in enumerate(zip(BATCHES, ROUND, strict=True)):
        world(tmp_path, sink=sink, host=f"host{number // 2 % 2}").batch(to=then, **batch)
    job = world(tmp_path, sink=sink)
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_another_number_of_slots_begins_with_an_even_map(slots: int, tmp_path: Path) -> None:
    job = world(tmp_path)
    for batch, then in zip(BATCHES[:5], ROUND, strict=False):
        job.batch(to=then, **batch)
    other = world(tmp_path, slots=slots, sink=job.sink)
    for batch in BATCHES[5:]:
        other.batch(**batch)
    other.batch("end", ended=["a", "b"])
    assert other.results == expected(tmp_path)


def test_groups_on_disk_move_too(tmp_path: Path) -> None:
    job = world(tmp_path)
    moves = [Moves(leave=(0, 1, 2)), Moves(), Moves(leave=(3, 4)), Moves(sweep=(0, 3)), Moves(leave=(0,), cool=(0,))]
    for batch, to, then in zip(BATCHES, ROUND, (moves * 2)[: len(BATCHES)], strict=True):
        job.batch(to=to, then=then, **batch)
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path)


def test_where_slots_have_rows_by_another_key_groups_do_not_move(tmp_path: Path) -> None:
    job = world(tmp_path, where="a.k < b.k")
    assert job.home.even_map is None and job.batch(**BATCHES[0]).slot_map is None


def test_the_map_is_in_the_commit_and_in_the_history(tmp_path: Path) -> None:
    job = world(tmp_path)
    job.batch(to=ROUND[1], **BATCHES[0])
    commit = job.coordinator.commit
    assert commit.slot_map == SlotMap(3, GROUPS) and commit.next_map == ROUND[1]
    assert world(tmp_path).coordinator.commit == commit
    decision = job.begin()
    assert decision.map_before == SlotMap(3, GROUPS) and decision.slot_map == ROUND[1]
    assert np.array_equal(ROUND[1].places, (np.arange(GROUPS) + 1) % 3)


def test_other_maps_make_another_history(tmp_path: Path) -> None:
    world(tmp_path / "0")  # both jobs begin with the history of one checkpoint
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    jobs = [world(tmp_path / name) for name in "01"]
    for job, then in zip(jobs, ROUND[1:3], strict=True):
        job.batch(to=then, **BATCHES[0])
    assert len({job.coordinator.commit.history for job in jobs}) == 1
    assert len({job.begin().after for job in jobs}) == 2


def test_a_job_that_continues_without_balance_does_not_use_state_of_groups_that_moved(tmp_path: Path) -> None:
    job = world(tmp_path)
    for batch, then in zip(BATCHES[:5], ROUND, strict=False):
        job.batch(to=then, **batch)
    other = world(tmp_path, balance="off", sink=job.sink)
    for batch in BATCHES[5:7]:
        other.batch(**batch)
    again = world(tmp_path, sink=job.sink)
    for batch, then in zip(BATCHES[7:], ROUND, strict=False):
        again.batch(to=then, **batch)
    again.batch("end", ended=["a", "b"])
    assert again.results == expected(tmp_path)
