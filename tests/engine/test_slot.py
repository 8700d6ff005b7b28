"""One slot: expiry loses no result, wind-back leaves no trace, and the state is exactly what may still join."""

from __future__ import annotations

import os
import random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.udf import udf
from eddyline.errors import JobError
from eddyline.settings import Settings
from tests.support.jobs import TIME, Job, Row, batch_of

W = "[RANGE 6 MICROSECONDS]"
QUERIES = {
    "join": f"SELECT a.x, b.x AS y FROM a {W}, b {W} WHERE a.k = b.k",
    "several keys": f"SELECT a.x, b.s FROM a {W}, b {W} WHERE a.k = b.k AND a.s = b.s",
    "three": f"SELECT a.x, b.x AS y, c.w FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.s = c.s AND a.x <= c.x",
    "range": f"SELECT a.x, b.x AS y FROM a {W}, b {W} WHERE a.x < b.x - 2",
    "bounds": "SELECT a.x, b.x AS y, c.x AS z FROM a, b, c WHERE a.k = b.k "
    "AND b.ts - a.ts BETWEEN INTERVAL '0' MICROSECOND AND INTERVAL '4' MICROSECOND "
    "AND ABS(b.ts - c.ts) <= INTERVAL '2' MICROSECOND",
    "table": f"SELECT a.x, t.x AS y, b.w FROM a {W}, t, b {W} WHERE a.k = t.k AND b.s = t.s",
    "self": f"SELECT p.x, q.x AS y FROM a {W} AS p, a {W} AS q WHERE p.k = q.k",
    "rows": f"SELECT a.x, b.x AS y FROM a [ROWS 5], b {W} WHERE a.k = b.k",
    "slide": "SELECT a.s, COUNT(*) AS n, SUM(b.x) AS sum, window_end() AS e "
    "FROM a [RANGE 8 MICROSECONDS SLIDE 4 MICROSECONDS], b [RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS] "
    "WHERE a.k = b.k GROUP BY a.s",
    "slide of rows": "SELECT COUNT(*) AS n, MAX(a.x) AS m, window_end() AS e FROM a [ROWS 4], "
    "b [RANGE 8 MICROSECONDS SLIDE 4 MICROSECONDS] WHERE a.k = b.k",
    "total": f"SELECT a.k, COUNT(*) AS n FROM a {W}, b {W} WHERE a.k = b.k GROUP BY a.k",
    "one": "SELECT a.x, a.w FROM a WHERE a.k > 0",
}
COLUMNS = "k x s:string w:words"
SETTINGS = [
    Settings(check=True),
    Settings(check=True, packet=1),
    Settings(check=True, packet=7, router="random", seed=1, reroute_every=1),
    Settings(check=True, input_batch=3, router="lottery", seed=2, reroute_every=10),
]


def made(name: str, settings: Settings | None = None) -> Job:
    select = QUERIES[name]
    names = [n for n in "abc" if f" {n} " in select or f" {n}," in select]
    tables = {"t": [(1, 1, "a", "p"), (2, 5, "b", None), (1, 7, None, "q")]} if " t," in select else {}
    return Job(select, settings, dict.fromkeys(names, 8), tables, **dict.fromkeys([*names, *tables], COLUMNS))


def some_rows(rng: random.Random, start: int, most: int = 12) -> list[Row]:
    return [
        (
            start + rng.randrange(8),
            rng.choice([0, 1, 2, None]),
            rng.randrange(5),
            rng.choice(["a", "b", None]),
            rng.choice(["p", "q", f"new {rng.randrange(99)}", None]),
        )
        for _ in range(rng.randrange(most))
    ]


def batch_for(job: Job, rng: random.Random, start: int) -> dict[str, list[Row]]:
    return {n: some_rows(rng, start) for n in job.schemas if n != "t"}


@pytest.mark.parametrize("name", QUERIES)
def test_expiry_drops_nothing_that_may_still_join(name: str) -> None:
    """Rows are out of order within the lateness, windows are small, and there are many batches: results are those of
    the definition."""
    for seed in range(4):
        rng, job = random.Random(seed), made(name)
        found = []
        for start in range(0, 80, 8):
            found += job.feed(**batch_for(job, rng, start))
        assert job.engine.counts.rows_late == 0
        assert sorted(found + job.end(), key=repr) == job.expected()
        if name not in ("total", "slide", "slide of rows"):
            assert job.engine.held.rows < job.engine.counts.rows_used


