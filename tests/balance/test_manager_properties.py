"""Whatever slots report: the map stays total, groups on disk stay, a move helps, and decisions are a function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eddyline.balance.forced import SpillMode
from eddyline.balance.manager import DistributionManager
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.codec import as_json, of_json
from tests.balance.cluster import Job, reports
from tests.support.properties import examples

MB = 1_000_000


@dataclass(frozen=True)
class Case:
    """A job with random loads."""

    slot_map: SlotMap
    limit: int | None
    mode: SpillMode
    seed: int
    skew: float
    batches: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    slots = draw(st.integers(1, 12))
    groups = draw(st.integers(1, 80))
    places = draw(st.lists(st.integers(0, slots - 1), min_size=groups, max_size=groups))
    limit = draw(st.sampled_from([None, 100 * MB, 1000 * MB]))
    mode: SpillMode = draw(st.sampled_from(["auto", "lazy-disk", "active-disk"]))
    seed, skew = draw(st.integers(0, 2**32)), draw(st.floats(0, 3))
    return Case(SlotMap.of(slots, places), limit, mode, seed, skew, draw(st.integers(4, 40)))


def weights(rng: np.random.Generator, groups: int, skew: float) -> np.ndarray:
    return rng.permutation((np.arange(groups) + 1.0) ** -skew)


@examples(60)
@given(cases())
def test_what_holds_for_every_decision(case: Case) -> None:
    rng, groups, slots = np.random.default_rng(case.seed), case.slot_map.groups, case.slot_map.slots
    job = Job(DistributionManager(case.limit, case.mode), case.slot_map)
    twin = Job(DistributionManager(case.limit, case.mode), case.slot_map)
    whole = (case.limit or 500 * MB) * slots * rng.uniform(0.2, 1.2)
    shape, work = weights(rng, groups, case.skew), weights(rng, groups, case.skew)
    for _ in range(case.batches):
        if rng.random() < 0.1:
            shape, work = weights(rng, groups, case.skew), weights(rng, groups, case.skew)
        sizes = (whole * shape / shape.sum()).astype(np.int64)
        cpu = slots * 6.0 * work / work.sum() * rng.uniform(0.9, 1.1, groups)
        stay = np.flatnonzero(rng.random(groups) < 0.2).tolist()
        spilling = np.flatnonzero(rng.random(slots) < 0.1).tolist()
        given_reports = reports(
            job.map, sizes, cpu, rng.random(groups), spilling=spilling, growth=MB, on_disk=[50 * MB] * slots
        )
        before = job.map
        held = np.bincount(before.places, sizes, slots)
        decided = job.batch(given_reports, stay)

        twin.state = of_json(as_json(twin.state), ManagerState)
        assert twin.batch(given_reports, stay) == decided
        assert twin.state == job.state

        moved = [group for move in decided.moves for group in move.groups]
        assert len(moved) == len(set(moved)), "a group moves once"
        assert not set(moved) & set(stay)
        assert np.bincount(job.map.places, minlength=slots).sum() == groups
        assert not decided.busy & set(spilling)
        assert not decided.busy & {spill.slot for spill in decided.spills}
        assert not {move.sender for move in decided.moves} & {move.receiver for move in decided.moves}
        memory = np.bincount(job.map.places, sizes, slots)
        for move in decided.moves:
            assert move.groups
            assert move.why
            assert move.sender != move.receiver
            if not move.undoes:
                assert move.measured["receiver_after"] <= move.measured["sender"]
                assert move.amount <= move.measured["sender"] - move.measured["receiver"]
            if move.measure == "memory":
                assert memory[move.receiver] <= held[move.sender]
            if case.limit and not move.undoes:
                assert memory[move.receiver] <= max(0.75 * case.limit, held[move.receiver])
        if decided.spills:
            assert case.mode != "lazy-disk"
            assert case.limit
            room = held.sum() + slots * (50 * MB + 20 * MB) - 0.75 * case.limit * slots
            assert sum(spill.bytes for spill in decided.spills) <= room


@examples(12)
@given(cases())
def test_loads_that_stay_the_same_come_to_rest(case: Case) -> None:
    rng, groups, slots = np.random.default_rng(case.seed), case.slot_map.groups, case.slot_map.slots
    job = Job(DistributionManager(case.limit), case.slot_map)
    shape, work = weights(rng, groups, case.skew), weights(rng, groups, case.skew)
    sizes = ((case.limit or 500 * MB) * slots * 0.4 * shape / shape.sum()).astype(np.int64)
    cpu = slots * 6.0 * work / work.sum()
    most, last = [float(np.bincount(job.map.places, cpu, slots).max())], 0
    for batch in range(400):
        if job.batch(reports(job.map, sizes, cpu)).moves:
            last = batch
        most.append(float(np.bincount(job.map.places, cpu, slots).max()))
    assert last < 300, "it comes to rest"
    assert most[-1] <= most[0] + 0.15 * cpu.sum() / slots, "and the most loaded slot has no more to do than before"
