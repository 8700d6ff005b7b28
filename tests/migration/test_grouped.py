"""Group-bys below a join: results are the same wherever a part of the group-by is done, and while that place
changes."""

from __future__ import annotations

import random
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from eddyline.engine.planner import Planner
from eddyline.engine.slot import Slot
from eddyline.errors import SettingError
from eddyline.migration.boxes import Box, boxes
from eddyline.plan.explain import explain
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree, parse_tree
from eddyline.settings import Settings
from lab.fuzz.eager import eager
from tests.support.jobs import Job, Row, bound
from tests.support.plan_world import S, change_from_process_to_process, options, planned, query, ready
from tests.support.regions import check_regions
from tests.support.slot_steps import run, run_again

STRATEGIES = pytest.mark.parametrize("parallel", [False, True], ids=["moving state", "parallel track"])
TWO = ["(a b)", "((a)+ b)", "(a (b)+)", "((a)+ (b)+)"]
THREE = ["(a b c)", "((a b) c)", "((a b)+ c)", "(a (b c)+)", "(((a)+ b) c)"]
TABLE = ["(a b t)", "((a b) t)", "((a b)+ t)", "((a t)+ b)", "(a b (t)+)"]
FOUR = ["(((a b) c) d)", "(((a b)+ c) d)", "(((a b)!+ c)+ d)", "(((a b) c)!+ d)", "((a b)+ (c d)+)", "(a (b c)+ (d)+)"]
PAIRS = [
    *(("two grouped", *pair) for pair in permutations(TWO, 2)),
    *((name, *pair) for name in ("grouped", "grouped in time") for pair in permutations(THREE, 2)),
    *(("grouped with a table", *pair) for pair in permutations(TABLE, 2)),
    *(("grouped and selected", *pair) for pair in permutations(FOUR, 2)),
]
PUT_TOGETHER = [
    *(("two grouped", plan) for plan in ("((a)+ b)", "((a)+ (b)+)")),
    *((name, plan) for name in ("grouped", "grouped in time") for plan in ("((a b)+ c)", "(a (b c)+)")),
    *(("grouped with a table", plan) for plan in ("((a b)+ t)", "((a t)+ b)")),
    ("grouped and selected", "(((a b) c)!+ d)"),
]
"""Queries and plans in which tuples of the few test rows are grouped into one."""
PLACES = sorted({(name, plan) for name, *plans in PAIRS for plan in plans})


def tree(name: str, text: str) -> Tree:
    return parse_tree(text, [s.alias for s in query(name).sources])


def weights(slot: Slot) -> tuple[int, int]:
    """The number of tuples with weights in intermediate SteMs, and for how many combinations they stand."""
    tuples = combinations = 0
    for stem in slot.executor.stems[len(slot.query.sources) :]:
        if stem.rows.carried is not None:
            tuples += stem.held
            combinations += int(stem.rows.carried.gather(np.arange(stem.rows.min_live, stem.built)).weights.sum())
    return tuples, combinations


@pytest.mark.parametrize("packet", [None, 2])
@pytest.mark.parametrize(("name", "plan"), PLACES, ids=str)
def test_rows_are_those_of_one_group_by(name: str, plan: str, packet: int | None) -> None:
    steps, expected = planned(name)
    slot, found = ready(name, Slot(query(name), options(plan=plan, packet=packet))), list[Row]()
    tuples = combinations = 0
    for number, step in enumerate(steps, 1):
        found += run(slot, step)
        slot.commit(number)
        now = weights(slot)
        tuples, combinations = tuples + now[0], combinations + now[1]
    assert sorted(found, key=repr) == expected and expected
    assert bool(tuples) == ("+" in plan)
    assert combinations > tuples or packet or (name, plan) not in PUT_TOGETHER


@pytest.mark.share(27, 3)
@STRATEGIES
@pytest.mark.parametrize(("name", "old", "new"), PAIRS, ids=str)
def test_from_every_place_to_every_other(name: str, old: str, new: str, parallel: bool) -> None:
    """Each batch is run; some are wound back and run again."""
    steps, expected = planned(name)
    rng, found = random.Random(old + new), list[Row]()
    tuning = eager(3)
    chosen = options(pause_ms=0.0, packet=rng.choice([None, 3]))
    slot = Slot(query(name), chosen, tree=tree(name, old), tuning=tuning)
    ready(name, slot)
    for number, step in enumerate(steps):
        if number == 2:
            slot.executor.migrate(tree(name, new), parallel)
        elif slot.executor.migration is not None:
            slot.replan()
        check_regions(slot, slot.arena)
        once = run(slot, step)
        if rng.random() < 0.3:
            run_again(slot, step, once)
        found += once
        slot.commit(number + 1)
    assert sorted(found, key=repr) == expected and expected
    assert slot.executor.plan.tree == tree(name, new) or (parallel and "UNBOUNDED" in str(query(name)))


