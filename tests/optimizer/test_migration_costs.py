"""The cost of migrations: sums written out by hand, and properties that hold for all numbers."""

from __future__ import annotations

from dataclasses import astuple
from itertools import combinations
from math import inf
from random import Random

import pytest
from hypothesis import given

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import StepCosts
from eddyline.optimizer.migration_costs import PlanChange, moving_state, parallel_track
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.workload import JoinEdge, Selection, SourceLoad, Workload
from eddyline.plan.tree import Tree, mjoin
from lab.fuzz.trees import random_tree
from tests.support.drawn import SEEDS, model
from tests.support.properties import examples

ROW, INDEX, COMPONENT, DELETE, PROBE, MATCH, INDEX_BYTES = 1, 10, 100, 1000, 10_000, 10**7, 4
UNIT = StepCosts(ROW, INDEX, 20, COMPONENT, DELETE, PROBE, 1e5, 1e6, MATCH, INDEX_BYTES)
SOURCES = (SourceLoad.stream(10, 2, 30), SourceLoad.stream(5, 2, 40), SourceLoad.stream(2, 10, 50))
EDGES = (JoinEdge(0, 1, 0.1), JoinEdge(1, 2, 0.5))
LIVES = (2.0, 2.0, 10.0)
LEFT = Tree((Tree((0, 1)), 2))
A_TUPLE = ROW + INDEX + 2 * COMPONENT
"""The cost to insert a tuple of (a b), which has an index for c."""
WORK = 10 * PROBE + 20 * MATCH + 20 * A_TUPLE
"""The 10 rows of b, fewer than those of a, probe; there are 20 pairs."""
UPKEEP = (10 + 5) * PROBE + 20 * MATCH + 20 * (A_TUPLE + DELETE)


def change(old: Tree, new: Tree, *selections: Selection) -> PlanChange:
    return PlanChange(Pricing(CostModel(Workload(SOURCES, EDGES, (), selections), UNIT)), old, new)


def test_moving_state_by_hand() -> None:
    found = moving_state(change(mjoin(3), LEFT), 1.0, None)
    assert found.seconds == pytest.approx(WORK) and found.longest == found.seconds and found.duration == 0.0
    assert (found.rows, found.tuples) == (pytest.approx(20 + 10 + 20), pytest.approx(20))
    assert found.bytes == pytest.approx(20 * (8 * (2 + 1 + 1) + INDEX_BYTES))


def test_a_state_that_goes_leaves_an_index_to_be_made() -> None:
    """b gets an index for c again."""
    found = moving_state(change(LEFT, mjoin(3)), 1.0, None)
    assert found.seconds == pytest.approx(10 * INDEX) and found.tuples == 0.0
    assert found.bytes == pytest.approx(10 * INDEX_BYTES)


def test_what_comes_meanwhile_is_moved_too() -> None:
    whole, duration = change(mjoin(3), LEFT), 0.5
    found = moving_state(whole, 2 * WORK, 0.05)
    assert found.duration == pytest.approx(duration) and found.longest == 0.05
    assert found.seconds == pytest.approx(WORK + UPKEEP * duration)
    assert found.rows == pytest.approx(50 + (10 + 5 + 2) * duration)
    slow = moving_state(whole, 0.0, 0.05)
    assert slow.duration == pytest.approx(50 / (10 + 5 + 2)), "at least as many rows are moved as arrive"


def test_a_selection_inside_the_state_is_evaluated_again() -> None:
    """It is evaluated for the 20 pairs that match; half of them pass."""
    found = moving_state(change(mjoin(3), LEFT, Selection(0b011, 0.5, 1e9)), 1.0, None)
    assert found.seconds == pytest.approx(10 * PROBE + 20 * MATCH + 10 * A_TUPLE + 20 * 1e9)


def test_a_state_that_is_filtered_is_made_of_the_old_one() -> None:
    """The selection of (a b) is pushed down: it is evaluated for each of the 20 tuples, and 10 are inserted."""
    late = Tree((Tree((0, 1), late=True), 2))
    there = change(late, LEFT, Selection(0b011, 0.5, 1e9))
    assert there.filtered == [0b011] and not there.fresh
    found = moving_state(there, 1.0, None)
    assert found.seconds == pytest.approx(20 * 1e9 + 10 * A_TUPLE) and found.tuples == pytest.approx(10)
    back = moving_state(change(LEFT, late, Selection(0b011, 0.5, 1e9)), 1.0, None)
    assert back.seconds == pytest.approx(10 * PROBE + 20 * MATCH + 20 * A_TUPLE), "joined again, without the selection"
    track = parallel_track(there, LIVES, 1.0)
    assert track.duration == 11.0 and 0.0 < track.tuples < inf


