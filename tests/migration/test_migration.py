"""Plans change while rows arrive: results are the same, by either strategy, whatever happens in between."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.slot import Slot
from eddyline.engine.tuning import Tuning
from eddyline.migration.tuning import MigrationTuning
from eddyline.plan.tree import mjoin, parse_tree, shape
from eddyline.protocol.attach import close, open_slot
from eddyline.routing.meta_queue import MetaQueue
from eddyline.routing.scope import whole
from eddyline.state.part import Cut
from lab.fuzz.eager import eager
from lab.fuzz.trees import random_tree
from tests.support.jobs import Row
from tests.support.plan_world import LATENESS, QUERIES, options, planned, query, ready
from tests.support.regions import check_regions
from tests.support.slot_steps import reopened, run, run_again, run_twice

Serve = Callable[[MetaQueue], None]
STRATEGIES = pytest.mark.parametrize("parallel", [False, True], ids=["moving state", "parallel track"])


def goes_on(slot: Slot) -> str:
    """Let `replan` continue a migration; returns the change of the plan, empty if the migration has not ended."""
    before = slot.executor.plan.text
    assert slot.executor.migration is not None
    slot.replan()
    return "" if slot.executor.migration is not None else f"{before} -> {slot.executor.plan.text}"


@pytest.mark.share(9, 3)
@STRATEGIES
@pytest.mark.parametrize("size", [None, 4], ids=["large", "small"])
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_the_same(name: str, size: int | None, parallel: bool) -> None:
    """The plan changes several times; each batch is run, wound back, and run again."""
    steps, expected = planned(name)
    changed = 0
    for seed in range(3):
        rng, found = random.Random(f"{name}{seed}"), list[Row]()
        tuning = eager(size)
        packet = rng.choice([None, 1, 3])
        chosen = options(pause_ms=rng.choice([0.0, 50.0, 50.0]), packet=packet)
        slot = ready(name, Slot(query(name), chosen, tuning=tuning))
        for step in steps:
            if slot.executor.migration is None:
                slot.executor.migrate(random_tree(rng, len(slot.query.sources), slot.executor.plan.edges), parallel)
            else:
                changed += bool(goes_on(slot))
            check_regions(slot, slot.arena)
            found += run_twice(slot, step)
        assert sorted(found, key=repr) == expected and expected
    assert changed >= 2


@STRATEGIES
@pytest.mark.parametrize(
    ("name", "aliases", "plans"),
    [
        # Both plans keep (b c); in one plan a probes it by b.k, in the other d probes it by c.y.
        ("four", "abcd", ("((a (b c)) d)", "(a ((b c) d))")),
        # Results of tables alone exist before the change, whatever rows arrive.
        ("tables", "atuv", ("(a ((t u) v))", "(a (t (u v)))")),
    ],
)
def test_from_one_plan_to_the_other_and_back(name: str, aliases: str, plans: tuple[str, str], parallel: bool) -> None:
    steps, expected = planned(name)
    trees = [parse_tree(text, aliases) for text in plans]
    slot, found, changed = ready(name, Slot(query(name), options(pause_ms=0.0))), list[Row](), 0
    slot.set_plan(trees[0])
    for step in steps:
        if slot.executor.migration is None:
            slot.executor.migrate(trees[slot.executor.plan.tree == trees[0]], parallel)
        else:
            changed += bool(goes_on(slot))
        found += run(slot, step)
        slot.commit(slot.version + 1)
    assert sorted(found, key=repr) == expected and changed


@pytest.mark.share(3, 3)
@STRATEGIES
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["four", "table", "tables", "selections", "slide of rows"])
def test_it_goes_from_process_to_process(name: str, seed: int, parallel: bool, tmp_path: Path) -> None:
    """The slot is saved during the migration, before or after a commit; the next process continues."""
    steps, expected = planned(name)
    rng, found, changed = random.Random(f"{name}{seed}"), list[Row](), 0
    tuning = eager(2)
    settings = options(pause_ms=0.0)
    slot = ready(name, open_slot(query(name), settings, str(tmp_path), tuning=tuning))
    for number, step in enumerate(steps):
        if slot.executor.migration is None:
            slot.executor.migrate(random_tree(rng, len(slot.query.sources), slot.executor.plan.edges), parallel)
        else:
            changed += bool(goes_on(slot))
        once = run(slot, step)
        moved = None if slot.executor.migration is None else slot.executor.migration.moved
        slot = reopened(slot, tmp_path)
        assert slot.version == number, "the state was lost"
        assert moved == (None if slot.executor.migration is None else slot.executor.migration.moved)
        check_regions(slot, slot.arena)
        if rng.random() < 0.3:
            run_again(slot, step, once)
        found += once
        slot.commit(number + 1)
    close(slot)
    assert sorted(found, key=repr) == expected
    assert changed


def states(slot: Slot) -> dict[str, list[tuple[int, ...]]]:
    """The live tuples of the intermediate SteMs, by span."""
    found = {}
    for stem in slot.executor.stems[len(slot.query.sources) :]:
        rows = np.arange(stem.rows.min_live, stem.built)
        rows = rows[stem.prober.live(rows, [s.prober for s in slot.executor.stems])]
        components = [column.values[rows].tolist() for column in stem.rows.components.values()]
        found[str(sorted(stem.rows.components))] = sorted(zip(*components, strict=True))
    return found


@STRATEGIES
@pytest.mark.parametrize("name", ["four", "selections", "ranges", "table"])
def test_a_state_is_what_it_would_have_been_from_the_start(name: str, parallel: bool) -> None:
    """Closure: at the end of a migration the states of the new plan have all live tuples, whether of old or new
    rows."""
    aliases = [s.alias for s in query(name).sources]
    rng, seen = random.Random(name), 0
    for _ in range(4):
        old, new = (random_tree(rng, len(aliases), Slot(query(name), options()).executor.plan.edges) for _ in range(2))
        slot = ready(name, Slot(query(name), options(pause_ms=0.0), tree=old))
        twin = ready(name, Slot(query(name), options(plan=new.text(aliases))))
        for number, step in enumerate(planned(name)[0][:-1]):
            if number == 2:
                slot.executor.migrate(new, parallel)
            elif slot.executor.migration is not None:
                goes_on(slot)
            for one in (slot, twin):
                run(one, step)
                one.commit(number + 1)
            if number > 2 and slot.executor.migration is None:
                assert states(slot) == states(twin)
                seen += any(states(slot).values())
    assert seen


def slot_with_state(pause: float, rows: int = 3000, tree: str = "mjoin") -> Slot:
    """A slot with rows of a chain, all live."""
    fine = Tuning(migration=MigrationTuning(chunk=100))
    slot = Slot(query("chain"), options(pause_ms=pause, check=False), tree=shape(tree, "abc"), tuning=fine)
    feed(slot, rows, 0)
    return slot


def feed(slot: Slot, rows: int, at: int) -> None:
    rng = np.random.default_rng(at)
    for name in "abc":
        k, x = rng.integers(0, 500, rows), rng.integers(0, 5, rows)
        columns = [
            pa.array(np.full(rows, at)).cast(pa.timestamp("us")),
            k,
            x,
            x,
            [f"s{v}" for v in rng.integers(0, 500, rows)],
        ]
        slot.feed(name, pa.record_batch(columns, names=["ts", "k", "x", "y", "s"]))
    slot.advance(dict.fromkeys("abc", at - LATENESS), at - LATENESS)
    slot.drain()
    slot.commit(slot.version + 1)


TREE = parse_tree("((a b) c)", "abc")


def test_a_large_state_is_moved_in_slices() -> None:
    """A step moves a chunk of rows and then reads the clock, which advances by a millisecond at every reading."""
    slot, ticks = slot_with_state(pause=5.0), iter(range(10**9))
    slot.executor.eddy.clock = lambda: next(ticks) / 1000
    slot.executor.migrate(TREE, parallel=False)
    moving, moved = slot.executor.migration, [0]
    assert moving is not None
    while not moving.is_ready:
        moving.step(0.005)
        moved.append(moving.moved)
    assert len(moved) > 10, "in one go"
    assert all(0 < more - before <= 500 for before, more in pairwise(moved))
    moving.flush()
    moving.commit(Cut(None, 0, None))
    slot.executor.change_plan()
    twin = slot_with_state(pause=5.0, tree="((a b) c)")
    assert states(slot) == states(twin) and states(slot)["[0, 1]"]


def test_what_comes_meanwhile_is_moved_before_the_plan_is_changed() -> None:
    slot = slot_with_state(pause=0.0, rows=500)
    slot.executor.migrate(TREE, parallel=False)
    for at in range(1, 30):
        if slot.executor.migration is None:
            break
        feed(slot, 20, at // 5)
        goes_on(slot)
    assert at > 5 and slot.executor.migration is None and slot.executor.plan.text == "((a b) c)"
    twin = slot_with_state(pause=0.0, rows=500, tree="((a b) c)")
    for again in range(1, at):
        feed(twin, 20, again // 5)
    assert states(slot) == states(twin)


def test_a_parallel_track_ends_when_no_old_row_lives() -> None:
    slot = slot_with_state(pause=50.0, rows=50)
    slot.executor.migrate(TREE, parallel=True)
    for at in range(1, 60):
        feed(slot, 5, at)
        if goes_on(slot):
            break
    # rows of time 0 live for 9 after the watermark (the window), and the watermark is behind by the lateness
    assert at == 9 + LATENESS + 1


@STRATEGIES
def test_it_can_be_given_up(parallel: bool) -> None:
    steps, expected = planned("four")
    slot, found = Slot(query("four"), options(pause_ms=0.0)), list[Row]()
    regions = slot.arena.regions
    for step in steps:
        slot.executor.migrate(parse_tree("((a b) (c d))", "abcd"), parallel)
        found += run(slot, step)
        slot.commit(slot.version + 1)
        slot.executor.give_up()
        check_regions(slot, slot.arena)
        assert slot.arena.regions - len(slot.arena.freed) == regions
        assert slot.executor.eddy.scope == whole(slot.executor.plan)
    assert sorted(found, key=repr) == expected and slot.executor.plan.tree == mjoin(4)


@STRATEGIES
@pytest.mark.parametrize("calls", [1, 3, 6])
def test_a_batch_that_fails_half_way_is_wound_back(parallel: bool, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure comes in the middle of a step, with packets in flight on both tracks."""
    steps, expected = planned("four")
    rng, found, failed = random.Random(calls), list[Row](), 0
    tuning = eager(2)
    slot = Slot(query("four"), options(pause_ms=0.0), tuning=tuning)
    for step in steps:
        if slot.executor.migration is None:
            slot.executor.migrate(random_tree(rng, 4, slot.executor.plan.edges), parallel)
        elif not goes_on(slot):
            left, serve = [calls], slot.executor.migration._track._serve

            def fails(queue: MetaQueue, left: list[int] = left, serve: Serve = serve) -> None:
                left[0] -= 1
                if left[0] == 0:
                    raise OSError("no space left")
                serve(queue)

            with monkeypatch.context() as patched:
                patched.setattr(slot.executor.migration._track, "_serve", fails)
                try:
                    run(slot, step)
                except OSError:
                    failed += 1
            slot.wind_back()
        found += run(slot, step)
        slot.commit(slot.version + 1)
    assert sorted(found, key=repr) == expected and failed


