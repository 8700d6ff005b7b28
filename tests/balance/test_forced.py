"""Active-disk: a slot whose state is not productive is forced to spill, no more than M_query - M_cluster."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.balance.decided import Decided
from eddyline.balance.forced import SpillMode, productivity
from eddyline.balance.manager import DistributionManager
from eddyline.balance.reports import Loads
from eddyline.balance.slot_map import SlotMap
from tests.balance.cluster import Job, reports

MB = 1_000_000
LIMIT = 1000 * MB
RATIOS = np.repeat([4.0, 1.0, 1.0], 20)
"""Results of groups: those of the first slot are four times as productive."""


def forced(
    mode: SpillMode,
    size: int = 37 * MB,
    results: np.ndarray = RATIOS,
    growth: int = 10 * MB,
    batches: int = 3,
    on_disk: tuple[int, ...] = (),
) -> tuple[Job, Decided]:
    job, decided = Job(DistributionManager(LIMIT, mode), SlotMap(3, 60)), Decided()
    for _ in range(batches):
        decided = job.batch(reports(job.map, size, 0.1, results, growth=growth, on_disk=on_disk))
    return job, decided


def test_the_less_productive_slot_is_forced() -> None:
    job, decided = forced("active-disk")
    (spill,) = decided.spills
    assert spill.slot in (1, 2)
    assert spill.bytes == 300 * MB
    assert "more than 2 times as many" in spill.why
    assert job.state.forcing.bytes == 300 * MB
    assert decided.decisions[0].kind == "force-spill"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"mode": "lazy-disk"}, "lazy-disk forces nothing"),
        ({"results": np.ones(60)}, "all slots are as productive"),
        ({"results": np.repeat([1.9, 1.0, 1.0], 20)}, "less than lambda times"),
        ({"size": 20 * MB}, "memory is enough"),
        ({"batches": 2}, "not for long enough"),
    ],
)
def test_no_slot_is_forced_without_need(changed: dict, why: str) -> None:
    _, decided = forced(**{"mode": "active-disk", **changed})
    assert not decided.spills, why


def test_the_cap() -> None:
    """M_query is 3 * (740 + 20) MB and M_cluster is 3 * 750 MB."""
    _, decided = forced("active-disk", growth=MB)
    assert sum(spill.bytes for spill in decided.spills) == 30 * MB
    job, decided = forced("active-disk", growth=MB, batches=40)
    assert job.state.forcing.bytes <= 30 * MB


def test_what_came_back_from_disk_may_be_forced_again() -> None:
    job, _ = forced("active-disk")
    job.batch(reports(job.map, 37 * MB, 0.1, RATIOS, growth=10 * MB, on_disk=(0, 300 * MB, 0)))
    assert job.state.forcing.bytes == 300 * MB
    job.batch(reports(job.map, 37 * MB, 0.1, RATIOS, growth=10 * MB, on_disk=(0, 100 * MB, 0)))
    assert job.state.forcing.bytes == 100 * MB


def test_no_slot_is_forced_while_groups_move() -> None:
    sizes = np.repeat([37, 10, 37], 20) * MB
    job, spilled = Job(DistributionManager(LIMIT, "active-disk"), SlotMap(3, 60)), []
    for _ in range(3):
        decided = job.batch(reports(job.map, sizes, 0.0, RATIOS, growth=30 * MB))
        spilled += decided.spills
    assert decided.moves
    assert not spilled


def test_auto_compares_what_would_leave_next() -> None:
    """All slots have the same unproductive groups; the first one has productive groups, too."""
    results = np.where(np.arange(60) % 20 < 10, 1.0, np.repeat([8.0, 1.0, 1.0], 20))
    assert forced("active-disk", results=results)[1].spills
    assert not forced("auto", results=results)[1].spills
    assert forced("auto")[1].spills, "where slots differ in all groups it forces, too"


def test_productivity_of_the_poorest_groups() -> None:
    slot_map = SlotMap.of(2, [0, 1, 0, 1, 0, 1])
    loads = Loads.of(reports(slot_map, [10, 10, 20, 20, 10, 30], 0.0, [100, 0, 20, 60, 30, 30]), 2, 6)
    assert productivity(loads, slot_map.places).tolist() == [150 / 40, 90 / 60]
    assert productivity(loads, slot_map.places, 15).tolist() == [20 / 20, 30 / 40]
    assert productivity(loads, slot_map.places, 5).tolist() == [20 / 20, 0 / 10]
