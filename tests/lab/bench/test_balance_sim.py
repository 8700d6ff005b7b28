"""The simulation of slots with the real distribution manager, on few slots: moves converge and do not oscillate."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.balance.manager import DistributionManager
from eddyline.balance.slot_map import SlotMap
from eddyline.errors import SettingError
from lab.bench import balance_sim, skewed_loads
from lab.bench.simulated_slots import Course, SimulatedSlots

SLOTS, GROUPS, HOURS = 30, 1920, 1.0


def simulated(name: str) -> tuple[Course, Course]:
    """A course without the manager and one with it."""
    load = getattr(skewed_loads, name)(SLOTS, GROUPS, HOURS)
    return SimulatedSlots(load, None).run(), SimulatedSlots(load, DistributionManager()).run()


@pytest.mark.parametrize("name", ["drift", "step", "alternating", "one_slot"])
def test_the_most_loaded_slot_has_less_to_do(name: str) -> None:
    off, on = simulated(name)
    end = len(on.most) * 3 // 4
    assert np.mean(off.most[end:]) > 1.9
    assert np.mean(on.most[end:]) < 1.4
    assert sum(on.seconds) < sum(off.seconds) / 1.1
    assert on.returns <= 0.05 * sum(on.groups_moved), "of 30 slots one in 30 by chance"
    assert on.opened < 0.02 * on.worked
    last = len(on.moves) - 1 - next(i for i, count in enumerate(reversed(on.moves)) if count)
    assert name in ("drift", "alternating") or last < len(on.moves) * 3 // 4, "it comes to rest"


def test_noise_moves_nothing() -> None:
    _, on = simulated("even")
    assert sum(on.moves) == 0


def test_a_group_that_grows_slowly_is_noticed() -> None:
    load = skewed_loads.growing(SLOTS, GROUPS, HOURS)
    course = SimulatedSlots(load, DistributionManager()).run()
    assert balance_sim.noticed(load, course) <= balance_sim.NOTICED


def test_the_same_seed_gives_the_same_course() -> None:
    load = skewed_loads.drift(8, 128, 0.2)
    one, two = (SimulatedSlots(load, DistributionManager(), seed=3).run() for _ in range(2))
    assert one.decided == two.decided
    assert one.most == two.most


def test_cases_of_the_papers() -> None:
    results = list(balance_sim.papers())
    assert all(result.ok is not False for result in results)
    moves = {r.case: r.value for r in results if r.metric == "moves in an hour"}
    assert moves["busy machine, 90%, 15 s"] > moves["busy machine, 90%, 45 s"] > moves["busy machine, 50%, 45 s"]


def test_lazy_disk_spreads_what_is_on_disk() -> None:
    """Without a manager one slot has nearly everything to clean up."""
    none, lazy = (balance_sim.spilled(skewed_loads.two_thirds(), mode) for mode in (None, "lazy-disk"))
    assert none.on_disk.max() > 2 * lazy.on_disk.max()
    assert sum(lazy.results) > 1.2 * sum(none.results)


def test_active_disk_makes_more_results_where_slots_differ() -> None:
    lazy, active = (balance_sim.spilled(SlotMap(3, 60), mode) for mode in ("lazy-disk", "active-disk"))
    assert sum(active.results) > 1.2 * sum(lazy.results)
    assert active.forced > 0


def test_other_parts_are_refused() -> None:
    with pytest.raises(SettingError, match="large, papers, sizes"):
        balance_sim.run("small")


def test_parts_of_the_large_case_in_small() -> None:
    results = list(balance_sim.large(slots=20, groups=640, hours=0.2))
    assert {result.case for result in results} == {"even", "drift", "step", "alternating", "one slot", "growing"}
