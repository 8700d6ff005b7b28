"""The formulas, compared with a simulation of arrivals and with sums written out by hand."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.optimizer.cost_model import CostModel, bits
from eddyline.optimizer.costs import DEFAULTS, StepCosts
from eddyline.optimizer.plans import Cost
from eddyline.optimizer.workload import Access, JoinEdge, Selection, SourceLoad, Workload
from eddyline.plan.tree import Tree, mjoin
from tests.support.drawn import SEEDS, model
from tests.support.properties import examples

UNIT = StepCosts(1, 10, 20, 100, 1000, 1e4, 1e5, 1e6, 1e7, 4)
CHAIN = Workload(
    (SourceLoad.stream(10, 2, 30), SourceLoad.stream(5, 2, 40), SourceLoad.stream(2, 10, 50)),
    (JoinEdge(0, 1, 0.1), JoinEdge(1, 2, 0.5)),
)


def test_flows_of_a_chain() -> None:
    m = CostModel(CHAIN, UNIT)
    assert [m.live(1 << i) for i in range(3)] == [20, 10, 20]
    assert m.live(0b011) == pytest.approx(20)
    assert m.rate(0b011) == pytest.approx(10 * 10 * 0.1 + 5 * 20 * 0.1)
    assert m.live(0b111) == pytest.approx(200)
    rate = (10 * 10 * 20 + 5 * 20 * 20 + 2 * 20 * 10) * 0.05
    assert m.rate(0b111) == pytest.approx(rate)
    assert m.flow(0b011, 0b111) == pytest.approx((10 * 10 * 20 + 5 * 20 * 20) * 0.05)
    assert m.held(0b011) == pytest.approx(20 * 2)
    assert m.held(0b110) == pytest.approx(m.rate(0b110) * 10)


def test_costs_of_a_chain_by_hand() -> None:
    m = CostModel(CHAIN, UNIT)
    tree = Tree((Tree((0, 1)), 2))
    orderings = {(3, 1): (2,), (3, 2): (1,), (7, 3): (4,), (7, 4): (3,)}
    base = 10 * 1011 + 5 * 1011 + 2 * 1011
    below = 10 * 1e4 + 5 * 1e4 + 20 * 1e7
    state = 20 * (1011 + 2 * 100)
    top = 20 * 1e4 + 2 * 1e4 + m.rate(7) * 1e7
    assert m.cpu(tree, orderings) == pytest.approx(base + below + state + top)
    rows = 20 * (30 + 4) + 10 * (40 + 4) + 20 * (50 + 4)
    assert m.memory(tree) == pytest.approx(rows + 40 * (8 * 2 + 8 + (8 + 4)))
    assert m.memory(mjoin(3)) == pytest.approx(20 * 34 + 10 * 48 + 20 * 54)
    by_tree = m.cost(tree, orderings)
    assert by_tree == Cost(m.cpu(tree, orderings), m.memory(tree))


def test_an_index_for_each_key_that_siblings_use() -> None:
    sources = (SourceLoad.stream(1, 1),) * 4
    edges = (
        JoinEdge(0, 1, 0.1, indexes=(0, 0)),
        JoinEdge(0, 2, 0.1, indexes=(0, 0)),
        JoinEdge(0, 3, 0.1, Access.RANGE, (1, 0)),
        JoinEdge(1, 2, 0.1, Access.LIST),
    )
    m = CostModel(Workload(sources, edges), UNIT)
    assert m.indexes(0b0001, 0b1111) == (1, 1)
    assert m.indexes(0b0001, 0b0111) == (1, 0)
    assert m.indexes(0b0011, 0b1011) == (0, 1)
    assert m.indexes(0b0010, 0b0110) == (0, 0)
    assert m.link(0b0001, 0b1110) == (pytest.approx(0.001), Access.HASH, True)
    assert m.link(0b0010, 0b1000) == (1.0, Access.LIST, False)


def test_corrections_hold_for_every_span_with_the_sources() -> None:
    m = CostModel(Workload(CHAIN.sources, CHAIN.edges, ((0b101, 0.5), (0b011, 3.0))), UNIT)
    assert m.live(0b101) == pytest.approx(400 * 0.5)
    assert m.live(0b111) == pytest.approx(200 * 1.5)
    assert m.order_cpu(1, (2, 4)) == pytest.approx(0.5 * (20 * 1e4 + 60 * 1e7 + 60 * 1e4 + 300 * 1e7))


def test_a_selection_makes_all_larger_spans_smaller() -> None:
    """The selection is on b of the chain a - b - c; half of the rows pass."""
    m = CostModel(Workload(CHAIN.sources, CHAIN.edges, selections=(Selection(0b010, 0.5, 3.0),)), UNIT)
    plain = CostModel(CHAIN, UNIT)
    assert m.live(0b010) == 10 and m.live(0b101) == plain.live(0b101), "rows are held before the selection is evaluated"
    for span in (0b011, 0b110, 0b111):
        assert m.live(span) == pytest.approx(0.5 * plain.live(span))
    assert m.memory(Tree((Tree((0, 1)), 2))) == pytest.approx(plain.memory(mjoin(3)) - 10 * 4 + 20 * (8 * 3 + 12))
    assert not m.independent


def test_a_class_of_equal_columns_counts_once_between_spans() -> None:
    """0, 1 and 2 are joined by one key; a second condition between 0 and 1 alone counts in addition."""
    edges = (
        JoinEdge(0, 1, 0.05, classes=((7, 0.1),)),
        JoinEdge(0, 2, 0.1, classes=((7, 0.1),)),
        JoinEdge(1, 2, 0.1, classes=((7, 0.1),)),
    )
    m = CostModel(Workload((SourceLoad.stream(10, 1),) * 3, edges), UNIT)
    assert m.link(0b001, 0b110)[0] == pytest.approx(0.05)
    assert m.link(0b011, 0b100)[0] == pytest.approx(0.1)
    assert m.live(0b111) == pytest.approx(10**3 * 0.1**2 * 0.5)
    for left in range(1, 7):
        assert m.live(left) * m.live(7 ^ left) * m.link(left, 7 ^ left)[0] == pytest.approx(m.live(0b111))
    assert not m.independent and CostModel(CHAIN, UNIT).independent
    alone = Workload(
        CHAIN.sources, (JoinEdge(0, 1, 0.1, classes=((0, 0.1),)), JoinEdge(1, 2, 0.5, classes=((1, 0.5),)))
    )
    assert CostModel(alone, UNIT).independent and CostModel(alone, UNIT).live(0b111) == CostModel(CHAIN, UNIT).live(
        0b111
    )


@examples(100)
@given(SEEDS, st.integers(2, 6))
def test_what_flows_in_comes_out(seed: int, sources: int) -> None:
    """However a span is split, the tuples that its parts start add up to all tuples of the span."""
    m = model(seed, sources)
    for left in range(1, m.whole):
        right = m.whole ^ left
        assert m.flow(left, m.whole) + m.flow(right, m.whole) == pytest.approx(m.rate(m.whole))
        by_link = m.live(left) * m.live(right) * m.link(left, right)[0]
        assert by_link == pytest.approx(m.live(m.whole))
        assert m.held(left) >= m.live(left) * (1 - 1e-9)


@examples(8)
@given(SEEDS)
def test_flows_beside_arrivals(seed: int) -> None:
    """Rows arrive evenly and join by keys drawn at random; a tuple is counted when its last component arrives."""
    rng = Random(seed)
    keys, horizon = 3, 60.0
    sources = tuple(SourceLoad.stream(rng.choice((2.0, 4.0)), rng.choice((2.0, 4.0))) for _ in range(3))
    m = CostModel(Workload(sources, (JoinEdge(0, 1, 1 / keys), JoinEdge(1, 2, 1 / keys))), DEFAULTS)
    arrivals = sorted(
        (k / s.rate + rng.random() / s.rate, i, rng.randrange(keys), rng.randrange(keys))
        for i, s in enumerate(sources)
        for k in range(int(horizon * s.rate))
    )
    windows = [s.rows / s.rate for s in sources]
    made = 0
    for time, source, *_ in (arrival for arrival in arrivals if arrival[0] > 4.0):
        alive = [[a for a in arrivals if a[1] == i and time - windows[i] <= a[0] < time] for i in range(3)]
        alive[source] = [next(a for a in arrivals if a[0] == time and a[1] == source)]
        made += sum(a[2] == b[2] and b[3] == c[3] for a, b, c in product(*alive))
    assert made / (horizon - 4.0) == pytest.approx(m.rate(7), rel=0.35)


def test_bits() -> None:
    assert [sorted(bits(sum(1 << i for i in c))) for c in combinations(range(4), 2)] == [
        list(c) for c in combinations(range(4), 2)
    ]
