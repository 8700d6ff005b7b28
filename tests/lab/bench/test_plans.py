"""`bench plans`, small: what is observed is what was drawn, and its bars are about what they say."""

from __future__ import annotations

import random

import pytest

from eddyline.optimizer.plans import Cost
from eddyline.optimizer.shapes import shape_of
from eddyline.plan.tree import mjoin
from lab import bench
from lab.bench import plans
from lab.bench.plans import PlanRun
from lab.fuzz.trees import random_tree


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "QUERIES": 2,
        "ROUNDS": 1,
        "SECONDS": 3.0,
        "WINDOW": 1.0,
        "BATCH": 0.1,
        "SLOW": 500,
        "FAST": 2000,
    }.items():
        monkeypatch.setattr(plans, name, value)


def test_it_is_a_benchmark() -> None:
    assert "plans" in bench.BENCHMARKS


def test_all_of_it() -> None:
    found = {(r.case, r.metric): r for r in bench.run("plans")}
    bars = [r.metric for r in found.values() if r.bar is not None]
    assert bars == ["rank correlation", "rank correlation", "off in the median", "within 15 % of the cheapest"]
    assert all((r.ok is None) == (r.bar is None) for r in found.values())
    assert found["CPU", "measured / predicted, median"].value > 0


def test_what_is_drawn_depends_on_the_seed_alone() -> None:
    one, again, other = (plans.draw(random.Random(seed)) for seed in (1, 1, 2))
    assert (one.query, one.edges, one.data) == (again.query, again.edges, again.data)
    assert one.data != other.data
    assert all(left < right for left, right in one.edges) and len(one.edges) == len(one.query.sources) - 1


def test_a_slot_observes_what_was_drawn() -> None:
    case = plans.draw(random.Random(3))
    workload = plans.observed(case, plans.BATCH).workload
    for number, source in enumerate(workload.sources):
        rows = case.data[f"s{number}"].num_rows
        assert source.rate == pytest.approx(rows / plans.SECONDS, rel=0.15)
    assert {(e.left, e.right) for e in workload.edges} == set(case.edges)
    for number, (left, right) in enumerate(case.edges):
        edge = next(e for e in workload.edges if (e.left, e.right) == (left, right))
        values = case.data[f"s{left}"].column(f"e{number}").to_numpy().max() + 1
        assert edge.selectivity == pytest.approx(1 / values, rel=0.4)


@pytest.mark.parametrize("seed", range(20))
def test_plans_are_different_and_without_products(seed: int) -> None:
    rng = random.Random(seed)
    case = plans.draw(rng)
    sources = len(case.query.sources)
    trees = plans.plans_of(rng, case, mjoin(sources))
    assert len({str(shape_of(tree)) for tree in trees}) == plans.PLANS
    for below in (below for tree in trees for below in tree.below()):
        inside = [edge for edge in case.edges if all(below.span >> source & 1 for source in edge)]
        assert len(inside) == below.span.bit_count() - 1, "edges of a tree that join all of a span"


def test_plans_are_measured() -> None:
    case = plans.draw(random.Random(4))
    sources = len(case.query.sources)
    found = plans.measured(case, [mjoin(sources), random_tree(random.Random(0), sources, case.edges)])
    assert all(0 < cost.cpu < float("inf") and cost.memory > 0 for cost in found)


def test_the_truth_is_ranks_and_a_median() -> None:
    costs = [
        (Cost(1.0, 100.0), Cost(2.0, 110.0)),
        (Cost(2.0, 200.0), Cost(4.0, 200.0)),
        (Cost(3.0, 400.0), Cost(3.0, 500.0)),
    ]
    cpu, state, off, factor = plans._truth([PlanRun(0, "", predicted, measured) for predicted, measured in costs])
    assert cpu.value == pytest.approx(0.5) and cpu.ok is False
    assert state.value == pytest.approx(1.0) and state.ok is True
    assert off.value == pytest.approx(1 - 100 / 110) and off.ok is True and factor.value == pytest.approx(2.0)
