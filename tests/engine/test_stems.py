"""Aliases that share a SteM: the same results and counts as with a SteM for each alias, and half of the rows."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eddyline.engine.slot import Slot
from eddyline.engine.split import Shipment
from eddyline.engine.tuning import DEFAULT
from eddyline.errors import InternalError
from eddyline.plan.tree import parse_tree
from eddyline.protocol.attach import close, open_slot, save
from eddyline.settings import Settings
from tests.support.jobs import Job, Row, batch_of, bound, schema, tuples

APART = replace(DEFAULT, engine=replace(DEFAULT.engine, shares_stems=False))
W = "[RANGE 9 MICROSECONDS]"
COLUMNS = "k x"
QUERIES = {
    "by key": f"SELECT a.x, b.x AS y FROM s {W} AS a, s {W} AS b WHERE a.k = b.k",
    "first shorter": f"SELECT a.x, b.x AS y FROM s [RANGE 2 MICROSECONDS] AS a, s {W} AS b WHERE a.k = b.k",
    "one before": f"SELECT a.x, b.x AS y FROM s {W} AS a, s {W} AS b WHERE a.k = b.k AND b.ts < a.ts",
    "crossed": f"SELECT a.x, b.x AS y FROM s {W} AS a, s {W} AS b WHERE a.k = b.x AND a.x = b.k",
    "by order": f"SELECT a.x, b.x AS y FROM s {W} AS a, s {W} AS b WHERE a.x < b.x AND a.k <> b.k",
    "three": f"SELECT a.x, b.k, c.x AS y FROM s {W} AS a, s {W} AS b, s {W} AS c WHERE a.k = b.k AND b.k = c.k",
    "another": f"SELECT a.x, b.x AS y, r.x AS z FROM s {W} AS a, r {W}, s {W} AS b WHERE a.k = r.k AND b.k = r.k "
    "AND a.x > 0 AND b.x > 0",
    "groups": "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS t FROM s [RANGE 8 MICROSECONDS SLIDE 4 MICROSECONDS] AS a, "
    "s [RANGE 8 MICROSECONDS SLIDE 4 MICROSECONDS] AS b WHERE a.k = b.k GROUP BY a.k",
}
PLANS = {"three": ["(a b c)", "((a b) c)", "(a (b c))"], "another": ["(a r b)", "((a b) r)", "((a r) b)"]}


def rows_at(rng: random.Random, start: int, count: int) -> list[Row]:
    """Rows, some with a NULL, whose times are not in order."""
    return [(start + rng.randrange(4), rng.choice([None, 1, 1, 2, 3]), rng.randrange(-1, 4)) for _ in range(count)]


@pytest.mark.parametrize("name", QUERIES)
def test_the_same_results_and_fewer_rows(name: str) -> None:
    for seed in range(3):
        rng = random.Random(f"{name} {seed}")
        settings = Settings(check=True, seed=seed, input_batch=rng.choice([None, 1, 3]), packet=rng.choice([None, 2]))
        job, apart = (
            Job(QUERIES[name], settings, {"s": 4, "r": 4}, tuning=t, s=COLUMNS, r=COLUMNS) for t in (DEFAULT, APART)
        )
        found = list[Row]()
        for start in range(0, 40, 4):
            streams = [s for s in "sr" if any(item.stream.name == s for item in job.query.sources)]
            if rng.random() < 0.4:
                job.feed(commit=False, **{s: rows_at(rng, start, 9) for s in streams})
                job.engine.wind_back()
            if name in PLANS:
                tree = parse_tree(rng.choice(PLANS[name]), [s.alias for s in job.query.sources])
                job.engine.slot.set_plan(tree)
                apart.engine.slot.set_plan(tree)
            rows = {s: rows_at(rng, start, 6) for s in streams}
            found += job.feed(**rows)
            apart.feed(**rows)
            assert job.engine.held.rows <= apart.engine.held.rows
        assert sorted([*found, *job.end()]) == sorted(job.expected())
        stems = job.engine.slot.executor.source_stems
        assert len({id(stem.rows) for stem in stems}) == len(stems) - (2 if name == "three" else 1)
        assert job.engine.held.bytes < apart.engine.peak.bytes


@pytest.mark.parametrize("slots", [1, 3])
def test_errors_count_for_each_alias(slots: int) -> None:
    select = f"SELECT a.x FROM s {W} AS a, s {W} AS b WHERE a.k // a.x = b.k // b.x AND 1 // a.k = 1 AND 1 // b.k = 1"
    counts = []
    for tuning in (DEFAULT, APART):
        job = Job(select, Settings(slots=slots), tuning=tuning, s=COLUMNS)
        job.feed(s=[(1, 1, 0), (2, 0, 0), (3, 1, 1), (4, 1, 1)])
        counts.append(job.engine.counts.expression_errors)
    assert counts[0] == counts[1] > 0


def slot_of(folder: Path | None, owners: tuple[int, ...] = (0, 0)) -> Slot:
    query, settings = bound(QUERIES["by key"], s=COLUMNS), Settings(check=True, memory=1 << 40, groups=3)
    if folder is None:
        return Slot(query, settings, owners=owners)
    return open_slot(query, settings, str(folder), owners=owners)


def fed(slot: Slot, rows: list[Row], watermark: int) -> list[Row]:
    slot.feed("s", batch_of(schema(COLUMNS), rows))
    slot.advance({"s": watermark}, watermark)
    return tuples(slot.drain())


def test_groups_leave_and_other_processes_attach(tmp_path: Path) -> None:
    """A twin has a SteM for each alias, and the same happens to it."""
    rng = random.Random(5)
    one, two = slot_of(tmp_path), slot_of(None, ())
    for number in range(1, 12):
        rows = rows_at(rng, 4 * number, 8)
        assert fed(one, rows, 4 * number - 4) == fed(two, rows, 4 * number - 4)
        if rng.random() < 0.6:
            assert save(one)
            close(one)
            one = slot_of(tmp_path)
        if rng.random() < 0.3:
            one.wind_back()
            two.wind_back()
            continue
        one.commit(number)
        two.commit(number)
        if rng.random() < 0.5:
            groups = np.array([rng.randrange(3)])
            assert one.forget(groups) == two.forget(groups)
        assert sum(part.state_rows for part in one.executor.parts) * 2 == sum(
            part.state_rows for part in two.executor.parts
        )
        assert one.accounts is not None and two.accounts is not None
        assert one.accounts.table()["rows"].tolist() == two.accounts.table()["rows"].tolist()
        assert one.accounts.table()["bytes"].sum() * 2 <= two.accounts.table()["bytes"].sum() + 6
    close(one)


def test_an_arena_of_a_slot_that_shared_in_another_way_is_not_used(tmp_path: Path) -> None:
    for before, now in ((((0, 0)), ()), ((), (0, 0))):
        slot = slot_of(tmp_path, before)
        fed(slot, [(1, 1, 1)], 0)
        slot.commit(1)
        assert save(slot)
        close(slot)
        other = slot_of(tmp_path, now)
        assert other.version == 0 and other.state_rows == 0
        close(other)


def test_a_split_that_gives_aliases_other_rows_is_an_error() -> None:
    slot, batch = slot_of(None), batch_of(schema(COLUMNS), [(1, 1, 1), (2, 1, 1)])
    some = np.array([True, False])
    slot.receive(Shipment("s", 0, batch, {0: some, 1: some.copy()}))
    assert slot.executor.stems[1].waiting == 1
    with pytest.raises(InternalError, match="sources 0 and 1 share a SteM and got different rows"):
        slot.receive(Shipment("s", 0, batch, {0: some, 1: None}))


def test_a_table_is_kept_once() -> None:
    select = f"SELECT s.x, t.x AS y, u.x AS z FROM s {W}, t, t AS u WHERE s.k = t.k AND t.k = u.k"
    table = [(1, 5), (1, 6), (2, 7)]
    job = Job(select, tables={"t": table}, s=COLUMNS, t=COLUMNS)
    assert sorted([*job.feed(s=[(1, 1, 0), (2, 2, 1)]), *job.end()]) == sorted(job.expected())
    assert job.engine.slot.executor.plan.owners == (0, 1, 1)
    assert job.engine.slot.executor.source_stems[2].nbytes == 0