def test_what_both_plans_have_is_shared() -> None:
    """The state of (a b) stays, with another index, when its sibling changes."""
    aliases = [s.alias for s in query("four").sources]
    slot = Slot(query("four"), options(pause_ms=50.0), tree=parse_tree("(((a b) c) d)", aliases))
    for number, step in enumerate(planned("four")[0][:5]):
        run(slot, step)
        slot.commit(number + 1)
    kept = slot.executor.stems[4]
    assert kept.rows.components.keys() == {0, 1} and kept.built > kept.rows.min_live
    slot.executor.migrate(parse_tree("((a b) (c d))", aliases), parallel=False)
    slot.executor.migration.step(math.inf)  # type: ignore[union-attr]
    slot.executor.migration.commit(Cut(None, 0, None))  # type: ignore[union-attr]
    slot.executor.change_plan()
    assert slot.executor.stems[4] is kept and slot.executor.plan.text == "((a b) (c d))"
    check_regions(slot, slot.arena)


def test_it_leaves_a_record() -> None:
    slot = slot_with_state(pause=50.0, rows=200)
    slot.set_plan(TREE)
    decision = slot.executor.eddy.decisions.recent[-1]
    assert decision.kind == "migration" and decision.what == "(a b c) -> ((a b) c) by moving state"
    assert decision.measured["rows"] == 600 and decision.measured["tuples"] == slot.executor.stems[3].built
    assert slot.executor.eddy.decisions.counts["migration"] == 1


def test_its_course_is_told_and_taken_again() -> None:
    slot = slot_with_state(pause=0.0, rows=200)
    slot.set_plan(TREE)
    slot.executor.migrate(parse_tree("(a (b c))", "abc"), parallel=True)
    other = slot_with_state(pause=0.0, rows=200)
    course = slot.executor.course
    other.resume(course)
    assert other.executor.course == course and course.to is not None
    assert course.plan == "((a b) c)" and course.to.plan == "(a (b c))"


def test_every_tree_can_become_every_other() -> None:
    trees = [
        "(a b c d)",
        "((a b) c d)",
        "((a b) (c d))",
        "(((a b) c) d)",
        "(a (b (c d)))",
        "((a b c) d)",
        "(((b c) a) d)",
    ]
    slot = Slot(query("four"), options())
    steps, expected = planned("four")
    found = list[Row]()
    for version, step in enumerate(steps, 1):
        for one in trees:
            for other in trees:
                slot.set_plan(parse_tree(one, "abcd"))
                slot.set_plan(parse_tree(other, "abcd"))
        found += run(slot, step)
        slot.commit(version)
    assert sorted(found, key=repr) == expected
