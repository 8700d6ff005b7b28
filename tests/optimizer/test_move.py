"""The choice of the strategy, and whether to change in one step."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import inf
from random import Random

import pytest
from hypothesis import given

from eddyline.migration.boxes import boxes
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.move import MoveConditions, applied, choose_move
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import shape_of
from eddyline.optimizer.workload import JoinEdge, SourceLoad, Workload
from eddyline.plan.tree import Tree, mjoin, parse_tree
from lab.fuzz.trees import random_tree
from tests.support.drawn import SEEDS
from tests.support.properties import examples

LEFT = Tree((Tree((0, 1)), 2))
FREE = MoveConditions("auto", 0.1, 0.0, None, (2.0, 2.0, 2.0), 0.0, 0.05)


def pricing() -> Pricing:
    """a and b match, and hardly any of these pairs match c."""
    return Pricing(
        CostModel(Workload((SourceLoad.stream(1000, 2),) * 3, (JoinEdge(0, 1, 1e-3), JoinEdge(1, 2, 1e-7))), DEFAULTS)
    )


def test_moving_state_is_the_usual_one() -> None:
    found = choose_move(pricing(), mjoin(3), LEFT, FREE)
    assert found.tree == LEFT and not found.parallel and found.why.startswith("since parallel track takes ")
    assert found.text.startswith("by moving state, since ") and found.figures["seconds"] == found.predicted.seconds


def test_parallel_track_where_it_is_less_work() -> None:
    """There is hardly any time for moving, so many rows arrive meanwhile, and they must be moved too."""
    busy = choose_move(pricing(), mjoin(3), LEFT, replace(FREE, cpu=1e-6))
    assert busy.parallel and busy.why.startswith("since moving state takes ") and busy.predicted.duration == 2.0
    assert not choose_move(pricing(), mjoin(3), LEFT, replace(FREE, cpu=1.0)).parallel


@pytest.mark.parametrize("asked", ["moving-state", "parallel-track"])
def test_what_is_asked_for(asked: str) -> None:
    found = choose_move(pricing(), mjoin(3), LEFT, replace(FREE, asked=asked))
    assert found.parallel == (asked == "parallel-track") and found.why == "as was asked for"
    assert found.predicted.duration == (2.0 if found.parallel else pytest.approx(found.predicted.duration))


def test_at_once_is_moving_state() -> None:
    found = choose_move(pricing(), mjoin(3), LEFT, replace(FREE, asked="parallel-track", pause=None))
    assert not found.parallel and found.predicted.duration == 0.0 and found.why == "at once"


def test_rows_that_live_forever_are_moved() -> None:
    assert not choose_move(pricing(), mjoin(3), LEFT, replace(FREE, lives=(inf,) * 3)).parallel


SIX = "abcdef"
OLD, NEW = parse_tree("((a b c) (d e f))", SIX), parse_tree("(((a b) c) ((d e) f))", SIX)


def six(pair: float) -> Pricing:
    """Two chains that are joined; there are `pair` times as many pairs of d and e as of a and b."""
    edges = tuple(JoinEdge(i, i + 1, 1e-3 * (pair if i == 3 else 1.0)) for i in range(5))
    return Pricing(CostModel(Workload((SourceLoad.stream(1000, 1),) * 6, edges), DEFAULTS))


def test_boxes_are_moved_together_if_there_is_room() -> None:
    conditions = replace(FREE, lives=(1.0,) * 6)
    whole = choose_move(six(2.0), OLD, NEW, conditions)
    assert whole.tree == NEW
    exact = replace(conditions, held=10**6, limit=10**6 + whole.predicted.bytes)
    assert choose_move(six(2.0), OLD, NEW, exact).tree == NEW
    tight = replace(exact, limit=exact.limit - 1)
    step = choose_move(six(2.0), OLD, NEW, tight)
    assert step.tree.text(SIX) == "(((a b) c) (d e f))", "the box that leaves less memory in use"
    assert step.predicted.bytes < whole.predicted.bytes and step.predicted.seconds < whole.predicted.seconds
    again = choose_move(six(2.0), step.tree, NEW, replace(tight, limit=inf))
    assert again.tree == NEW
    assert step.predicted.tuples + again.predicted.tuples == pytest.approx(whole.predicted.tuples)
    none = choose_move(six(2.0), OLD, NEW, replace(tight, limit=10**6))
    assert none.tree == NEW and none.predicted.bytes == whole.predicted.bytes, "no room for a step either"


@given(SEEDS)
@examples(60)
def test_boxes_one_after_the_other_lead_to_the_same_plan(seed: int) -> None:
    rng = Random(seed)
    size = rng.randint(3, 8)
    tree, new = (random_tree(rng, size, tuple(combinations(range(size), 2)), late=0.0) for _ in range(2))
    while found := boxes(tree, new):
        tree = applied(tree, new, rng.choice(found))
        assert len(boxes(tree, new)) == len(found) - 1
    assert shape_of(tree) == shape_of(new)
