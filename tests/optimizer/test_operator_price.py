"""Operators with selections and marks: sums written out by hand, and the two ways to compute a price compared."""

from __future__ import annotations

from dataclasses import astuple, replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS, StepCosts
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.operator_price import ChildTuples, OperatorPrice
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import shape_of
from eddyline.optimizer.workload import GroupingLoad, JoinEdge, Selection, SourceLoad, Workload
from eddyline.plan.tree import Tree
from lab.fuzz.trees import random_tree
from tests.support.drawn import SEEDS, model
from tests.support.properties import examples

PROBE, MATCH, GROUP, PACKET = 1e4, 1e7, 1e3, 1e2
UNIT = StepCosts(1, 10, 20, 100, 1000, PROBE, 1e5, 1e6, MATCH, 4, group_tuple=GROUP, group_packet=PACKET)
SOURCES = (SourceLoad.stream(10, 2, 30), SourceLoad.stream(5, 2, 40), SourceLoad.stream(2, 10, 50))
CHAIN = Workload(SOURCES, (JoinEdge(0, 1, 0.1), JoinEdge(1, 2, 0.5)))
A, B, C = ChildTuples(1), ChildTuples(2), ChildTuples(4)


def priced(*children: ChildTuples, selection: Selection | None = None, late: bool = False) -> OperatorPrice:
    workload = CHAIN if selection is None else replace(CHAIN, selections=(selection,))
    return OperatorPrice(CostModel(workload, UNIT), children, late)


def test_a_selection_is_evaluated_where_that_adds_least() -> None:
    """A selection on b, which half of the rows pass: a cheap one is evaluated before any probe, an expensive one at the
    end."""
    cheap, dear = Selection(0b010, 0.5, 3.0), Selection(0b010, 0.5, 1e9)
    before = 0.5 * (10 * 3.0 + 5 * PROBE + 10 * MATCH + 10 * PROBE + 100 * MATCH)
    assert priced(A, B, C, selection=cheap).order_cpu(2, (1, 4)) == pytest.approx(before)
    few = OperatorPrice(
        CostModel(replace(CHAIN, edges=(JoinEdge(0, 1, 0.01), JoinEdge(1, 2, 0.5)), selections=(dear,)), UNIT), [A, B]
    )
    assert few.order_cpu(2, (1,)) == pytest.approx(0.5 * (10 * PROBE + 2 * MATCH + 2 * 1e9)), "2 pairs, 10 rows"
    assert few.selecting({1: (2,), 2: (1,)}) == pytest.approx(0.5 * 2e9 + 0.5 * 2e9)


def test_what_was_passed_below_is_not_evaluated_again() -> None:
    below = priced(A, B, selection=Selection(0b011, 0.5, 3.0))
    assert below.given == ChildTuples(0b011, True, 1) and below.selecting({1: (2,), 2: (1,)}) > 0.0
    above = priced(below.given, C, selection=Selection(0b011, 0.5, 3.0))
    assert above.size(below.given) == pytest.approx(10) and above.selecting({3: (4,), 4: (3,)}) == 0.0
    held = priced(A, B, selection=Selection(0b011, 0.5, 3.0), late=True)
    assert held.given == ChildTuples(0b011, True, 0) and held.selecting({1: (2,), 2: (1,)}) == 0.0
    above = priced(held.given, C, selection=Selection(0b011, 0.5, 3.0))
    assert above.size(held.given) == pytest.approx(20) and above.selecting({3: (4,), 4: (3,)}) > 0.0


def groups(count: float, slices: float = 1.0, packet: float = 1e9) -> Workload:
    return replace(CHAIN, grouping=GroupingLoad(lambda span, passed: count, slices, packet, columns=3))


