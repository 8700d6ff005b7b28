"""IK, compared with all orders that the engine can run; and graphs with cycles."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import HASH, CostModel
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.workload import JoinEdge, SourceLoad, Workload
from eddyline.plan.tree import Tree
from lab.bench.brute_force import least_order, least_orders
from tests.support.drawn import SEEDS, base, model
from tests.support.properties import examples

SIZES = st.integers(2, 7)


@examples(150)
@given(SEEDS, SIZES, st.sampled_from(["tree", "star"]), st.booleans())
def test_best_of_all_orders_of_a_tree(seed: int, sources: int, graph: str, wild: bool) -> None:
    m = model(seed, sources, graph, wild)
    found = mjoin_ordering(m, base(sources))
    assert isclose(found.cpu, least_orders(m, base(sources)), rel_tol=1e-9)


@examples(60)
@given(SEEDS)
def test_children_may_be_intermediate(seed: int) -> None:
    m = model(seed, 7, "tree")
    children = (0b11, *(1 << i for i in range(2, 7)))
    if not m.link(1, 2)[2]:
        return
    found = mjoin_ordering(m, children)
    assert isclose(found.cpu, least_orders(m, children), rel_tol=1e-9)


@examples(150)
@given(SEEDS, SIZES)
def test_priced_as_the_model_does(seed: int, sources: int) -> None:
    m = model(seed, sources)
    found = mjoin_ordering(m, base(sources))
    for start, order in found.orders.items():
        assert sorted((start, *order)) == sorted(base(sources))
    assert isclose(found.cpu, sum(m.order_cpu(*item) for item in found.orders.items()), rel_tol=1e-9)


@examples(150)
@given(SEEDS, SIZES)
def test_no_order_is_better_than_the_best(seed: int, sources: int) -> None:
    m = model(seed, sources)
    least = best_ordering(m, base(sources)).cpu
    assert least * (1 - 1e-9) <= mjoin_ordering(m, base(sources)).cpu


@examples(150)
@given(SEEDS, SIZES)
def test_only_orders_that_the_engine_runs(seed: int, sources: int) -> None:
    """By key if possible, else by a predicate, else by a product."""
    m = model(seed, sources)
    for ordered in (mjoin_ordering(m, base(sources)), best_ordering(m, base(sources))):
        for start, order in ordered.orders.items():
            reached = start
            for at, child in enumerate(order):
                links = [m.link(reached, other) for other in order[at:]]
                _, access, joined = links[0]
                assert access == HASH or all(link[1] != HASH for link in links)
                assert joined or not any(link[2] for link in links)
                reached |= child


def test_figure_5_3() -> None:
    """B and C are small; A is large and joins both. The paper takes the product of B and C first, which the engine does
    not run while A can be probed by key; a state for the product is another plan. W = 5, nested loops."""
    sources = tuple(SourceLoad.stream(rate, 5.0) for rate in (100.0, 1.0, 1.0))
    w = Workload(sources, (JoinEdge(0, 1, 0.3), JoinEdge(0, 2, 0.3)))
    costs = DEFAULTS.scaled({"probe_hash": 0.0, "probe_list_row": 0.0})
    m = CostModel(w, costs)
    assert mjoin_ordering(m, base(3)).orders[2] == (1, 4)
    assert Tree((0, Tree((1, 2)))) in [plan.tree for plan in exhaustive(Pricing(m, best_ordering))]


@examples(40)
@given(SEEDS, st.integers(2, 6))
def test_corrections_are_priced(seed: int, sources: int) -> None:
    plain = model(seed, sources)
    joint = ((plain.whole, 0.25), (0b11, 2.0))[: sources - 1]
    m = CostModel(Workload(plain.workload.sources, plain.workload.edges, joint), DEFAULTS)
    found = mjoin_ordering(m, base(sources))
    assert isclose(found.cpu, sum(m.order_cpu(*item) for item in found.orders.items()), rel_tol=1e-9)


def test_without_any_predicate() -> None:
    m = CostModel(Workload((SourceLoad.stream(1, 2), SourceLoad.stream(3, 4), SourceLoad.table(9)), ()), DEFAULTS)
    found = mjoin_ordering(m, base(3))
    assert found.cpu == pytest.approx(sum(least_order(m, base(3), start) for start in base(3)))