@STRATEGIES
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(((a b) c) d)", "(((a b)!+ c)+ d)"),
        ("(((a b)!+ c)+ d)", "(((a b) c) d)"),
        ("(((a b)+ c) d)", "(a (b c)+ (d)+)"),
    ],
    ids=["push-down", "merge", "another"],
)
@pytest.mark.share(3)
def test_it_goes_from_process_to_process(old: str, new: str, parallel: bool, tmp_path: Path) -> None:
    name = "grouped and selected"
    change_from_process_to_process(name, tree(name, old), tree(name, new), parallel, tmp_path)


def test_it_is_taken_back() -> None:
    """The results of the parallel track so far stay, with their weights, and the old plan continues."""
    name = "grouped and selected"
    steps, expected = planned(name)
    for new in ("(((a b)!+ c)+ d)", "((a b)+ (c d)+)", "(((a b) c) d)"):
        slot, found = Slot(query(name), options(pause_ms=0.0), tree=tree(name, "(((a b) c)!+ d)")), list[Row]()
        for number, step in enumerate(steps):
            if number == 1:
                slot.executor.migrate(tree(name, new), parallel=True)
            if number == 4:
                slot.executor.give_up()
            found += run(slot, step)
            slot.commit(number + 1)
        assert sorted(found, key=repr) == expected


def test_the_optimizer_leaves_a_plan_that_groups_alone_until_it_looks() -> None:
    """With plan=auto a grouped state stays until there is a reason to change it, and is observed like other states."""
    for name, before in (("grouped", "((a b)+ c)"), ("grouped", "(((a)+ b) c)")):
        steps, expected = planned(name)
        slot, found = Slot(query(name), Settings(check=True), tree=tree(name, before)), list[Row]()
        assert isinstance(slot.plans, Planner)
        for number, step in enumerate(steps, 1):
            found += run(slot, step)
            slot.commit(number)
            slot.replan()
        assert sorted(found, key=repr) == expected
        assert slot.executor.plan.tree == tree(name, before) and slot.plans.optimizer.observed.probes


def test_boxes() -> None:
    def found(old: str, new: str) -> list[Box]:
        aliases = sorted(set(old) & set("abcd"))
        return boxes(parse_tree(old, aliases), parse_tree(new, aliases))

    assert found("((a b)+ c)", "((a b)+ c)") == []
    assert found("((a b) c)", "((a b)+ c)") == [Box(7, (3, 4), (), (), (3,))], "the tuples of the old state are grouped"
    assert found("((a b)+ c)", "((a b) c)") == [Box(7, (1, 2, 4), (3,), (3,))], "grouped tuples cannot be taken apart"
    assert found("(((a b)+ c) d)", "(((a b)+ c)+ d)") == [], "both have weights"
    assert found("(((a b)+ c) d)", "((a (b c)+) d)") == [Box(7, (1, 2, 4), (3,), (6,))]
    assert found("(((a b) c) d)", "(((a b)+ c) d)") == [Box(7, (3, 4), (), (), (3,)), Box(15, (7, 8), (), (), (7,))]
    assert found("((a)+ b)", "((a)+ b)") == []
    assert found("(a b)", "((a)+ b)") == [Box(3, (1, 2), (), (~1,))], "the rows stay beside their groups"
    assert found("((a)+ b)", "(a b)") == [Box(3, (1, 2), (~1,), ())]
    assert found("(((a)+ b) c)", "(((a)+ b)+ c)") == []
    assert found("((a)+ b c)", "(((a)+ b) c)") == [Box(7, (~1, 2, 4), (), (3,))]
    assert found("(((a b)+ c) d)", "(((a b) c) d)") == [Box(15, (1, 2, 4, 8), (3, 7), (3, 7))]


MANY = f"SELECT c.x AS g, COUNT(*) AS n, SUM(a.x) AS s, window_end() AS e FROM a {S}, b {S}, c {S} \
WHERE a.k = b.k AND b.k = c.k GROUP BY c.x"
COLUMNS = dict.fromkeys("abc", "k x")