def test_grouping_by_hand() -> None:
    """20 pairs per second in two packets, one for each source that starts; ten pairs have nearly all of the 2
    groups."""
    below = OperatorPrice(CostModel(groups(2.0), UNIT), [A, B], grouped=True)
    assert below.given.weighted and below.given.share == pytest.approx(2 / 10, rel=0.01)
    assert below.grouping_cpu() == pytest.approx(20 * GROUP + 2 * PACKET)
    above = OperatorPrice(CostModel(groups(2.0), UNIT), [below.given, C])
    assert above.rate(below.given) == pytest.approx(4, rel=0.01)
    assert above.insert(below.given) == 1 + 10 + (2 + 3) * 100
    assert above.tuple_bytes(below.given) == 8 * (2 + 1 + 1 + 3) + 4
    assert above.grouping_cpu() == pytest.approx(0.2 * 220 * GROUP, rel=0.01), "there are fewer results"
    many = OperatorPrice(CostModel(groups(1e9), UNIT), [A, B], grouped=True)
    assert many.given.share == pytest.approx(1.0), "no tuples are grouped"


def test_small_packets_have_more_groups() -> None:
    shares = [
        OperatorPrice(CostModel(load, UNIT), [A, B], grouped=True).given.share
        for load in (groups(2.0), groups(2.0, slices=5.0), groups(2.0, packet=1.0))
    ]
    assert shares == sorted(shares) and shares[-1] > 0.75


def test_a_source_may_be_grouped_alone() -> None:
    """Its rows stay, without an index; the other sources probe the groups."""
    pricing = Pricing(CostModel(groups(2.0), UNIT))
    found = pricing.tree(Tree((Tree((0,), grouped=True), 1, 2)))
    alone = found.nodes[~1]
    assert alone.cost.cpu == pytest.approx(10 * (1 + 1000) + 10 * GROUP + PACKET) and alone.cost.memory == 20 * 30
    assert alone.price.given.share == pytest.approx(0.2, rel=0.01)
    assert found.orderings.keys() == {(7, 1), (7, 2), (7, 4)}


@examples(100)
@given(SEEDS, st.integers(3, 6), st.booleans())
def test_a_tree_without_marks_has_the_same_price_both_ways(seed: int, sources: int, groups: bool) -> None:
    drawn, rng = model(seed, sources).workload, Random(seed)
    selections = tuple(
        Selection(rng.randrange(1, 1 << sources), rng.uniform(0.01, 1), rng.uniform(0, 1e-5))
        for _ in range(rng.randrange(3))
    )
    load = GroupingLoad(lambda span, passed: 10.0, 5.0, 1e4) if groups else None
    m = CostModel(replace(drawn, selections=selections, grouping=load), DEFAULTS)
    tree = random_tree(rng, sources, tuple(combinations(range(sources), 2)), late=0.0)
    for order in (mjoin_ordering, best_ordering):
        shape, pricing = shape_of(tree), Pricing(m, order)
        assert astuple(pricing.tree(tree).cost) == pytest.approx(astuple(pricing.cost(shape)), rel=1e-9)
        assert pricing.tree(tree).orderings == pricing.planned(shape).orderings


@examples(100)
@given(SEEDS, st.integers(3, 6))
def test_marks_that_change_nothing_cost_nothing(seed: int, sources: int) -> None:
    """Holding back costs nothing if there are no selections; grouping costs something even if nothing can be
    grouped."""
    drawn, rng = model(seed, sources).workload, Random(seed)
    load = GroupingLoad(lambda span, passed: 1e30, 5.0, 1e4)
    pricing = Pricing(CostModel(replace(drawn, grouping=load), DEFAULTS))
    tree = random_tree(rng, sources, tuple(combinations(range(sources), 2)), late=0.0)
    below = next((t for t in tree.below()), None)
    if below is None:
        return

    def marked(node: Tree, **marks: bool) -> Tree:
        inner = tuple(marked(c, **marks) if isinstance(c, Tree) else c for c in node.children)
        return replace(node, children=inner, **(marks if node is below else {}))

    plain, late, grouped = (pricing.tree(t).cost for t in (tree, marked(tree, late=True), marked(tree, grouped=True)))
    assert late == plain and grouped.cpu >= plain.cpu and grouped.memory >= plain.memory
