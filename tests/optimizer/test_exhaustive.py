"""The dynamic program, compared with all trees."""

from __future__ import annotations

from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.exhaustive import exhaustive, partitions
from eddyline.optimizer.plans import Cost, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from lab.bench.brute_force import all_trees, least_orders
from tests.support.drawn import SEEDS, base, model
from tests.support.properties import examples


def front(costs: list[Cost]) -> list[Cost]:
    """The costs that no other tree beats; of costs that differ only by rounding, one."""
    found: list[Cost] = []
    for cost in sorted(costs, key=lambda c: (c.cpu, c.memory)):
        if not found or cost.memory < found[-1].memory * (1 - 1e-9):
            found.append(cost)
    return found


@examples(60)
@given(SEEDS, st.integers(2, 6))
def test_best_ordering_beside_all_orders(seed: int, sources: int) -> None:
    m = model(seed, sources)
    found = best_ordering(m, base(sources))
    assert isclose(found.cpu, least_orders(m, base(sources)), rel_tol=1e-9)
    assert isclose(found.cpu, sum(m.order_cpu(*item) for item in found.orders.items()), rel_tol=1e-9)


@examples(40)
@given(SEEDS, st.integers(2, 5), st.booleans())
def test_same_front_as_all_trees(seed: int, sources: int, wild: bool) -> None:
    m = model(seed, sources, wild=wild)
    wanted = front(all_trees(m))
    found = exhaustive(Pricing(m, best_ordering))
    for plan in found:
        priced = m.cost(plan.tree, plan.orderings)
        assert isclose(plan.cost.cpu, priced.cpu, rel_tol=1e-9)
        assert isclose(plan.cost.memory, priced.memory, rel_tol=1e-9)
    costs = front([plan.cost for plan in found])
    for a, b in zip(costs, wanted, strict=True):
        assert isclose(a.cpu, b.cpu, rel_tol=1e-6)
        assert isclose(a.memory, b.memory, rel_tol=1e-6)


@examples(40)
@given(SEEDS, st.integers(2, 5), st.floats(0.8, 3), st.floats(0.8, 3))
def test_early_filtering_loses_nothing(seed: int, sources: int, cpu: float, memory: float) -> None:
    m = model(seed, sources, wild=False)
    every = exhaustive(Pricing(m, best_ordering))
    limits = ResourceLimits(every[0].cost.cpu * cpu, every[-1].cost.memory * memory)
    wanted = [plan.tree for plan in every if limits.allow(plan.cost)]
    assert [plan.tree for plan in exhaustive(Pricing(m, best_ordering), limits)] == wanted


def test_how_many_partitions_and_trees() -> None:
    assert [sum(1 for _ in partitions((1 << n) - 1)) for n in range(1, 8)] == [1, 2, 5, 15, 52, 203, 877]
    assert [len(all_trees(model(1, n))) for n in range(2, 6)] == [1, 4, 26, 236]