@pytest.mark.parametrize("name", QUERIES)
def test_wind_back_at_any_point_leaves_nothing_behind(name: str) -> None:
    """Before every batch another batch, half of one, or several batches are fed and undone."""
    for seed, settings in enumerate(SETTINGS):
        rng, job, twin = random.Random(seed), made(name, settings), made(name)
        found, wanted = [], []
        for start in range(0, 80, 8):
            before = job.engine.standing
            for _ in range(rng.randrange(3)):
                undo_something(job, rng, start + rng.choice([0, 0, 40]))
                assert job.engine.standing == before
            batch = batch_for(job, rng, start)
            found += job.feed(**batch)
            wanted += twin.feed(**batch)
            ours, theirs = job.engine.standing, twin.engine.standing
            assert ours.run == theirs.run and ours.watermark == theirs.watermark
            assert ours.held.rows == theirs.held.rows  # bytes may differ: a table that grew stays large
            assert ours.peak.rows == theirs.peak.rows
        assert sorted(found + job.end(), key=repr) == sorted(wanted + twin.end(), key=repr) == job.expected()


def undo_something(job: Job, rng: random.Random, start: int) -> None:
    doing = rng.choice(["batch", "feed", "fail", "twice"])
    batch = batch_for(job, rng, start)
    if doing == "batch":
        job.feed(**batch, commit=False, ended=rng.choice([(), ("a",)]))
    elif doing == "twice":
        job.feed(**batch, commit=False)
        job.feed(**batch_for(job, rng, start + 5), commit=False)
    elif doing == "feed":  # without `advance`
        for name, rows in batch.items():
            job.engine.slot.feed(name, job.needed(name, rows))
    else:
        good = [(name, batch_of(job.schemas[name], rows)) for name, rows in batch.items()]
        with pytest.raises(JobError):
            job.engine.batch([*good, ("a", pa.record_batch({"ts": pa.array([start], TIME)}))])
    job.engine.wind_back()


@pytest.mark.parametrize("settings", [*SETTINGS, Settings(check=True, packet=1000, input_batch=2)])
def test_a_batch_that_fails_in_the_middle_leaves_nothing_in_the_queues(settings: Settings) -> None:
    """A user function that breaks its contract stops the job while some tuples wait and others are in flight."""
    left = [0]

    @udf(returns=pa.bool_(), name="slot_breaks")
    def breaks(x: np.ndarray) -> np.ndarray:
        left[0] -= 1
        return x[:0] if left[0] == 0 else x >= 0

    select = (
        f"SELECT a.x, b.x AS y, c.x AS z FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.s = c.s AND slot_breaks(b.x)"
    )
    failed = waited = 0
    for fails_at in range(1, 12):
        rng, job = (
            random.Random(fails_at),
            Job(select, settings, dict.fromkeys("abc", 8), **dict.fromkeys("abc", COLUMNS)),
        )
        found = job.feed(**batch_for(job, rng, 0))
        slot, left[0] = job.engine.slot, fails_at
        rows, committed = [stem.built for stem in slot.executor.stems], slot.executor.eddy.number
        try:
            job.feed(**batch_for(job, rng, 8), commit=False)
        except JobError:
            failed += 1
            waited += any(queue.occupancy for queue in slot.executor.eddy.scheduler.queues.values())
        left[0] = 0
        job.engine.wind_back()
        assert not any(queue.occupancy or queue.scheduled for queue in slot.executor.eddy.scheduler.queues.values())
        assert slot.executor.eddy.scheduler.next() is None and slot.executor.eddy.scheduler.least_done() is None
        assert ([stem.built for stem in slot.executor.stems], slot.executor.eddy.number) == (rows, committed)
        assert not any(stem.waiting for stem in slot.executor.stems)
        for start in (8, 16):
            found += job.feed(**batch_for(job, rng, start))
        assert sorted(found + job.end(), key=repr) == job.expected()
    assert failed and (waited or settings.input_batch == 3)  # slices of 3 rows are served at once


def test_an_undone_first_batch_leaves_the_tables() -> None:
    job = Job("SELECT a.k FROM a, t WHERE a.k = t.k", tables={"t": [(1,), (2,)]}, a="k", t="k")
    assert job.feed(a=[(1, 1)], commit=False) == [(1,)]
    job.engine.wind_back()
    assert job.feed(a=[(1, 1), (1, 2)]) == [(1,), (2,)]


def test_a_table_whose_columns_are_not_needed_still_has_rows() -> None:
    job = Job("SELECT a.k FROM a, t", tables={"t": [(1,), (2,), (3,)]}, a="k", t="k")
    assert job.feed(a=[(1, 7)]) == [(7,), (7,), (7,)]
    counted = Job("SELECT COUNT(*) AS n FROM a, t", tables={"t": [(1,), (2,)]}, a="k", t="k")
    counted.feed(a=[(1, 7), (2, 7)])
    assert counted.end() == [(4,)]


def test_an_empty_table_joins_nothing() -> None:
    job = Job("SELECT a.k FROM a, t", tables={"t": []}, a="k", t="k")
    assert job.feed(a=[(1, 7)]) == []


def test_several_tables_and_a_table_twice() -> None:
    job = Job(
        "SELECT a.k, p.v, q.v AS w FROM a, t AS p, t AS q, u WHERE a.k = p.k AND p.v = q.k AND u.k = q.v",
        tables={"t": [(1, 2), (2, 3)], "u": [(3,), (3,)]}, a="k", t="k v", u="k",
    )  # fmt: skip
    assert job.feed(a=[(1, 1), (1, 2)]) == job.expected() == [(1, 2, 3), (1, 2, 3)]
    job.feed(a=[(100, 1)])
    assert job.engine.held.rows == 2 + 2, "the aliases of t share a SteM"


