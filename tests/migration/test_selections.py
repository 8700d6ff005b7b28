"""Selections move between operators: results are the same, whichever operator applies a selection before and after."""

from __future__ import annotations

import math
import random
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from eddyline.engine.slot import Slot
from eddyline.migration.boxes import Box, boxes
from eddyline.plan.steps import Probe, Select
from eddyline.plan.tree import Tree, parse_tree
from eddyline.routing.eddy import Eddy
from eddyline.state.part import Cut
from lab.fuzz.eager import eager
from tests.support.jobs import Row
from tests.support.plan_world import change_from_process_to_process, options, planned, query
from tests.support.regions import check_regions
from tests.support.slot_steps import run, run_again

STRATEGIES = pytest.mark.parametrize("parallel", [False, True], ids=["moving state", "parallel track"])
THREE = ["(a b c)", "((a b) c)", "((a b)! c)", "(a (b c))", "(a (b c)!)"]
FOUR = ["(((a b) c) d)", "(((a b)! c) d)", "(((a b) c)! d)", "(((a b)! c)! d)", "((a b c)! d)", "((a b)! (c d))"]
PAIRS = [
    *((name, *pair) for name in ("selections", "selection of one") for pair in permutations(THREE, 2)),
    *(("four selections", *pair) for pair in permutations(FOUR, 2)),
]
States = dict[tuple[int, ...], list[tuple[int, ...]]]


def tree(text: str) -> Tree:
    return parse_tree(text, sorted(set(text) & set("abcd")))


def states(slot: Slot) -> States:
    """The live tuples of the intermediate SteMs, by their sources."""
    found = {}
    for stem in slot.executor.stems[len(slot.query.sources) :]:
        rows = np.arange(stem.rows.min_live, stem.built)
        rows = rows[stem.prober.live(rows, [s.prober for s in slot.executor.stems])]
        components = [column.values[rows].tolist() for column in stem.rows.components.values()]
        found[tuple(stem.rows.components)] = sorted(zip(*components, strict=True))
    return found


@cache
def states_by_step(name: str, plan: str) -> list[States]:
    """The states after each batch of a slot that had this plan from the start."""
    slot, found = Slot(query(name), options(plan=plan)), []
    for number, step in enumerate(planned(name)[0][:-1], 1):
        run(slot, step)
        slot.commit(number)
        found.append(states(slot))
    return found


def started(name: str, plan: str, steps: int) -> Slot:
    """A slot with this plan after some batches; it may change to another plan."""
    slot = Slot(query(name), options(pause_ms=0.0), tree=tree(plan))
    for number, step in enumerate(planned(name)[0][:steps], 1):
        run(slot, step)
        slot.commit(number)
    return slot


@STRATEGIES
@pytest.mark.share(9, 3)
@pytest.mark.parametrize(("name", "old", "new"), PAIRS, ids=str)
def test_from_every_place_to_every_other(name: str, old: str, new: str, parallel: bool) -> None:
    """Each batch is run; some are wound back and run again. After the plan is changed, its states are the same as if it
    had been the plan from the start."""
    steps, expected = planned(name)
    rng, found, same = random.Random(old + new), list[Row](), 0
    tuning = eager(3)
    chosen = options(pause_ms=0.0, packet=rng.choice([None, 3]))
    slot = Slot(query(name), chosen, tree=tree(old), tuning=tuning)
    for number, step in enumerate(steps):
        if number == 2:
            slot.executor.migrate(tree(new), parallel)
        elif slot.executor.migration is not None:
            slot.replan()
        check_regions(slot, slot.arena)
        once = run(slot, step)
        if rng.random() < 0.3:
            run_again(slot, step, once)
        found += once
        slot.commit(number + 1)
        if number > 2 and not step.last and slot.executor.migration is None:
            assert states(slot) == states_by_step(name, new)[number]
            same += 1
    assert sorted(found, key=repr) == expected and expected
    assert same and slot.executor.plan.tree == tree(new)


def count(track: Eddy, kind: type[Probe] | type[Select]) -> int:
    """The number of tuples that took steps of this kind."""
    steps = (traffic for entry in track.routes.entries.values() for traffic in entry.steps)
    return sum(traffic.tuples for traffic in steps if isinstance(traffic.step, kind))


