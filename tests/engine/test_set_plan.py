"""A change of the plan between batches changes nothing else: neither the results, nor wind-back, nor snapshots."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.slot import Slot
from eddyline.errors import InternalError
from eddyline.plan.tree import mjoin, parse_tree
from eddyline.protocol.attach import close, open_slot, save
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import Settings
from eddyline.state import view
from eddyline.state.builds import Builds
from eddyline.testing.oracle import Oracle
from lab.fuzz.generate import generate
from lab.fuzz.main import case_seed
from lab.fuzz.run import check
from lab.fuzz.trees import random_tree
from tests.support.jobs import Job, Row, batch_of, bound, schema, tuples
from tests.support.plan_world import (
    COLUMNS,
    QUERIES,
    TABLE,
    TABLE_ROWS,
    W,
    columns,
    options,
    other_plan,
    planned,
    query,
    ready,
)
from tests.support.properties import examples
from tests.support.regions import check_regions
from tests.support.slot_steps import Step, run, run_twice


@pytest.mark.parametrize("router", ["auto", "random"])
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_the_same_whatever_the_plans(name: str, router: str) -> None:
    """The plan changes before each batch, which is run, wound back, and run again."""
    steps, expected = planned(name)
    rng, found, shapes = random.Random(name + router), [], set()
    slot = ready(name, Slot(query(name), options(router=router, packet=rng.choice([None, 1, 3]))))
    for step in steps:
        other_plan(rng, slot)
        shapes.add(slot.executor.plan.text)
        check_regions(slot, slot.arena)
        found += run_twice(slot, step)
    assert sorted(found, key=repr) == expected and expected
    assert len(shapes) > 2


def test_a_change_alone_gives_no_row_and_cannot_be_wound_back_to_before_it() -> None:
    steps, _ = planned("selections")
    slot = Slot(query("selections"), options())
    for step in steps[:4]:
        run(slot, step)
        slot.commit(slot.version + 1)
    held = [(stem.built, stem.rows.min_live) for stem in slot.executor.stems]
    slot.set_plan(parse_tree("((a b) c)", "abc"))
    assert slot.drain() == [] and [(stem.built, stem.rows.min_live) for stem in slot.executor.stems[:3]] == held
    made = slot.executor.stems[3].built
    assert made > 0 and slot.executor.stems[3].rows.components.keys() == {0, 1}
    slot.wind_back()
    assert slot.executor.plan.text == "((a b) c)" and slot.executor.stems[3].built == made
    slot.set_plan(mjoin(3))
    assert len(slot.executor.stems) == 3 and slot.executor.plan.text == "(a b c)"
    check_regions(slot, slot.arena)


def test_what_a_tree_has_is_what_it_would_have_had_from_the_start() -> None:
    """The live tuples of an intermediate SteM are the same whether they were made at once or as rows arrived."""
    steps, _ = planned("selections")
    tree = "((b c) a)"
    old, new = Slot(query("selections"), options(plan=tree)), Slot(query("selections"), options())
    for step in steps[:5]:
        for slot in (old, new):
            run(slot, step)
            slot.commit(slot.version + 1)
    new.set_plan(parse_tree(tree, "abc"))
    assert live_tuples(old) == live_tuples(new) != []


def live_tuples(slot: Slot) -> list[tuple[int, ...]]:
    stem = slot.executor.stems[3]
    rows = np.arange(stem.rows.min_live, stem.built)
    rows = rows[stem.prober.live(rows, [s.prober for s in slot.executor.stems])]
    return sorted(zip(*(column.values[rows].tolist() for column in stem.rows.components.values()), strict=True))


def test_regions_are_used_again_and_state_does_not_grow() -> None:
    steps, _ = planned("four")
    slot, rng = Slot(query("four"), options()), random.Random(1)
    for step in steps[:6]:
        run(slot, step)
        slot.commit(slot.version + 1)
    trees = [random_tree(rng, 4, slot.executor.plan.edges) for _ in range(6)]
    slot.set_plan(trees[-1])  # so that every round begins in the same state
    used = []
    for _ in range(4):
        for tree in trees:
            slot.set_plan(tree)
            check_regions(slot, slot.arena)
        used.append((slot.arena.regions, slot.state_bytes, slot.state_rows))
    assert used[1:] == used[:-1]


def test_an_index_that_is_made_late_does_not_count_what_expired_before() -> None:
    """Expired rows do not count, however many there were: a job must not stop for memory that it does not use."""
    text = f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.x = c.x"
    wide = bound(text, a="k x", b="k x", c="k x")
    slot, rows = Slot(wide, options()), 20_000
    times = np.arange(rows)
    for name in "abc":
        slot.feed(name, pa.record_batch([pa.array(times, pa.timestamp("us")), *[pa.array(times)] * 2], schema("k x")))
    slot.advance(dict.fromkeys("abc", rows), rows)
    slot.commit(1)
    slot.set_plan(parse_tree("((a b) c)", "abc"))
    before = slot.state_bytes
    slot.set_plan(mjoin(3))
    assert slot.state_rows < 100 and slot.state_bytes < before + 2**14


def test_errors_are_not_counted_again() -> None:
    """Errors of a user function are counted when a row is first evaluated, not when tuples are made again."""
    text = f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.k = c.k AND set_plan_fails(a.x)"
    job = Job(text, options(plan="mjoin"), a="k x", b="k x", c="k x")
    job.feed(a=[(1, 1, 1), (2, 1, 2)], b=[(1, 1, 1)])
    slot = job.engine.slot
    before = slot.errors.count, slot.errors.first
    assert before[0] >= 2
    for tree in ("((a b) c)", "((b c) a)", "((a c) b)"):
        slot.set_plan(parse_tree(tree, "abc"))
        assert (slot.errors.count, slot.errors.first) == before
    assert job.feed(c=[(3, 1, 1)]) == [] == job.expected()


def visit(folder: str, name: str, committed: int, before: str, seed: int, step: Step) -> list[Row]:
    """The work of one task: attach, commit or wind back the batch of the last task, perhaps change the plan, run a
    batch, save."""
    rng = random.Random(seed)
    slot = ready(name, open_slot(query(name), options(), folder))
    assert slot.version == committed, "the state was lost"
    check_regions(slot, slot.arena)
    if before == "commit":
        slot.commit(committed + 1)
    elif before == "wind back":
        slot.wind_back()
    if before != "wind back" and rng.random() < 0.7:
        other_plan(rng, slot)
        check_regions(slot, slot.arena)
    rows = run(slot, step)
    assert save(slot)
    close(slot)
    return rows


@pytest.fixture(scope="module")
def other_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", QUERIES)
def test_a_changed_plan_goes_from_process_to_process(
    name: str, other_process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """The slot is saved before a commit; another process then commits the batch, or winds it back and runs it again."""
    steps, expected = planned(name)
    rng, folder, found = random.Random(name), str(tmp_path / "slot"), []
    before, committed = "", 0
    for step in steps:
        tried: list[list[Row]] = []
        while not tried or before == "wind back":
            task = (folder, name, committed, before, rng.randrange(999), step)
            there = rng.random() < 0.4
            tried.append(other_process.submit(visit, *task).result() if there else visit(*task))
            committed += before == "commit"
            before = rng.choice(["commit", "commit", "wind back"])
        assert all(rows == tried[0] for rows in tried)
        found += tried[0]
    assert sorted(found, key=repr) == expected


def test_attached_it_has_the_plan_it_had_and_goes_to_the_one_that_is_asked_for(tmp_path: Path) -> None:
    steps, _ = planned("chain")
    for plan, to in (("auto", None), ("((a b) c)", None), ("mjoin", "(a b c)"), ("((b c) a)", "((b c) a)")):
        folder = str(tmp_path / plan)
        slot = open_slot(query("chain"), options(), folder)
        run(slot, steps[0])
        slot.commit(1)
        slot.set_plan(parse_tree("((a b) c)", "abc"))
        assert save(slot)
        close(slot)
        slot = open_slot(query("chain"), options(plan=plan), folder)
        assert slot.version == 1 and slot.executor.plan.text == "((a b) c)"
        slot.replan()
        assert (slot.executor.course.to and slot.executor.course.to.plan) == to
        check_regions(slot, slot.arena)
        close(slot)


def test_aliases_that_are_not_plain_are_attached_to(tmp_path: Path) -> None:
    odd = bound(
        'SELECT "x y".k FROM a AS "x y", b AS "(", c WHERE "x y".k = "(".k AND c.k = "(".k', a="k", b="k", c="k"
    )
    slot = open_slot(odd, options(), str(tmp_path))
    slot.commit(1)
    slot.set_plan(parse_tree('(("x y" "(") c)', [s.alias for s in odd.sources]))
    assert save(slot)
    close(slot)
    slot = open_slot(odd, options(), str(tmp_path))
    assert (slot.version, slot.executor.plan.text) == (1, '(("x y" "(") c)')
    close(slot)


@pytest.mark.parametrize("name", ["chain", "table", "rows", "slide", "slide of rows", "selections"])
def test_a_slot_is_made_again_with_another_plan(name: str) -> None:
    """As from a log: a new slot with a plan of its own gets the live rows and the small state of an old slot."""
    steps, expected = planned(name)
    aliases = [s.alias for s in query(name).sources]
    for seed in range(3):
        rng, found = random.Random(seed), []
        old = ready(name, Slot(query(name), options()))
        for step in steps[:5]:
            found += run(old, step)
            old.commit(old.version + 1)
        tree = random_tree(rng, len(aliases), old.executor.plan.edges).text(aliases)
        new = Slot(query(name), options(plan=tree))
        new.restore_durable(old.durable(), old.durable())
        if "t" in columns(name):
            new.feed("t", batch_of(TABLE, TABLE_ROWS))
        for step in steps[:5]:
            for stream, rows in step.rows.items():
                new.feed(stream, rows)
        new.load(steps[4].by_stream, steps[4].watermark, 5)
        assert new.version == 5 and new.drain() == [] and new.errors.count == 0
        for step in steps[5:]:
            once = run(new, step)
            new.wind_back()
            assert run(new, step) == once
            found += once
            new.commit(new.version + 1)
            other_plan(rng, new)
        assert sorted(found, key=repr) == expected


SCRIPT = """
CREATE STREAM a USING parquet OPTIONS (path 'a') TIMESTAMP BY ts;
CREATE STREAM b USING parquet OPTIONS (path 'b') TIMESTAMP BY ts;
CREATE STREAM c USING parquet OPTIONS (path 'c') TIMESTAMP BY ts;
"""


@pytest.mark.parametrize("name", ["chain", "slide", "rows", "selections"])
def test_a_job_goes_on_from_its_checkpoint_with_another_plan(name: str, tmp_path: Path) -> None:
    """The plan and the number of slots may differ from those of the run before."""
    rng = random.Random(name)
    for stream in "abc":
        (tmp_path / stream).mkdir()
        rows = [(i, i % 3, rng.randrange(5), i % 4, rng.choice("ab")) for i in range(24)]
        pq.write_table(pa.Table.from_batches([batch_of(COLUMNS, rows)]), tmp_path / stream / "0.parquet")
    text = SCRIPT.replace("path '", f"path '{tmp_path}/") + QUERIES[name] + ";"
    runs = {
        "one": [("mjoin", 1, None)],
        "two": [("((a b) c)", 1, 3), ("(a (c b))", 2, 3), ("auto", 1, 3), ("mjoin", 1, None)],
    }
    found: dict[str, list[Row]] = {}
    for checkpoint, parts in runs.items():
        batches: list[pa.RecordBatch] = []
        for plan, slots, stop in parts:
            chosen = Settings(batch_rows=4, plan=plan, slots=slots, check=True)
            job = prepare(text, sink=CallbackSink(batches.append), seed=0)
            runner = LocalRunner(job, chosen, str(tmp_path / checkpoint))
            summary = runner.run(stop=lambda now=runner.reporter, after=stop: now.progress().batches == after)
            assert summary.stopped == (stop is not None)
        found[checkpoint] = tuples(batches)
    assert found["one"] == found["two"] != []


def with_plans(seed: int) -> str | None:
    """The difference that plans make to the results of a case of the fuzzer, by DuckDB; None if there is none."""
    case, tries = generate(case_seed(seed, 0)), 1
    while len(case.select.sources) < 3:
        case, tries = generate(case_seed(seed, tries)), tries + 1
    others = {k: v for k, v in case.settings.items() if k != "durable"}
    return check(replace(case, settings=others | {"migrate": seed}), Oracle())


@given(st.integers(0, 10**6))
@examples(15)
def test_random_queries_with_random_plans(seed: int) -> None:
    assert with_plans(seed) is None


def test_planted_a_tuple_that_is_built_too_late_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without their numbers, rows that are joined into tuples at a change match each other twice."""

    class Numberless(Builds):
        def before(self, numbers: np.ndarray) -> np.ndarray:
            return np.full(numbers.size, np.iinfo(np.int64).max)

    monkeypatch.setattr(view, "Builds", Numberless)
    with pytest.raises((AssertionError, InternalError)):
        for name in ("chain", "selections", "four"):
            test_rows_are_the_same_whatever_the_plans(name, "auto")
