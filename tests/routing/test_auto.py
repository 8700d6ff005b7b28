"""Auto, on a clock that only user functions advance: it finds the best order, follows drift, and does not react to
noise.

The target: after a change the cost is within a tenth of the best order's again after 50,000 tuples. Functions cost
twenty microseconds per tuple, so the budget for samples at the beginning does not matter.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from eddyline.routing.tuning import DEFAULT
from eddyline.settings import Settings
from tests.support.costly_world import US, Flags, World, independent

COST = 20 * US
SOON = 50_000


def settled(world: World, flags: Flags, rows: int = SOON) -> float:
    """The cost of the rows after the first `rows`, relative to the cost of the best order."""
    world.feed(flags[:rows])
    before = world.counted()
    world.feed(flags[rows:])
    return (world.counted() - before) / world.best(flags[rows:])


def unbeaten(world: World, flags: Flags) -> list[list[int]]:
    """The orders that auto would keep when all is calm, because no other order is cheaper by the margin; the best
    first."""
    orders = [list(order) for order in permutations(range(len(world.costs)))]
    cost = {tuple(order): world.cost_of(order, flags) for order in orders}
    best = min(cost.values())
    return sorted(
        (o for o in orders if (1 - DEFAULT.calm_margin) * cost[tuple(o)] <= best), key=lambda o: cost[tuple(o)]
    )


@pytest.mark.parametrize(
    ("costs", "selectivities", "order"),
    [
        ([1, 1, 1], [0.4, 0.6, 0.95], [0, 1, 2]),
        ([1, 1, 1], [0.2, 0.5, 0.9], [0, 1, 2]),
        ([10, 1, 1], [0.1, 0.5, 0.8], [1, 2, 0]),
        ([8, 4, 2, 1], [0.5, 0.5, 0.5, 0.5], [3, 2, 1, 0]),
    ],
)
def test_finds_the_best_order_of_independent_selections(
    costs: list[int], selectivities: list[float], order: list[int]
) -> None:
    """If one order beats all others, each tuple takes it in the end."""
    for seed in range(3):
        world = World([c * COST for c in costs])
        flags = independent(np.random.default_rng(seed), 100_000, selectivities)
        assert unbeaten(world, flags) == [order]
        assert settled(world, flags) == pytest.approx(1)
        assert world.route() == order


@pytest.mark.parametrize(
    ("costs", "selectivities"),
    [([1, 1, 1, 1], [0.9, 0.7, 0.5, 0.1]), ([4, 1, 2, 8], [0.5, 0.9, 0.5, 0.1]), ([10, 1, 1], [0.1, 0.7, 0.8])],
)
def test_finds_one_of_the_best_where_several_are_as_good(costs: list[int], selectivities: list[float]) -> None:
    """The order after a selection that few tuples pass matters little: no order is left for that when all is calm."""
    for seed in range(3):
        world = World([c * COST for c in costs])
        flags = independent(np.random.default_rng(seed), 100_000, selectivities)
        assert settled(world, flags) < 1.02
        good = unbeaten(world, flags)
        assert len(good) > 1 and world.route() in good


@pytest.mark.parametrize("packet", [16, 256, 100_000])
def test_finds_it_with_packets_of_any_size(packet: int) -> None:
    world = World([COST] * 3, packet=packet)
    assert settled(world, independent(np.random.default_rng(1), 80_000, [0.9, 0.5, 0.1])) < 1.06
    assert world.route() == [2, 1, 0]


def copies(rng: np.random.Generator, rows: int) -> Flags:
    """Three selections pass the same 40 %, and one passes a random half: by its own selectivity, that one would be
    last."""
    same = rng.random(rows) < 0.4
    return np.stack([same, same, same, rng.random(rows) < 0.5], axis=1)


def halves(rng: np.random.Generator, rows: int) -> Flags:
    """Two selections pass hardly any common rows; a third one is better than each of them alone."""
    place = rng.random(rows)
    return np.stack([rng.random(rows) < 0.5, place < 0.525, place > 0.475], axis=1)


def test_finds_the_order_of_correlated_selections() -> None:
    """By the selectivities of single selections the order is 0 1 2 3, or another one with the copies first."""
    for seed in range(2):
        flags = copies(np.random.default_rng(seed), 150_000)
        world = World([COST] * 4)
        assert world.cost_of([0, 1, 2, 3], flags) > 1.2 * world.best(flags)
        assert settled(world, flags, 2 * SOON) < 1.1
        assert world.route().index(3) == 1


def test_looks_further_than_one_step() -> None:
    """The best order does not begin with the selection that is best alone."""
    for seed in range(2):
        flags = halves(np.random.default_rng(seed), 150_000)
        world = World([COST] * 3)
        assert world.cost_of([0, 1, 2], flags) > 1.1 * world.best(flags)
        assert settled(world, flags, 2 * SOON) < 1.06
        assert world.route()[2] == 0


def test_follows_a_swap_of_selectivities() -> None:
    levels = [0.4, 0.6, 0.95]
    for seed in range(2):
        rng, world = np.random.default_rng(seed), World([COST] * 3)
        for best in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]):
            flags = independent(rng, SOON + 30_000, [levels[best.index(i)] for i in range(3)])
            assert unbeaten(world, flags) == [best]
            assert settled(world, flags) == pytest.approx(1)
            assert world.route() == best


def test_follows_a_swap_of_which_only_the_first_step_matters() -> None:
    for seed in range(3):
        rng, world = np.random.default_rng(seed), World([COST] * 4)
        for selectivities in ([0.9, 0.7, 0.5, 0.1], [0.1, 0.5, 0.7, 0.9], [0.9, 0.7, 0.5, 0.1], [0.5, 0.1, 0.9, 0.7]):
            flags = independent(rng, SOON + 30_000, selectivities)
            assert settled(world, flags) < 1.02
            assert world.route() in unbeaten(world, flags)


def test_follows_an_operator_that_turns_expensive() -> None:
    for seed in range(3):
        rng, world = np.random.default_rng(seed), World([COST] * 4)
        world.feed(independent(rng, 60_000, [0.3, 0.5, 0.5, 0.5]))
        assert world.route()[0] == 0
        world.costs[0] *= 20
        assert settled(world, independent(rng, SOON + 30_000, [0.3, 0.5, 0.5, 0.5])) < 1.1
        assert world.route()[3] == 0


def test_follows_a_slow_drift() -> None:
    """Selectivities change by one percent per thousand rows, until the order is reversed."""
    rng, world = np.random.default_rng(5), World([COST] * 3)
    first, last = np.array([0.2, 0.5, 0.9]), np.array([0.9, 0.5, 0.2])
    world.feed(independent(rng, 40_000, list(first)))
    behind = []
    for at in np.linspace(0, 1, 70):
        flags = independent(rng, 1000, list(first + at * (last - first)))
        before = world.counted()
        world.feed(flags)
        behind.append((world.counted() - before) / world.best(flags))
    assert np.mean(behind) < 1.1
    assert world.route()[0] == 2


def noisy(seed: int, selectivities: list[float]) -> tuple[float, int, int]:
    """Calls take up to a fifth more or less than they should. Returns what that costs once all is calm, how often the
    route changed, and how often there was a new sample."""
    rng, world = np.random.default_rng(seed), World([COST] * len(selectivities))
    world.noise = lambda: rng.uniform(0.8, 1.2)
    world.feed(independent(rng, SOON, selectivities))
    fork, changes = world.eddy._router._forks.found[0], world.eddy.decisions.counts  # type: ignore[attr-defined]
    news, before = fork.news, changes["reroute"]
    lost = settled(world, independent(rng, 200_000, selectivities), 0)
    return lost, changes["reroute"] - before, fork.news - news


def test_does_not_run_after_noise() -> None:
    told = [noisy(seed, [0.3, 0.5, 0.6, 0.8]) for seed in range(4)]
    assert [changes for _, changes, _ in told] == [0] * 4
    assert [lost for lost, _, _ in told] == pytest.approx([1] * 4)


def test_noise_changes_the_route_seldom_where_all_orders_are_as_good() -> None:
    """By the current costs, which are noise, there is always a cheapest order; auto must find the same one twice."""
    told = [noisy(seed, [0.5] * 4) for seed in range(4)]
    assert max(lost for lost, _, _ in told) < 1.005
    assert sum(changes for _, changes, _ in told) < sum(news for _, _, news in told) / 10


def test_one_call_that_was_interrupted_changes_little() -> None:
    rng, world = np.random.default_rng(1), World([COST] * 4, packet=1000)
    selectivities = [0.3, 0.5, 0.6, 0.8]
    world.feed(independent(rng, SOON, selectivities))
    calls = world.calls
    world.noise = lambda: 50.0 if world.calls == calls + 5 else 1.0
    assert settled(world, independent(rng, 2 * SOON, selectivities), 0) < 1.1


@pytest.mark.parametrize("explore", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("cost", [US, COST])
def test_samples_cost_no_more_than_they_may(explore: float, cost: float) -> None:
    """The time in which no tuple took a step was spent on samples."""
    rng, world = np.random.default_rng(1), World([cost] * 4, explore=explore)
    for selectivities in ([0.9, 0.7, 0.5, 0.1], [0.1, 0.5, 0.7, 0.9]) * 5:
        world.feed(independent(rng, 20_000, selectivities))
    assert 0 < world.clock() - world.counted() < 0.002 + explore * world.counted()


def test_with_nothing_to_spend_hardly_anything_is_sampled() -> None:
    flags = independent(np.random.default_rng(1), SOON, [0.9, 0.7, 0.5, 0.1])
    spent = []
    for explore in (0.0, 0.05):
        world = World([COST] * 4, explore=explore)
        world.feed(flags)
        spent.append(world.clock() - world.counted())
    assert 0 < spent[0] < spent[1]
    assert spent[0] < 0.01 * world.counted()


def test_every_change_of_route_is_one_decision() -> None:
    """The first decision starts from the written order."""
    rng, world = np.random.default_rng(2), World([COST] * 4)
    changes, log = world.changes(), world.eddy.decisions
    for selectivities in ([0.9, 0.7, 0.5, 0.1], [0.1, 0.5, 0.7, 0.9], [0.5, 0.1, 0.9, 0.7]):
        world.feed(independent(rng, SOON, selectivities))
    first, *later = changes
    assert first[1] == [3, 2, 1, 0]
    assert [decisions for _, _, decisions in later] == [1] * len(later) and len(later) > 2
    assert log.counts == {"reroute": len(changes)} == world.engine.decisions
    assert len(log.recent) == len(changes)
    assert log.recent[0].what.endswith("instead of costly_0(a.p0), costly_1(a.p1), costly_2(a.p2), costly_3(a.p3)")
    assert [d.at for d in log.recent] == sorted(d.at for d in log.recent)

    def named(order: list[int]) -> str:
        return ", ".join(f"costly_{i}(a.p{i})" for i in order)

    for decision, (before, after, _) in zip(list(log.recent)[1:], later, strict=True):
        assert decision.kind == "reroute" and 0 < decision.at <= world.rows
        if decision.what.startswith("a:"):
            assert decision.what == f"a: {named(after)} instead of {named(before)}"
        else:
            assert decision.what.startswith(("a after 1 selection: ", "a after 2 selections: "))
        told = decision.measured
        assert 0 < told["expected"] < told["instead_of"]
        assert f"{told['expected'] * 1e6:.3g} us a tuple" in decision.why
        assert f"{told['instead_of'] * 1e6:.3g}" in decision.why
        assert 0.5 * COST < told["expected"] < 4 * COST


def test_the_same_world_twice() -> None:
    told = []
    for _ in range(2):
        world = World([COST, 2 * COST, 3 * COST])
        world.feed(independent(np.random.default_rng(3), SOON, [0.9, 0.5, 0.1]))
        told.append(([(d.at, d.what, d.why) for d in world.eddy.decisions.recent], world.clock()))
    assert told[0] == told[1]


def test_what_was_learned_in_batches_that_were_undone_does_not_weigh_more() -> None:
    rng, world = np.random.default_rng(1), World([COST] * 4)
    for _ in range(4):
        world.feed(independent(rng, 100_000, [0.9, 0.7, 0.5, 0.1]), batch=100_000, undo=True)
        world.feed(independent(rng, 1000, [0.9, 0.7, 0.5, 0.1]))
    assert settled(world, independent(rng, SOON + 30_000, [0.1, 0.5, 0.7, 0.9])) < 1.1


@pytest.mark.parametrize(("matches", "first"), [(0, "probe"), (3, "selection")])
def test_selections_are_moved_around_probes(matches: int, first: str) -> None:
    """An expensive selection comes after a join that few tuples survive, and before a join that multiplies them."""
    world = World([COST], join=matches)
    flags = independent(np.random.default_rng(1), 60_000, [0.5])
    for start in range(0, 60_000, 10_000):
        world.feed(flags[start : start + 10_000])
    entry = world.eddy.routes.entries[0b01, 0]
    taken = sum(t.tuples for t in entry.steps)
    assert taken == 60_000 and len(entry.steps) == 2
    chosen = entry.chosen
    assert chosen is not None and (hasattr(chosen.step, "target") == (first == "probe"))
    assert chosen.tuples > 0.6 * taken


def test_a_fixed_order_is_the_one_of_the_script() -> None:
    flags = independent(np.random.default_rng(1), 5000, [0.9, 0.5, 0.1])
    for router in ("fixed", "auto"):
        world = World([COST] * 3, router=router, explore=0.0)
        world.feed(flags)
        assert (world.counted() == pytest.approx(world.cost_of([0, 1, 2], flags))) == (router == "fixed")
    assert Settings().router == "auto"
