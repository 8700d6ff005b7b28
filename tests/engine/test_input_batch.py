"""The input batch: a fixed size stays, an adaptive one balances what a slice costs anyway with what it wastes."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.input_batch import BALANCE, CALL, LEAST, MOST, PASS, InputBatch
from eddyline.settings import Settings
from jobs import Job, Row


def rows_of(n: int, keys: int = 1) -> list[Row]:
    return [(i, i % keys) for i in range(n)]


def test_a_fixed_size_stays() -> None:
    made = InputBatch(100)
    for calls, passed in ((1, 10**9), (10**6, 0)):
        made.observe(100, calls, passed)
        assert made.rows == 100


def test_begins_with_the_most() -> None:
    assert InputBatch().rows == MOST


def test_a_slice_that_wastes_too_much_is_made_smaller_to_where_both_costs_are_equal() -> None:
    made = InputBatch()
    rows, calls, passed = 40_000, 10, 100_000_000
    made.observe(rows, calls, passed)
    assert made.rows == int(rows * math.sqrt(calls * CALL / (passed * PASS)))
    # what a row wastes grows with the slice, what it costs anyway falls: at the new size they are equal
    fixed, wasted = calls * CALL, passed * PASS * (made.rows / rows) ** 2
    assert fixed == pytest.approx(wasted, rel=0.01)
    before = made.rows
    made.observe(before, calls, int(fixed / PASS))
    assert made.rows == before


def test_a_slice_that_wastes_nothing_is_doubled_up_to_the_most() -> None:
    made = InputBatch()
    made.observe(MOST, 1, 10**12)
    assert made.rows == LEAST
    sizes = []
    for _ in range(30):
        made.observe(made.rows, 3, 0)
        sizes.append(made.rows)
    assert sizes == [min(LEAST * 2**i, MOST) for i in range(1, 31)]


def test_a_slice_that_was_not_full_says_nothing_about_a_larger_one() -> None:
    made = InputBatch()
    made.observe(MOST, 1, 10**12)
    made.observe(made.rows // 4, 3, 0)
    assert made.rows == LEAST


def test_what_is_about_balanced_stays() -> None:
    made = InputBatch()
    made.observe(MOST, 10, int(10 * CALL / PASS * 100))
    rows = made.rows
    for share in (1 / BALANCE + 0.01, 1.0, BALANCE - 0.01):
        made.observe(rows, 10, int(10 * CALL / PASS * share))
        assert made.rows == rows


def test_never_smaller_than_the_least() -> None:
    made = InputBatch()
    for _ in range(5):
        made.observe(made.rows, 1, 10**12)
        assert made.rows == LEAST


def slices(job: Job) -> list[list[int]]:
    """How many rows of each source are built in each slice, from now on."""
    seen: list[list[int]] = []
    observe, stems, last = job.engine.slot.input_batch.observe, job.engine.slot.stems, [0] * 9

    def noted(rows: int, calls: int, passed: int) -> None:
        now = [stem.rows for stem in stems]
        seen.append([b - a for a, b in zip(last, now, strict=False)])
        assert sum(seen[-1]) == rows
        last[: len(now)] = now
        observe(rows, calls, passed)

    job.engine.slot.input_batch.observe = noted
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
        (Settings(), MOST),
    ],
)
def test_how_many_rows_are_taken_in_at_a_time(settings: Settings, wanted: int) -> None:
    job = Job("SELECT a.k FROM a", settings, a="k")
    seen = slices(job)
    job.feed(a=rows_of(100))
    assert job.engine.slot.input_batch.rows == wanted
    assert sum(n for [n] in seen) == 100 and max(n for [n] in seen) <= wanted
    assert len(seen) == -(-100 // wanted)


def test_a_small_window_makes_slices_small_and_no_window_leaves_them_large() -> None:
    """Rows that are built with a slice are passed over by the probes of that slice: many if all have one key."""
    for keys, window in ((4, "[RANGE 5 MICROSECONDS]"), (100_000, "")):
        job = Job(f"SELECT COUNT(*) AS n FROM a {window}, b {window} WHERE a.k = b.k", Settings(), a="k", b="k")
        rng, seen = np.random.default_rng(1), slices(job)
        for start in range(0, 60_000, 20_000):
            times = pa.array(np.arange(start, start + 20_000), pa.timestamp("us"))
            batch = pa.record_batch([times, pa.array(rng.integers(0, keys, 20_000))], schema=job.schemas["a"])
            job.engine.batch([("a", batch), ("b", batch)])
        sizes = [sum(taken) for taken in seen]
        assert sum(sizes) == 120_000
        assert sizes == [40_000] * 3 if keys > 4 else np.mean(sizes[1:]) < 4096


def test_how_the_input_is_cut_changes_no_row() -> None:
    found = []
    for rows in (1, 2, 7, 50, None):
        job = Job("SELECT a.k, b.k AS j FROM a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS] WHERE a.k = b.k",
                  Settings(input_batch=rows, check=True), a="k", b="k")  # fmt: skip
        got = job.feed(a=rows_of(60, 7), b=rows_of(45, 5)) + job.feed(a=[(61, 3)], b=[(58, 3), (61, 3)])
        assert sorted(got, key=repr) == job.expected()
        found.append(sorted(got, key=repr))
    assert found[1:] == found[:-1]
