"""The input batch: a fixed size stays; an adaptive one balances the fixed cost of a slice against its waste."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.input_batch import InputBatch
from eddyline.engine.tuning import DEFAULT, ENGINE
from eddyline.settings import Settings
from tests.support.jobs import Job, Row

LEAST, FIRST, MOST, STEP = ENGINE.least_input, ENGINE.first_input, ENGINE.most_input, ENGINE.input_step
CALL, PASS = DEFAULT.routing.call, ENGINE.pass_seconds


def rows_of(n: int, keys: int = 1) -> list[Row]:
    return [(i, i % keys) for i in range(n)]


def test_a_fixed_size_stays() -> None:
    made = InputBatch(100)
    for calls, passed in ((1, 10**9), (10**6, 0)):
        made.observe(100, calls * CALL, passed)
        assert made.rows == 100


@pytest.mark.parametrize("wanted", [LEAST, 200, 3000, 8192, 30_000, MOST])
def test_goes_to_the_size_at_which_both_costs_are_equal(wanted: int) -> None:
    """The waste of a slice grows with the square of its size; its fixed cost does not grow."""
    made, calls = InputBatch(), 10
    assert made.rows == FIRST
    for _ in range(12):
        made.observe(made.rows, calls * CALL, int(calls * CALL / PASS * (made.rows / wanted) ** 2))
    assert made.rows == pytest.approx(wanted, rel=0.05)


def test_follows_when_the_waste_changes() -> None:
    made, calls = InputBatch(), 10
    for wanted in (500, 20_000, 1000):
        for _ in range(20):
            made.observe(made.rows, calls * CALL, int(calls * CALL / PASS * (made.rows / wanted) ** 2))
        assert made.rows == pytest.approx(wanted, rel=0.1)


def test_changes_by_no_more_than_a_step_at_a_time_and_stays_within_limits() -> None:
    rng, made, last = np.random.default_rng(1), InputBatch(), FIRST
    for _ in range(300):
        made.observe(made.rows, int(rng.integers(1, 100)) * CALL, int(rng.choice([0, 10**4, 10**7, 10**11])))
        assert max(LEAST, int(last / STEP)) <= made.rows <= min(MOST, int(last * STEP))
        last = made.rows


def test_a_slice_that_wastes_nothing_grows_to_the_most() -> None:
    made, sizes = InputBatch(), [FIRST]
    for _ in range(5):
        made.observe(made.rows, 3 * CALL, 0)
        sizes.append(made.rows)
    assert sizes == sorted(sizes) and sizes[-1] == MOST and sizes[1] > FIRST


def test_one_odd_slice_changes_less_than_many() -> None:
    odd, many = InputBatch(), InputBatch()
    for made in (odd, many):
        for _ in range(10):
            made.observe(made.rows, 10 * CALL, int(10 * CALL / PASS * (made.rows / 4000) ** 2))
    odd.observe(odd.rows, 10 * CALL, int(10 * CALL / PASS * (odd.rows / 1000) ** 2))
    for _ in range(10):
        odd.observe(odd.rows, 10 * CALL, int(10 * CALL / PASS * (odd.rows / 4000) ** 2))
        many.observe(many.rows, 10 * CALL, int(10 * CALL / PASS * (many.rows / 1000) ** 2))
    assert odd.rows == pytest.approx(4000, rel=0.1) and many.rows == pytest.approx(1000, rel=0.1)


def slices(job: Job) -> list[list[int]]:
    """The number of rows of each source that are built in each slice, from now on."""
    seen: list[list[int]] = []
    observe, stems, last = job.engine.slot.executor.input_batch.observe, job.engine.slot.executor.stems, [0] * 9

    def noted(rows: int, fixed: float, passed: int) -> None:
        now = [stem.built for stem in stems]
        seen.append([b - a for a, b in zip(last, now, strict=False)])
        assert sum(seen[-1]) == rows
        last[: len(now)] = now
        observe(rows, fixed, passed)

    job.engine.slot.executor.input_batch.observe = noted
    return seen


def test_a_slice_has_the_same_share_of_every_source() -> None:
    job = Job("SELECT a.k FROM a, b WHERE a.k = b.k", Settings(input_batch=30, check=True), a="k", b="k")
    seen = slices(job)
    job.feed(a=rows_of(200, 200), b=rows_of(100, 100))
    assert len(seen) == 10 and all(taken == [20, 10] for taken in seen)
    seen.clear()
    job.feed(a=[(1000 + i, i) for i in range(45)])
    assert seen == [[23, 0], [22, 0]]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (Settings(input_batch=7), 7),
        (Settings(packet=5), 5),
        (Settings(packet=5, input_batch=50), 50),
        (Settings(), FIRST),
    ],
)
def test_how_many_rows_are_taken_in_at_a_time(settings: Settings, wanted: int) -> None:
    job = Job("SELECT a.k FROM a", settings, a="k")
    seen = slices(job)
    assert job.engine.slot.executor.input_batch.rows == wanted
    job.feed(a=rows_of(100))
    assert (job.engine.slot.executor.input_batch.rows == wanted) == (wanted != FIRST)
    assert sum(n for [n] in seen) == 100 and max(n for [n] in seen) <= wanted
    assert len(seen) == -(-100 // wanted)


def test_a_small_window_makes_slices_small_and_no_window_leaves_them_large() -> None:
    """Probes of a slice pass over the rows that were built with the slice: over many if all have one key."""
    for keys, window in ((4, "[RANGE 5 MICROSECONDS]"), (100_000, "")):
        job = Job(f"SELECT COUNT(*) AS n FROM a {window}, b {window} WHERE a.k = b.k", Settings(), a="k", b="k")
        rng, seen = np.random.default_rng(1), slices(job)
        for start in range(0, 60_000, 20_000):
            times = pa.array(np.arange(start, start + 20_000), pa.timestamp("us"))
            batch = pa.record_batch([times, pa.array(rng.integers(0, keys, 20_000))], schema=job.schemas["a"])
            job.engine.batch([("a", batch), ("b", batch)])
        sizes = [sum(taken) for taken in seen]
        assert sum(sizes) == 120_000
        assert max(sizes) > 30_000 if keys > 4 else np.mean(sizes[1:]) < 4096


def test_how_the_input_is_cut_changes_no_row() -> None:
    found = []
    for rows in (1, 2, 7, 50, None):
        job = Job("SELECT a.k, b.k AS j FROM a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS] WHERE a.k = b.k",
                  Settings(input_batch=rows, check=True), a="k", b="k")  # fmt: skip
        got = job.feed(a=rows_of(60, 7), b=rows_of(45, 5)) + job.feed(a=[(61, 3)], b=[(58, 3), (61, 3)])
        assert sorted(got, key=repr) == job.expected()
        found.append(sorted(got, key=repr))
    assert found[1:] == found[:-1]
