"""The distribution manager: when groups move, which, how many, and what came of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eddyline.balance.decided import Decided
from eddyline.balance.manager import DistributionManager
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import DEFAULT
from eddyline.codec import as_json, of_json, packed, unpacked
from tests.balance.cluster import Job, reports

MB = 1_000_000
LIMIT = 1000 * MB


def two_thirds() -> SlotMap:
    """Two thirds of 60 groups are on the first of three slots."""
    return SlotMap.of(3, [0] * 40 + [1] * 10 + [2] * 10)


def loads(job: Job, sizes: np.ndarray) -> np.ndarray:
    return np.bincount(job.map.places, sizes, job.map.slots)


# When


@pytest.mark.parametrize("limit", [LIMIT, None])
def test_two_thirds_on_one_of_three_slots_are_balanced_within_three_moves(limit: int | None) -> None:
    sizes = np.random.default_rng(0).integers(10 * MB, 20 * MB, 60)
    job = Job(DistributionManager(limit), two_thirds())
    for _ in range(30):
        job.batch(reports(job.map, sizes))
        if len(job.moves) == 3:
            break
    held = loads(job, sizes)
    assert held.min() / held.max() > 0.8
    assert len(job.moves) <= 3


def test_cpu_is_balanced_without_a_limit_of_memory() -> None:
    cpu = np.full(60, 0.15)
    job = Job(DistributionManager(), two_thirds())
    for _ in range(30):
        job.batch(reports(job.map, 100, cpu))
    assert {move.measure for move in job.moves} == {"cpu"}
    assert loads(job, cpu).min() / loads(job, cpu).max() > 0.8
    assert len(job.moves) <= 3


def test_groups_move_only_after_some_batches() -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    given = reports(job.map, 15 * MB)
    assert [bool(job.batch(given).moves) for _ in range(3)] == [False, False, True]
    job = Job(DistributionManager(LIMIT), two_thirds())
    for number in range(12):
        assert not job.batch(reports(job.map, 15 * MB if number % 3 else 1)).moves, "never three batches in a row"


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        (np.repeat([10, 2, 2], [40, 10, 10]), "the most loaded slot is below T_max"),
        (np.repeat([22, 80, 80], [40, 10, 10]), "the least loaded slot is above T_min"),
        (np.repeat([16, 55, 56], [40, 10, 10]), "the difference is below T_diff"),
        (np.repeat([18, 60, 60], [40, 10, 10]), "least is more than theta_r of most"),
    ],
)
def test_conditions(sizes: np.ndarray, why: str) -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    for _ in range(6):
        job.batch(reports(job.map, sizes * MB))
    assert not job.moves, why


def test_two_decisions_are_an_interval_apart() -> None:
    tuning = replace(DEFAULT, interval=100.0, trial_batches=1, pairs_share=0.01, rest=0.0)
    job = Job(DistributionManager(LIMIT, tuning=tuning), SlotMap.of(6, [0] * 30 + [1, 2, 3, 4, 5]))
    when = [job.at + 10 for _ in range(60) if job.batch(reports(job.map, 20 * MB)).moves]
    assert len(when) >= 3
    assert np.diff(when).min() >= 100


def test_balancing_that_has_begun_goes_on_until_slots_are_near_each_other() -> None:
    tuning = replace(DEFAULT, pairs_share=0.01, rest=0.0)
    begun = Job(DistributionManager(LIMIT, tuning=tuning), SlotMap.of(4, [0] * 40 + [1] * 10 + [2] * 24 + [3] * 26))
    for _ in range(60):
        begun.batch(reports(begun.map, 15 * MB))
    held = loads(begun, np.full(100, 15))
    assert held.min() / held.max() >= 0.85
    near = Job(DistributionManager(LIMIT, tuning=tuning), SlotMap.of(2, [0] * 40 + [1] * 33))
    for _ in range(60):
        near.batch(reports(near.map, 15 * MB))
    assert not near.moves, "0.83 is no reason to begin"


def test_a_job_that_is_behind_is_balanced_even_if_slots_are_not_busy() -> None:
    for backlog, moves in ((0, False), (5000, True)):
        job = Job(DistributionManager(), two_thirds())
        for _ in range(6):
            job.batch(reports(job.map, 100, 0.01, backlog=backlog))
        assert bool(job.moves) is moves


@pytest.mark.parametrize("slots", [2, 3, 8, 50])
@pytest.mark.parametrize("seed", range(4))
def test_noise_moves_nothing(slots: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    job = Job(DistributionManager(), SlotMap(slots, slots * 16))
    for _ in range(200):
        noise = np.maximum(0.1, 1 + 0.15 * rng.standard_normal(slots))
        job.batch(reports(job.map, 100, 0.4 * noise[job.map.places]))
    assert not job.moves


# Which


def test_the_most_productive_groups_move_for_memory() -> None:
    results = np.arange(60.0)
    job = Job(DistributionManager(LIMIT), two_thirds())
    while not job.moves:
        job.batch(reports(job.map, 15 * MB, results=results))
    assert job.moves[0].groups == tuple(range(30, 40)), "enough to bring the receiver to the mean"


def test_groups_that_take_cpu_for_few_bytes_move_for_cpu() -> None:
    sizes, cpu = np.where(np.arange(60) % 2, 10 * MB, MB), np.full(60, 0.15)
    job = Job(DistributionManager(), two_thirds())
    while not job.moves:
        job.batch(reports(job.map, sizes, cpu))
    assert all(group % 2 == 0 for group in job.moves[0].groups)


def test_groups_on_disk_stay() -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    stay = range(0, 40, 2)
    for _ in range(40):
        job.batch(reports(job.map, 15 * MB), stay)
    assert job.moves
    assert not {group for move in job.moves for group in move.groups} & set(stay)


def test_a_slot_that_spills_takes_part_in_no_move() -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    for _ in range(10):
        assert not job.batch(reports(job.map, 15 * MB, spilling=[0])).moves
    for _ in range(10):
        job.batch(reports(job.map, 15 * MB, spilling=[1]))
    assert {move.receiver for move in job.moves} == {2}


def test_a_group_that_is_heavier_than_half_of_the_difference_moves_alone_if_that_helps() -> None:
    cpu = np.array([4.5, 3.5, 1.0, 1.0])
    job = Job(DistributionManager(), SlotMap.of(2, [0, 0, 1, 1]))
    while not job.moves:
        job.batch(reports(job.map, 100, cpu))
    assert job.moves[0].groups == (1,)
    assert loads(job, cpu).tolist() == [4.5, 5.5]


def test_one_group_with_most_of_the_load_is_left_alone_and_said() -> None:
    cpu = np.where(np.arange(32) == 3, 8.0, 0.1)
    job = Job(DistributionManager(), SlotMap(4, 32))
    for _ in range(60):
        job.batch(reports(job.map, 100, cpu))
    assert job.map.groups_of(0).tolist() == [3]
    assert any("group 3 has 100% of it, and a group cannot be divided" in note for note in job.notes)
    assert sum("cannot be divided" in note for note in job.notes) == 1, "it is said once"
    assert len(job.moves) <= 4


def test_the_others_are_balanced_beside_a_slot_that_is_stuck() -> None:
    sizes = np.array([700] + [10] * 60 + [1] * 10)
    job = Job(DistributionManager(LIMIT), SlotMap.of(3, [0] + [1] * 60 + [2] * 10))
    for _ in range(30):
        job.batch(reports(job.map, sizes * MB))
    held = loads(job, sizes)
    assert held[0] == 700
    assert held[2] / held[1] > 0.8


def test_one_slot_with_nearly_everything_gives_to_many_at_once() -> None:
    job = Job(DistributionManager(), SlotMap.of(40, [0] * 960 + list(range(40))))
    decisions = 0
    for _ in range(80):
        decisions += bool(job.batch(reports(job.map, 100, 0.3)).moves)
    held = loads(job, np.full(1000, 0.3))
    assert held.max() / held.mean() < 1.25
    assert decisions <= 8


def test_a_new_slot_gets_groups_from_many() -> None:
    tuning = replace(DEFAULT, pairs_share=1.0)
    job = Job(DistributionManager(LIMIT, tuning=tuning), SlotMap.of(11, np.arange(1000) % 10))
    for _ in range(6):
        job.batch(reports(job.map, 5 * MB))
    assert len({move.sender for move in job.moves}) >= 9
    assert loads(job, np.full(1000, 5))[10] > 400


def test_a_move_for_memory_keeps_cpu_balanced() -> None:
    sizes = np.repeat([30, 2], 40)
    cpu = np.full(80, 0.2)
    job = Job(DistributionManager(LIMIT), SlotMap.of(2, [0] * 40 + [1] * 40))
    for _ in range(60):
        job.batch(reports(job.map, sizes * MB, cpu))
    busy = loads(job, cpu)
    assert job.moves
    assert {move.measure for move in job.moves} == {"memory"}
    assert busy.min() / busy.max() >= 0.8


def test_hot_groups_go_one_way_for_cpu_and_cold_ones_the_other_way_for_memory() -> None:
    sizes, cpu = np.repeat([14, 14], 40), np.repeat([0.2, 0.005], 40)
    job = Job(DistributionManager(LIMIT), SlotMap.of(2, [0] * 40 + [1] * 40))
    for _ in range(200):
        job.batch(reports(job.map, sizes * MB, cpu))
        assert loads(job, sizes * MB).max() <= 0.75 * LIMIT
    assert {move.measure for move in job.moves} == {"memory", "cpu"}
    for measured in (sizes, cpu):
        held = loads(job, measured)
        assert held.min() / held.max() >= 0.8
    assert len(job.moves) < 20
    assert len(job.moves) == len([move for move in job.moves if not move.undoes])


# What came of it


def test_a_move_that_makes_things_worse_is_undone_and_not_tried_again_soon() -> None:
    """The groups take ten times the CPU where they came to."""
    cpu, home = np.full(60, 0.15), two_thirds()
    job = Job(DistributionManager(), home)
    while not any(move.undoes for move in job.moves):
        away = job.map.places != home.places
        decided = job.batch(reports(job.map, 100, np.where(away, 10 * cpu, cpu)))
    first, undo = job.moves[0], next(move for move in job.moves if move.undoes)
    assert (undo.sender, undo.receiver) == (first.receiver, first.sender)
    assert set(undo.groups) == set(first.groups)
    assert any("did not pay and is undone" in verdict.what for verdict in decided.verdicts)
    assert [(v.about, v.paid) for v in decided.verdicts] == [(first.decision.about, False)], "it finds its move"
    for _ in range(20):
        assert not set(first.groups) & {
            group for move in job.batch(reports(job.map, 100, cpu)).moves for group in move.groups
        }


def test_the_interval_grows_while_moves_do_not_pay_and_shrinks_when_they_do() -> None:
    cpu, home = np.full(60, 0.15), two_thirds()
    job = Job(DistributionManager(), home)
    for _ in range(40):
        job.batch(reports(job.map, 100, np.where(job.map.places != home.places, 10 * cpu, cpu)))
    assert job.state.factor > 1
    for _ in range(200):
        job.batch(reports(job.map, 100, cpu))
    assert job.state.factor == 1


def test_a_move_that_pays_is_noted() -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    for _ in range(10):
        job.batch(reports(job.map, 15 * MB))
    assert any("paid: memory of the more loaded slot was 2.00 of the mean" in note for note in job.notes)


def test_more_load_in_the_whole_job_is_not_held_against_a_move() -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    for number in range(12):
        job.batch(reports(job.map, 15 * MB * (1 + 0.02 * number)))
    assert not any("not pay" in note for note in job.notes)


def test_a_group_that_moved_rests() -> None:
    tuning = replace(DEFAULT, interval=10.0, trial_batches=1, rest=30.0)
    job = Job(DistributionManager(LIMIT, tuning=tuning), two_thirds())
    moved: dict[int, float] = {}
    for number in range(200):
        hot = (np.arange(60) % 3 == number // 25 % 3) * 25 * MB + 5 * MB
        for move in job.batch(reports(job.map, hot)).moves:
            for group in move.groups:
                assert job.at - moved.get(group, -1e9) >= 300
                moved[group] = job.at
    assert moved


# State, words


def test_a_restart_goes_on_exactly() -> None:
    rng = np.random.default_rng(2)
    job, again = (Job(DistributionManager(LIMIT), two_thirds()) for _ in range(2))
    for number in range(60):
        sizes, cpu = rng.integers(MB, 30 * MB, 60), rng.random(60) / 4
        again.state = of_json(as_json(again.state), ManagerState)
        if number % 2:
            again.state = unpacked(packed(again.state), ManagerState)
        one = job.batch(reports(job.map, sizes, cpu))
        assert again.batch(reports(again.map, sizes, cpu)) == one
        assert again.state == job.state
    assert job.moves


def test_another_number_of_slots_begins_anew() -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    for _ in range(4):
        job.batch(reports(job.map, 15 * MB))
    job.map = SlotMap(5, 60)
    job.batch(reports(job.map, 15 * MB))
    assert job.state.batch == 1
    assert not job.state.watched


def test_reasons_have_words_and_numbers() -> None:
    job = Job(DistributionManager(LIMIT), two_thirds())
    decided = Decided()
    while not decided.moves:
        decided = job.batch(reports(job.map, 15 * MB))
    (decision,) = decided.decisions
    assert decision.kind == "move"
    assert decision.what == "10 groups move from slot 0 to slot 1, for memory"
    assert decision.why == (
        "memory of slot 0 is 600 MB and of slot 1 150 MB, 0.25 of it, which is less than 0.8; the mean is 300 MB;"
        " groups with 150 MB move, the most productive first; then it should be 450 MB and 300 MB"
    )
    assert decision.measured["sender"] == 600 * MB
    assert decided.busy == {0, 1}


def test_many_moves_are_summed_up_in_the_log() -> None:
    job = Job(DistributionManager(), SlotMap.of(80, [0] * 960 + list(range(80))))
    decided = Decided()
    while not decided.moves:
        decided = job.batch(reports(job.map, 100, 0.3))
    assert len(decided.moves) == 20
    assert len(decided.decisions) == 9
    assert decided.decisions[-1].what.endswith("more groups move from 1 slots")


def test_one_slot_and_no_reports() -> None:
    job = Job(DistributionManager(LIMIT), SlotMap(1, 4))
    assert job.batch(reports(job.map, 300 * MB)) == Decided()
    job = Job(DistributionManager(LIMIT), SlotMap(2, 4))
    assert job.batch([]) == Decided()