def moved(slot: Slot, new: str) -> Eddy:
    """Change to a plan by moving state; returns the track that did it."""
    slot.executor.migrate(tree(new), parallel=False)
    migration = slot.executor.migration
    assert migration is not None
    migration.step(math.inf)
    migration.commit(Cut(None, 0, None))
    slot.executor.change_plan()
    check_regions(slot, slot.arena)
    return migration._track


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("selections", "((a b)! c)", "((a b) c)"),
        ("selection of one", "(a (b c)!)", "(a (b c))"),
        ("four selections", "(((a b)! c)! d)", "(((a b) c) d)"),
        ("four selections", "(((a b)! c)! d)", "(((a b)! c) d)"),
        ("four selections", "(((a b)! c)! d)", "(((a b) c)! d)"),
    ],
)
def test_what_is_pushed_down_filters(name: str, old: str, new: str) -> None:
    """No tuple is joined again, and tuples that do not pass are removed."""
    slot = started(name, old, 5)
    before = states(slot)
    track = moved(slot, new)
    assert count(track, Probe) == 0 < count(track, Select)
    assert states(slot) == states_by_step(name, new)[4]
    assert sum(map(len, states(slot).values())) < sum(map(len, before.values()))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("selections", "((a b) c)", "((a b)! c)"),
        ("selection of one", "(a (b c))", "(a (b c)!)"),
        ("four selections", "(((a b) c) d)", "(((a b)! c)! d)"),
    ],
)
def test_what_is_pulled_up_is_computed_again(name: str, old: str, new: str) -> None:
    """The old state lacks tuples, so it is not used."""
    slot = started(name, old, 5)
    before = states(slot)
    track = moved(slot, new)
    assert count(track, Probe) > 0 == count(track, Select)
    assert states(slot) == states_by_step(name, new)[4]
    assert sum(map(len, states(slot).values())) > sum(map(len, before.values()))


def test_a_state_that_has_passed_the_same_is_shared() -> None:
    """The operators below it change, but its contents do not."""
    slot = started("four selections", "(((a b)! c) d)", 5)
    kept = slot.executor.stems[5]
    assert kept.rows.components.keys() == {0, 1, 2} and kept.built > kept.rows.min_live
    moved(slot, "(((a b) c) d)")
    assert slot.executor.stems[5] is kept
    assert states(slot) == states_by_step("four selections", "(((a b) c) d)")[4]


def test_boxes() -> None:
    """Two selections, on a and b and on a and c."""
    selections = [0b11, 0b101]

    def found(old: str, new: str) -> list[Box]:
        return boxes(tree(old), tree(new), selections)

    assert found("(((a b)! c) d)", "(((a b)! c) d)") == []
    assert found("(((a b)! c) d)", "(((a b) c) d)") == [Box(7, (3, 4), (), (), (3,))], "the state of a b c is the same"
    assert found("(((a b) c) d)", "(((a b)! c) d)") == [Box(7, (1, 2, 4), (3,), (3,))]
    assert found("(((a b)! c)! d)", "(((a b) c) d)") == [Box(7, (3, 4), (), (), (3,)), Box(15, (7, 8), (), (), (7,))]
    assert found("(((a b) c) d)", "(((a b)! c)! d)") == [Box(15, (1, 2, 4, 8), (3, 7), (3, 7))]
    # one selection is pulled up, the other one pushed down
    assert found("(((a b) c)! d)", "(((a b)! c) d)") == [Box(7, (1, 2, 4), (3,), (3,)), Box(15, (7, 8), (), (), (7,))]
    assert found("((a b c)! d)", "(((a b) c) d)") == [Box(7, (1, 2, 4), (), (3,)), Box(15, (7, 8), (), (), (7,))]
    assert found("((a c)! (b d)!)", "((a c) (b d))") == [Box(15, (5, 10), (), (), (5,))], "nothing selects on b and d"


@STRATEGIES
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(((a b)! c)! d)", "(((a b) c) d)"),
        ("(((a b) c) d)", "(((a b)! c)! d)"),
        ("(((a b) c)! d)", "(((a b)! c) d)"),
    ],
    ids=["push-down", "pull-up", "both"],
)
def test_it_goes_from_process_to_process(old: str, new: str, parallel: bool, tmp_path: Path) -> None:
    change_from_process_to_process("four selections", tree(old), tree(new), parallel, tmp_path)
