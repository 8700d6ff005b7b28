"""Rows leave the SteMs by groups: the executor goes on as if they had never come."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.slot import Slot
from eddyline.engine.split import groups_along
from eddyline.plan.spill_axis import SpillAxis
from eddyline.plan.tree import mjoin, parse_tree
from eddyline.protocol.attach import close, open_slot
from eddyline.settings import Settings
from lab.fuzz.trees import random_tree
from tests.support.jobs import batch_of, bound, schema
from tests.support.plan_world import QUERIES, TABLE, TABLE_ROWS, columns, options, planned, query, ready
from tests.support.regions import check_regions
from tests.support.slot_steps import Step, reopened, run, with_tables
from tests.support.spilling import group_of, may_spill

GROUPS = 3
WITHOUT_GROUP_BY = [name for name, text in QUERIES.items() if "GROUP BY" not in text and "ROWS" not in text]


def spill_axis(slot: Slot) -> SpillAxis:
    axis = slot.executor.spill_axis
    assert axis is not None
    return axis


def outside(slot: Slot, name: str, rows: pa.RecordBatch, groups: set[int]) -> pa.RecordBatch:
    """The rows of a stream that are in none of these groups. All its aliases place them alike, or are one."""
    for source, item in enumerate(slot.query.sources):
        if item.stream.name == name:
            mine = groups_along(spill_axis(slot), slot.executor.plan, source, rows)
            return rows.filter(pa.array(~np.isin(mine, list(groups))))
    return rows


def without(slot: Slot, step: Step, groups: set[int]) -> Step:
    rows = {name: outside(slot, name, rows, groups) for name, rows in step.rows.items()}
    return Step(rows, step.by_stream, step.watermark, step.newest, step.last)


def spilling(name: str, plan: str, folder: Path | None = None) -> Slot:
    settings = may_spill(options(plan=plan), GROUPS)
    return ready(name, Slot(query(name), settings) if folder is None else open_slot(query(name), settings, str(folder)))


def groups_in(slot: Slot) -> set[int]:
    """The groups that have rows in memory."""
    stems = slot.executor.source_stems
    return {g for s in stems for g in s.rows.groups(slice(s.rows.min_live, s.built)).tolist()}


@pytest.mark.parametrize("name", [name for name in WITHOUT_GROUP_BY if name != "self"])
def test_it_goes_on_as_if_forgotten_rows_had_never_come(name: str, tmp_path: Path) -> None:
    """After each of some batches, groups are forgotten. A twin never gets their rows; both give the same rows then."""
    steps, _ = planned(name)
    rng = random.Random(name)
    aliases = [s.alias for s in query(name).sources]
    for seed, when in enumerate((1, 3, 5)):
        plans = [random_tree(rng, len(aliases), spilling(name, "mjoin").executor.plan.edges) for _ in range(2)]
        slot = spilling(name, plans[0].text(aliases), tmp_path / str(seed))
        gone = {g for g in range(GROUPS) if rng.random() < 0.6}
        table = {"t": outside(slot, "t", batch_of(TABLE, TABLE_ROWS), gone)} if "t" in columns(name) else {}
        twin = with_tables(Slot(query(name), may_spill(options(plan=plans[1].text(aliases)), GROUPS)), table)
        for number, step in enumerate(steps[:-1]):
            once = run(slot, step)
            if rng.random() < 0.5:
                slot = reopened(slot, tmp_path / str(seed))
            mine = run(twin, without(twin, step, gone) if number < when else step)
            assert number < when or once == mine
            slot.commit(number + 1)
            twin.commit(number + 1)
            if number == when - 1:
                slot.forget(np.array(sorted(gone), np.int64))
                assert not groups_in(slot) & gone
                if rng.random() < 0.5:
                    slot.wind_back()  # what was forgotten before the batch stays forgotten
            check_regions(slot, slot.arena)
        close(slot)


def tuples_of(slot: Slot) -> list[Counter[tuple[int, ...]]]:
    """For each intermediate SteM, the times of the components of its live tuples."""
    found = []
    for stem in slot.executor.stems[len(slot.query.sources) :]:
        rows = np.arange(stem.rows.min_live, stem.built)
        rows = rows[stem.prober.live(rows, [s.prober for s in slot.executor.stems])]
        times = [
            slot.executor.stems[source].rows.times.values[column.values[rows]].tolist()
            for source, column in stem.rows.components.items()
        ]
        found.append(Counter(zip(*times, strict=True)))
    return found


def test_tuples_with_a_forgotten_row_leave_the_intermediate_states() -> None:
    steps, _ = planned("four")
    slot, twin = (spilling("four", "(((a b) c) d)") for _ in range(2))
    for number, step in enumerate(steps[:4]):
        run(slot, step)
        run(twin, without(twin, step, {0, 2}))
        slot.commit(number + 1)
        twin.commit(number + 1)
    before = [sum(some.values()) for some in tuples_of(slot)]
    slot.forget(np.array([0, 2]))
    assert tuples_of(slot) == tuples_of(twin)
    assert all(0 < sum(some.values()) < of for some, of in zip(tuples_of(slot), before, strict=True))
    for step in steps[4:-1]:
        assert run(slot, step) == run(twin, step)
        slot.commit(slot.version + 1)
        twin.commit(twin.version + 1)
        assert tuples_of(slot) == tuples_of(twin)


def combinations(slot: Slot) -> list[int]:
    """For each state of tuples that stand for several, for how many."""
    states = [stem for stem in slot.executor.stems[len(slot.query.sources) :] if stem.rows.carried is not None]
    return [
        int(s.rows.carried.gather(np.arange(s.rows.min_live, s.built)).weights.sum())
        for s in states
        if s.rows.carried is not None
    ]


@pytest.mark.parametrize(
    ("name", "plan"),
    [("two grouped", "((a)+ b)"), ("grouped", "((a b)+ c)"), ("grouped", "(((a)+ b) c)"), ("grouped", "(a (b c)+)")],
)
def test_tuples_that_stand_for_several_are_made_again(name: str, plan: str) -> None:
    steps, _ = planned(name)
    slot, twin = (spilling(name, plan) for _ in range(2))
    for number, step in enumerate(steps[:2]):
        run(slot, step)
        run(twin, without(twin, step, {0}))
        slot.commit(number + 1)
        twin.commit(number + 1)
    before = combinations(slot)
    slot.forget(np.array([0]))
    assert combinations(slot) == combinations(twin) != before and slot.executor.plan.text == plan
    check_regions(slot, slot.arena)


SELECT = "SELECT a.x FROM a [RANGE 99 MICROSECONDS], b [RANGE 99 MICROSECONDS], c [RANGE 99 MICROSECONDS] WHERE "
CHAIN = SELECT + "a.k = b.k AND b.x = c.x"
"""Rows of `c` stay in memory."""


def fed(slot: Slot, time: int, *keys: int) -> None:
    """A batch with a row for each key in each stream."""
    for name in "abc":
        slot.feed(name, batch_of(schema("k x"), [(time, key, key) for key in keys]))
    slot.advance(dict.fromkeys("abc", time), time)
    slot.drain()
    slot.commit(slot.version + 1)


def chain(**others: object) -> Slot:
    query = bound(CHAIN, **dict.fromkeys("abc", "k x"))
    return Slot(query, may_spill(Settings(check=True, **others), GROUPS))  # type: ignore[arg-type]


KEYS = [next(key for key in range(99) if group_of(key, GROUPS) == group) for group in range(GROUPS)]
"""A key of each group."""


def test_rows_of_a_source_that_follows_have_groups_of_their_own() -> None:
    slot = chain()
    fed(slot, 1, *KEYS)
    assert [spill_axis(slot).first(source) for source in range(3)] == [0, 0, GROUPS]
    slot.forget(np.array([0, 1]))
    assert [stem.held for stem in slot.executor.stems] == [1, 1, 3]
    assert slot.executor.built == [3, 3, 3], "a row that got another number is not counted twice"
    fed(slot, 2, *KEYS)
    assert slot.executor.built == [6, 6, 6] and [stem.held for stem in slot.executor.stems] == [4, 4, 6]


def test_nothing_moves_where_nothing_is_forgotten() -> None:
    slot = chain(plan="((a b) c)")
    fed(slot, 1, KEYS[0], KEYS[1])
    held = [(stem.rows.min_live, stem.built) for stem in slot.executor.stems]
    slot.forget(np.array([2]))
    assert [(stem.rows.min_live, stem.built) for stem in slot.executor.stems] == held
    slot.forget(np.array([0]))
    again = [(stem.rows.min_live, stem.built) for stem in slot.executor.stems]
    slot.forget(np.array([0]))
    assert [(stem.rows.min_live, stem.built) for stem in slot.executor.stems] == again != held


def test_a_migration_ends_when_rows_leave() -> None:
    slot = chain(plan="((a b) c)")
    fed(slot, 1, *KEYS)
    slot.executor.migrate(mjoin(3), parallel=True)
    slot.forget(np.array([], np.int64))
    assert slot.executor.migration is not None, "nothing has left"
    slot.forget(np.array([1]))
    assert slot.executor.migration is None and slot.executor.plan.tree == parse_tree("((a b) c)", "abc")
    check_regions(slot, slot.arena)