def test_states_are_smaller() -> None:
    """Many tuples have few keys: one tuple per key and interval is kept."""
    found = {}
    for plan in ("((a b) c)", "((a b)+ c)", "((a)+ b c)"):
        job = Job(MANY, Settings(plan=plan, check=True), **COLUMNS)
        rows = [(t, k, t * k) for t in (1, 2, 3, 4) for k in (0, 1) for _ in range(5)]
        job.feed(a=rows, b=rows)
        held = job.engine.slots[0].executor.stems[3]
        found[plan] = held.held, [*job.feed(c=[(3, 1, 7), (9, 0, 8)]), *job.end()]
        assert found[plan][1] == job.expected()
    assert found["((a b) c)"][0] == 800 and found["((a b)+ c)"][0] <= 20
    assert found["((a)+ b c)"][0] <= 8, "the 40 rows are grouped, too"


def test_sums_are_exact() -> None:
    """Products of weights and values are far beyond 64 bits."""
    large = 2**62 + 1
    for plan in ("((a b) c)", "((a b)+ c)", "(a (b c)+)"):
        job = Job(MANY, Settings(plan=plan, check=True), **COLUMNS)
        job.feed(a=[(1, 7, large)] * 9 + [(1, 7, -3), (1, 7, None)], b=[(1, 7, 1)] * 40)
        rows = [*job.feed(c=[(1, 7, 5)] * 30), *job.end()]
        assert rows == job.expected() and rows[0][2] == (9 * large - 3) * 40 * 30


def test_a_key_and_its_foreign_keys() -> None:
    """Sales of products, joined with a table of products: the foreign key is the join key, so tuples are grouped by
    it."""
    select = f"SELECT p.name, SUM(s.x * r.x) AS total, COUNT(*) AS n, window_end() AS e FROM s {S}, r {S}, p \
WHERE s.k = r.k AND s.product = p.product GROUP BY p.name"
    names = [(1, "one"), (2, "two"), (3, "two")]
    for plan in ("((s r) p)", "((s r)+ p)"):
        job = Job(
            select, Settings(plan=plan, check=True), tables={"p": names}, s="k x product", r="k x",
            p="product name:string",
        )  # fmt: skip
        found = job.feed(s=[(t, t % 2, t, t % 4) for t in range(9)], r=[(t, t % 2, 2) for t in range(9)])
        assert sorted([*found, *job.end()], key=repr) == job.expected()
    assert "groups by s.product, " in explain(job.query, tree=parse_tree("((s r)+ p)", ["s", "r", "p"]))


def test_it_says_by_what_it_groups() -> None:
    text = explain(query("grouped"), tree=tree("grouped", "((a b)+ c)"))
    assert "(a b): intermediate results, kept until a row in them expires\n  hash index on b.s\n" in text
    assert "\n  groups by b.s, b.x, a.y, boundaries\n" in text
    assert "\n  keeps for each a weight and SUM(a.x), AVG(b.y), MIN(a.s)\n" in text
    above = explain(query("grouped and selected"), tree=tree("grouped and selected", "(((a b)!+ c) d)"))
    assert "groups by b.s, a.x, b.y, boundaries" in above, "a selection that waits still reads its columns"
    assert "keeps for each a weight and SUM(b.x), MAX(c.s)" in above, "above it tuples have weights too"
    alone = explain(query("grouped"), tree=tree("grouped", "((a)+ b c)"))
    assert "\na: rows that are joined, in groups\n  hash index on a.k\n  groups by a.k, a.y, boundaries\n" in alone
    assert "\n  keeps for each a weight and SUM(a.x), MIN(a.s)\n" in alone
    timed = explain(query("grouped in time"), tree=tree("grouped in time", "((a b)+ c)"))
    assert "groups by b.s, a.y, time of b, boundaries" in timed


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("SELECT a.x FROM a, b, c WHERE a.k = b.k AND b.k = c.k", "+ needs aggregates with a SLIDE"),
        ("SELECT COUNT(*) AS n FROM a, b, c WHERE a.k = b.k AND b.k = c.k", "+ needs aggregates with a SLIDE"),
        (MANY.replace(f"a {S}", "a [ROWS 5]"), "+ needs windows without ROWS: "),
    ],
)
def test_what_cannot_group_is_refused(select: str, why: str) -> None:
    bad = bound(select, **COLUMNS)
    with pytest.raises(SettingError) as refused:
        Slot(bad, options(plan="((a b)+ c)"))
    assert str(refused.value).startswith(f"plan=((a b)+ c): {why}")
    with pytest.raises(SettingError):
        Plan(bad, parse_tree("((a b)+ c)", ["a", "b", "c"]))
