"""IK beside all connected orders, and what is said about cycles and products."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.brute_force import least_order, least_orders
from eddyline.optimizer.cost_model import Model
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.workload import JoinEdge, SourceLoad, Workload
from tests.support.drawn import SEEDS, base, model
from tests.support.properties import examples

SIZES = st.integers(2, 7)


@examples(150)
@given(SEEDS, SIZES, st.sampled_from(["tree", "star"]), st.booleans())
def test_best_of_all_connected_orders_of_a_tree(seed: int, sources: int, graph: str, wild: bool) -> None:
    m = model(seed, sources, graph, wild)
    found = mjoin_ordering(m, base(sources), cartesian=False)
    assert isclose(found.cpu, least_orders(m, base(sources), products=False), rel_tol=1e-9)


@examples(60)
@given(SEEDS)
def test_children_may_be_intermediate(seed: int) -> None:
    m = model(seed, 7, "tree")
    children = (0b11, *(1 << i for i in range(2, 7)))
    if not m.link(1, 2)[2]:
        return
    found = mjoin_ordering(m, children, cartesian=False)
    assert isclose(found.cpu, least_orders(m, children, products=False), rel_tol=1e-9)


@examples(150)
@given(SEEDS, SIZES, st.booleans())
def test_priced_as_the_model_does(seed: int, sources: int, cartesian: bool) -> None:
    m = model(seed, sources)
    found = mjoin_ordering(m, base(sources), cartesian)
    for start, order in found.orders.items():
        assert sorted((start, *order)) == sorted(base(sources))
    assert isclose(found.cpu, sum(m.order_cpu(*item) for item in found.orders.items()), rel_tol=1e-9)


@examples(150)
@given(SEEDS, SIZES)
def test_products_are_never_worse(seed: int, sources: int) -> None:
    m = model(seed, sources)
    least = best_ordering(m, base(sources)).cpu
    with_products, without = (mjoin_ordering(m, base(sources), cartesian).cpu for cartesian in (True, False))
    assert least * (1 - 1e-9) <= with_products <= without * (1 + 1e-12)  # sums of the same in another order


def test_figure_5_3() -> None:
    """B and C are small, A is large and joins both: the product first. W = 5, nested loops."""
    sources = tuple(SourceLoad.stream(rate, 5.0) for rate in (100.0, 1.0, 1.0))
    w = Workload(sources, (JoinEdge(0, 1, 0.3), JoinEdge(0, 2, 0.3)))
    costs = DEFAULTS.scaled({"probe_hash": 0.0, "probe_list_row": 0.0})
    m = Model(w, costs)
    assert mjoin_ordering(m, base(3), cartesian=False).orders[2] == (1, 4)
    assert mjoin_ordering(m, base(3)).orders[2] == (4, 1)


@examples(40)
@given(SEEDS, st.integers(2, 6))
def test_corrections_are_priced(seed: int, sources: int) -> None:
    plain = model(seed, sources)
    joint = ((plain.whole, 0.25), (0b11, 2.0))[: sources - 1]
    m = Model(Workload(plain.workload.sources, plain.workload.edges, joint), DEFAULTS)
    found = mjoin_ordering(m, base(sources))
    assert isclose(found.cpu, sum(m.order_cpu(*item) for item in found.orders.items()), rel_tol=1e-9)


def test_without_any_predicate() -> None:
    m = Model(Workload((SourceLoad.stream(1, 2), SourceLoad.stream(3, 4), SourceLoad.table(9)), ()), DEFAULTS)
    found = mjoin_ordering(m, base(3), cartesian=False)
    assert found.cpu == pytest.approx(sum(least_order(m, base(3), start, True) for start in base(3)))
