"""The two strategies, and the set of dominating plans."""

from __future__ import annotations

from math import isclose
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.dominating import choose, dominating
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.plans import Cost, PricedPlan, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.tree import mjoin
from eddyline.testing.clock import ManualClock
from lab.experiments import draw
from tests.support.drawn import SEEDS, model
from tests.support.properties import examples


def check(m: CostModel, plan: PricedPlan) -> None:
    priced = m.cost(plan.tree, plan.orderings)
    assert isclose(plan.cost.cpu, priced.cpu, rel_tol=1e-9)
    assert isclose(plan.cost.memory, priced.memory, rel_tol=1e-9)


@examples(30)
@given(SEEDS, st.integers(2, 6))
def test_what_they_find_is_priced_right_and_exhaustive_search_finds_no_less(seed: int, sources: int) -> None:
    drawn = draw.setting(Random(seed), sources)
    m = CostModel(drawn.workload, DEFAULTS)
    found = [strategy(Pricing(m), drawn.limits) for strategy in (mjoin_init, bjtree_init)]
    for plan in found:
        check(m, plan)
        assert plan.tree in [considered.tree for considered in plan.considered]
        nearest = min(drawn.limits.excess(considered.cost) for considered in plan.considered)
        assert isclose(drawn.limits.excess(plan.cost), nearest, rel_tol=1e-9)
    if any(drawn.limits.allow(plan.cost) for plan in found):
        assert exhaustive(Pricing(m, best_ordering), drawn.limits)


def test_without_limits_the_start_is_taken() -> None:
    m = model(5, 6, wild=False)
    assert mjoin_init(Pricing(m), ResourceLimits()).tree == mjoin(6)
    assert [step.step for step in mjoin_init(Pricing(m), ResourceLimits()).considered] == ["mjoin-ordering"]
    assert all(len(op.children) == 2 for op in bjtree_init(Pricing(m), ResourceLimits()).tree.below())


@pytest.mark.long
@examples(25)
@given(SEEDS)
@example(4_078_501_716)  # a tree that is reached with its operators in different orders
def test_dominating_plans_are_qualified_and_none_dominates_another(seed: int) -> None:
    drawn = draw.setting(Random(seed), 7)
    m, clock = CostModel(drawn.workload, DEFAULTS), ManualClock()

    def ticking() -> float:
        clock.advance(1.0)
        return clock()

    short, long = (dominating(Pricing(m, best_ordering), drawn.limits, ticking, seconds) for seconds in (0.0, 300.0))
    for plans in (short, long):
        for plan in plans:
            check(m, plan)
            assert drawn.limits.allow(plan.cost)
            assert not any(other.cost.dominates(plan.cost) for other in plans)
    for plan in short:
        assert any(other.cost == plan.cost or other.cost.dominates(plan.cost) for other in long)


@examples(15)
@given(SEEDS)
def test_with_time_enough_it_comes_near_to_all_of_the_front(seed: int) -> None:
    drawn = draw.setting(Random(seed), 5)
    m = CostModel(drawn.workload, DEFAULTS)
    wanted = exhaustive(Pricing(m, best_ordering), drawn.limits)
    assert dominating(Pricing(m, best_ordering), drawn.limits, ManualClock(), 1.0) == wanted
    never = OptimizerTuning(exhaustive_sources=0)
    found = dominating(Pricing(m, best_ordering, never), drawn.limits, ManualClock(), 1.0)
    for plan in found:
        assert any(best.cost.cpu <= plan.cost.cpu * (1 + 1e-9) for best in wanted)


def test_which_to_take() -> None:
    lean, middle, quick = (
        PricedPlan(mjoin(2), {}, Cost(cpu, memory)) for cpu, memory in ((0.9, 100.0), (0.6, 500.0), (0.5, 900.0))
    )
    plans = [quick, middle, lean]
    limits = ResourceLimits(1.0, 1000.0)
    assert choose(plans, limits, "cpu") is quick
    assert choose(plans, limits, "memory") is lean
    assert choose(plans, limits) is middle
    assert choose([], limits) is None


def test_limits() -> None:
    assert ResourceLimits(1.0, None).allow(Cost(1.0, 1e30))
    assert not ResourceLimits(0.0, None).allow(Cost(1e-9, 0.0))
    assert ResourceLimits(2.0, 8.0).excess(Cost(1.0, 6.0)) == 0.75