def test_parallel_track_by_hand() -> None:
    """Rows of c live ten seconds; their expiry is known one second later."""
    found = parallel_track(change(mjoin(3), LEFT), LIVES, 1.0)
    single, pair, whole = 11.0, 2 / 2 + 9.0, 10 / 3 + 1.0
    below = (10 + 5) * PROBE * single + 20 * MATCH * pair + 20 * (A_TUPLE + DELETE) * pair
    top = 20 * PROBE * pair + 2 * PROBE * single + (200 + 20) * MATCH * whole
    assert found.duration == 11.0 and found.longest == 0.0
    assert found.seconds == pytest.approx(below + top + 17 * 11 * ROW)
    assert found.rows == pytest.approx((10 + 5 + 2) * 11.0)
    assert found.tuples == pytest.approx(20 * 2) and found.bytes == pytest.approx(40 * 36), "all held tuples"
    filling = parallel_track(change(mjoin(3), LEFT), (2.0, 2.0, 2.0), 0.5)
    assert filling.tuples == pytest.approx(20 * (2 / 2 + 0.5)), "the windows have just filled"


def test_only_what_is_in_the_box_must_expire() -> None:
    """(a b) is kept, and nothing above it changes; rows of d, which live long, do not matter."""
    sources, edges = (*SOURCES, SourceLoad.stream(1, 100)), (*EDGES, JoinEdge(2, 3, 0.1))
    pricing = Pricing(CostModel(Workload(sources, edges), UNIT))
    old, new = Tree((Tree((0, 1, 2)), 3)), Tree((LEFT, 3))
    assert parallel_track(PlanChange(pricing, old, new), (*LIVES, 100.0), 0.0).duration == 10.0
    assert parallel_track(PlanChange(pricing, mjoin(4), new), (*LIVES, 100.0), 0.0).duration == 100.0


def test_a_track_never_ends_if_rows_live_forever() -> None:
    assert parallel_track(change(mjoin(3), LEFT), (2.0, inf, 2.0), 0.0).seconds == inf


def test_a_table_is_neither_old_nor_new() -> None:
    """Rows of a and b match the whole table from the start: only the windows of a and b have to fill."""
    sources = (SOURCES[0], SOURCES[1], SourceLoad.table(20))
    pricing = Pricing(CostModel(Workload(sources, EDGES), UNIT))
    right = Tree((0, Tree((1, 2))))
    found = parallel_track(PlanChange(pricing, mjoin(3), right), (2.0, 2.0, 0.0), 0.0)
    made = 5 * 20 * 0.5
    below = 5 * PROBE * 2 + made * MATCH * 2 + made * (A_TUPLE + DELETE) * 2
    top = 10 * PROBE * 2 + made * PROBE * 2 + pricing.model.rate(7) * MATCH * 1
    assert found.seconds == pytest.approx(below + top + 15 * 2 * ROW) and found.duration == 2.0


def test_a_state_of_tables_is_made_at_once_by_both() -> None:
    sources = (SOURCES[0], SourceLoad.table(10), SourceLoad.table(20))
    there = PlanChange(Pricing(CostModel(Workload(sources, EDGES), UNIT)), mjoin(3), Tree((0, Tree((1, 2)))))
    work = 10 * PROBE + 100 * MATCH + 100 * A_TUPLE
    assert moving_state(there, 1.0, None).seconds == pytest.approx(work)
    found = parallel_track(there, (2.0, 0.0, 0.0), 0.0)
    top = 10 * PROBE * 2 + there.pricing.model.rate(7) * MATCH * 2
    assert found.seconds == pytest.approx(work + top + 10 * 2 * ROW) and found.tuples == pytest.approx(100)


@given(SEEDS)
@examples(200)
def test_whatever_the_numbers_are(seed: int) -> None:
    """No cost is negative, no change costs nothing, the change at once is the least work, and both strategies make the
    same states."""
    rng = Random(seed)
    drawn = model(seed, rng.randint(3, 6))
    pricing, pairs = Pricing(drawn), tuple(combinations(range(drawn.size), 2))
    old, new = (random_tree(rng, drawn.size, pairs, late=0.0) for _ in range(2))
    lives = [s.rows / s.rate if s.rate else 0.0 for s in drawn.workload.sources]
    assert astuple(moving_state(PlanChange(pricing, old, old), 1.0, 0.05))[:4] == (0.0, 0.0, 0.0, 0.0)
    assert parallel_track(PlanChange(pricing, old, old), lives, 0.0).seconds == 0.0
    there = PlanChange(pricing, old, new)
    once, moved, track = moving_state(there, 0.1, None), moving_state(there, 0.1, 0.05), parallel_track(there, lives, 1)
    for found in (once, moved, track):
        assert all(0.0 <= value < inf for value in astuple(found))
    assert once.seconds <= moved.seconds and once.rows <= moved.rows
    assert bool(there.fresh) == (once.tuples > 0.0) == (track.tuples > 0.0)
    assert moved.bytes <= track.bytes * (1 + 1e-9), "live tuples are at most the held ones"
    longer = parallel_track(there, lives, 2.0)
    assert longer.seconds >= track.seconds and (longer.duration == track.duration + 1 or not there.boxes)
