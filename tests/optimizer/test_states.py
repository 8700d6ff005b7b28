"""min-state, state-removal, state-selection and refinement."""

from __future__ import annotations

from itertools import pairwise
from math import inf, isclose

from hypothesis import given
from hypothesis import strategies as st

from eddyline.optimizer.min_state import contracted, min_state
from eddyline.optimizer.plans import ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.refine import neighbours, refine
from eddyline.optimizer.shapes import Shape, dissolve, group, mjoin_shape, shape_of, states, tree_of
from eddyline.optimizer.state_removal import state_removal
from eddyline.optimizer.state_selection import merged, state_selection
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.tree import Tree
from lab.bench.brute_force import least_binary_memory
from tests.support.drawn import SEEDS, model
from tests.support.properties import examples


def check(shape: Shape, sources: int) -> None:
    """Check that a shape is a tree of all sources, and that it can be converted both ways."""
    tree = tree_of(shape)
    assert sorted(tree.sources()) == list(range(sources))
    assert shape_of(tree) == shape


@examples(80)
@given(SEEDS, st.integers(3, 7), st.booleans())
def test_min_state_is_best_for_stars(seed: int, sources: int, wild: bool) -> None:
    m = model(seed, sources, "star", wild)
    pricing = Pricing(m)
    shape = min_state(pricing, cartesian=False)
    assert isclose(pricing.cost(shape).memory, least_binary_memory(m), rel_tol=1e-9)


@examples(40)
@given(SEEDS, st.integers(3, 7))
def test_large_stars_are_no_worse_than_the_greedy_choice(seed: int, sources: int) -> None:
    m = model(seed, sources, "star")
    pricing = Pricing(m, tuning=OptimizerTuning(star_sources=0))
    found = pricing.cost(min_state(pricing, cartesian=False)).memory
    assert least_binary_memory(m) * (1 - 1e-9) <= found
    assert found <= pricing.cost(contracted(m, products=False)).memory * (1 + 1e-9)


@examples(60)
@given(SEEDS, st.integers(2, 8))
def test_min_state_gives_binary_trees_and_products_are_never_worse(seed: int, sources: int) -> None:
    m = model(seed, sources)
    pricing = Pricing(m)
    plain, best = (min_state(pricing, cartesian) for cartesian in (False, True))
    for shape in (plain, best):
        check(shape, sources)
        assert all(len(children) == 2 for children in shape.values())
        assert pricing.cost(dict(reversed(shape.items()))) == pricing.cost(shape)
    assert all(m.link(*children)[2] for children in plain.values())
    assert pricing.cost(best).cpu <= pricing.cost(plain).cpu
    assert pricing.cost(best).memory <= pricing.cost(plain).memory


@examples(60)
@given(SEEDS, st.integers(2, 8))
def test_state_removal_ends_at_the_multi_way_join(seed: int, sources: int) -> None:
    pricing = Pricing(model(seed, sources))
    start = min_state(pricing)
    steps = [(start, pricing.cost(start)), *state_removal(pricing, start)]
    assert steps[-1][0] == mjoin_shape(sources)
    for (before, _), (after, cost) in pairwise(steps):
        check(after, sources)
        assert len(after) == len(before) - 1
        assert {child for _, child in states(after)} < {child for _, child in states(before)}
        assert cost == pricing.cost(after)


@examples(40)
@given(SEEDS, st.integers(3, 7))
def test_state_removal_takes_the_state_that_costs_least_to_miss(seed: int, sources: int) -> None:
    pricing = Pricing(model(seed, sources, wild=False))
    start = min_state(pricing)
    old = pricing.cost(start)
    ratios: dict[float, tuple[bool, float]] = {}
    for operator, child in states(start):
        new = pricing.cost(dissolve(start, operator, child))
        gain = new.cpu - old.cpu
        freed = old.memory - new.memory  # negative if the operator above then needs more indexes
        ratios[gain] = (False, gain) if gain <= 0 else (True, gain / freed if freed > 0 else inf)
    chosen = pricing.cost(next(state_removal(pricing, start))[0])
    assert ratios[chosen.cpu - old.cpu] == min(ratios.values())


@examples(60)
@given(SEEDS, st.integers(2, 8))
def test_each_selected_state_saves_cpu(seed: int, sources: int) -> None:
    pricing = Pricing(model(seed, sources))
    start = mjoin_shape(sources)
    steps = [(start, pricing.cost(start)), *state_selection(pricing, start)]
    for (_, before), (after, cost) in pairwise(steps):
        check(after, sources)
        assert cost == pricing.cost(after)
        assert cost.cpu < before.cpu * (1 + 1e-12)


@examples(60)
@given(SEEDS)
def test_operator_merging_costs_nothing(seed: int) -> None:
    pricing = Pricing(model(seed, 5))
    shape = shape_of(Tree((Tree((Tree((0, 1)), 2)), 3, 4)))
    after = merged(pricing, shape, 0b111)
    check(after, 5)
    assert pricing.cost(after).cpu <= pricing.cost(shape).cpu * (1 + 1e-12)
    assert pricing.cost(after).memory <= pricing.cost(shape).memory * (1 + 1e-12)


@examples(30)
@given(SEEDS, st.integers(3, 6))
def test_neighbours_are_trees(seed: int, sources: int) -> None:
    pricing = Pricing(model(seed, sources))
    start = min_state(pricing)
    found = list(neighbours(pricing, start))
    assert len({tree_of(shape) for shape, _ in found}) == len(found)
    for shape, cost in found:
        check(shape, sources)
        assert cost == pricing.cost(shape)
        assert shape != start


def test_refining_tries_nothing_where_nothing_can_be_had() -> None:
    m = model(3, 5, wild=False)
    pricing = Pricing(m)
    least = sum(source.rows * source.row_bytes for source in m.workload.sources)
    assert list(refine(pricing, [mjoin_shape(5)], ResourceLimits(None, least * 0.99))) == []


def test_group_and_dissolve_undo_each_other() -> None:
    shape = mjoin_shape(4)
    assert group(shape, 15, 4, 1) == {15: (2, 5, 8), 5: (1, 4)}
    assert dissolve(group(shape, 15, 4, 1), 15, 5) == shape