def test_a_self_join_counts_a_row_once_and_joins_it_with_itself() -> None:
    job = Job(QUERIES["self"], a=COLUMNS)
    assert job.feed(a=[(1, 1, 5, "", "")]) == [(5, 5)]
    assert job.feed(a=[(2, 1, 6, "", "")]) == [(5, 6), (6, 5), (6, 6)]
    counts = job.engine.counts
    assert (counts.rows_in, counts.rows_used, counts.rows_out) == (2, 2, 4)


def test_one_stream_alone_keeps_nothing() -> None:
    for select in ("SELECT a.k FROM a", "SELECT a.k FROM a [RANGE 1 HOUR]", "SELECT a.k FROM a, t WHERE a.k = t.k"):
        job = Job(select, tables={"t": [(1,)]} if "t" in select[10:] else {}, **dict.fromkeys(["a", "t"], "k"))
        for t in range(5):
            assert job.feed(a=[(t, 1)]) == [(1,)]
            assert job.engine.held.rows == ("t" in select[10:])


def test_nothing_that_only_a_filter_needs_is_kept() -> None:
    job = Job(f"SELECT a.k FROM a {W}, b {W} WHERE a.k = b.k AND a.s = 'x'", a="k s:string", b="k")
    job.feed(a=[(1, i, "x" * 1) for i in range(100)] + [(1, 5, "y" * 10_000)])
    assert job.engine.held.rows == 100
    assert job.engine.held.bytes < 100 * 80 + 3 * 16 * 256


def test_bounds_are_inclusive_at_both_ends() -> None:
    job = Job(f"SELECT a.k, b.k AS j FROM a {W}, b [RANGE 3 MICROSECONDS]", a="k", b="k")
    job.feed(a=[(0, 0)], b=[(0, 0)])
    rows = sorted(job.feed(a=[(3, 1)]) + job.feed(b=[(6, 1)]) + job.feed(a=[(9, 2), (10, 3)]), key=repr)
    assert rows == [(0, 1), (1, 0), (1, 1), (2, 1)] and rows == sorted(set(job.expected()) - {(0, 0)}, key=repr)


def test_never_is_never() -> None:
    job = Job("SELECT a.k FROM a, b WHERE a.k = b.k AND 1 = 2", a="k", b="k")
    assert job.feed(a=[(1, 1)], b=[(1, 1)]) == []
    assert job.engine.held.rows == 0 and job.engine.counts.rows_used == 2


def test_a_long_run_is_flat() -> None:
    """The state, its bytes and the memory of the host do not grow with the number of expired rows."""
    job = Job(
        "SELECT a.x, b.s FROM a [RANGE 3 MILLISECONDS], b [RANGE 3 MILLISECONDS] WHERE a.k = b.k AND a.s = b.s",
        Settings(),
        dict.fromkeys("ab", 500),
        a="k x s:string",
        b="k x s:string",
    )
    rng = np.random.default_rng(1)
    rows, memory, on_host = [], [], []
    fd = job.engine.slot.executor.stems[0].rows.times._arena._fd
    for start in range(0, 300_000, 1000):
        batches = {}
        for name in "ab":
            times = np.clip(start + np.arange(1000) + rng.integers(-200, 200, 1000), 0, None)
            keys = rng.permutation(np.arange(start, start + 1000))
            batches[name] = pa.record_batch(
                [pa.array(times, TIME), pa.array(keys), pa.array(keys), pa.array(keys).cast(pa.string())],
                schema=job.schemas[name],
            )
        job.engine.batch(list(batches.items()))
        rows.append(job.engine.held.rows)
        memory.append(job.engine.held.bytes)
        on_host.append(os.fstat(fd).st_blocks * 512)
    assert job.engine.counts.rows_late == 0 and job.engine.counts.rows_out > 200_000
    assert max(rows[100:]) <= 1.05 * max(rows[10:100]) <= 1.05 * 2 * 5000
    assert max(memory[100:]) <= 1.1 * max(memory[10:100])
    assert max(on_host[100:]) <= 1.1 * max(on_host[10:100])
    assert on_host[-1] < 2 * memory[-1]


def test_a_long_run_with_ever_new_dictionaries_is_flat() -> None:
    job = Job(f"SELECT a.w FROM a {W}, b {W} WHERE a.w = b.w", Settings(), a="w:words", b="w:words")
    memory = []
    for t in range(0, 2000, 20):
        rows = [(t + i % 20, f"word number {t * 10 + i}") for i in range(200)]
        job.feed(a=rows, b=rows)
        memory.append(job.engine.held.bytes)
    assert max(memory[50:]) <= 1.2 * max(memory[10:50])
