"""Batches on one slot: the counts, when results come out, and every type of key and payload."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal as D

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import InternalError, JobError
from eddyline.settings import Settings
from tests.support.jobs import TIME, Job, batch_of

EPOCH = datetime(1970, 1, 1)


def at(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


# Counts


def test_every_row_is_used_late_or_dead() -> None:
    rng = random.Random(3)
    job = Job(
        "SELECT a.k FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS] WHERE a.k = b.k",
        None,
        {"a": 3},
        a="k",
        b="k",
    )
    fed = late = dead = out = 0
    for _ in range(40):
        batch = {n: [(rng.choice([None, 2**62, *range(60)]), 1) for _ in range(rng.randrange(5))] for n in "ab"}
        out += len(job.feed(**batch))
        fed += sum(map(len, batch.values()))
        assert job.last is not None
        late += sum(rows.num_rows for _, rows in job.last.late)
        dead += sum(rows.num_rows for _, rows, reasons in job.last.dead if "event time" in reasons[0].as_py())
        counts = job.engine.counts
        assert counts.rows_in == fed == counts.rows_used + counts.rows_late + counts.rows_dead
        assert (counts.rows_late, counts.rows_dead, counts.rows_out) == (late, dead, out)
    assert late and dead and out


def test_late_and_dead_rows_come_back_whole() -> None:
    job = Job("SELECT a.k FROM a", a="k note:string")
    job.feed(a=[(10, 1, "on time")])
    job.feed(a=[(5, 2, "late"), (None, 3, "dead"), (11, 4, "fine")])
    assert job.last is not None
    assert [(name, rows.to_pylist()) for name, rows in job.last.late] == [
        ("a", [{"ts": at(5), "k": 2, "note": "late"}])
    ]
    assert [(name, rows.to_pylist()) for name, rows, _ in job.last.dead] == [
        ("a", [{"ts": None, "k": 3, "note": "dead"}])
    ]


def test_errors_of_expressions_are_counted_and_undone() -> None:
    job = Job("SELECT a.k // a.x AS d FROM a", a="k x")
    assert job.feed(a=[(1, 5, 0), (1, 6, 2)]) == [(3,), (None,)]
    assert job.engine.counts.expression_errors == 1
    job.feed(a=[(2, 5, 0)], commit=False)
    job.engine.wind_back()
    assert job.engine.counts.expression_errors == 1
    job.feed(a=[(2, 5, 0)])
    assert job.engine.counts.expression_errors == 2


@pytest.mark.parametrize(
    "where", ["a.k = t.k AND a.x BETWEEN u.x AND u.x + 1", "a.k < t.k AND a.x > u.x", "a.k + t.k = u.x"]
)
def test_rows_of_the_only_stream_beside_tables_have_no_index_and_stay_for_a_batch(where: str) -> None:
    select = f"SELECT a.k, t.x FROM a, t, u WHERE {where}"
    tables = {"t": [(1, 10), (2, 20), (2, 21)], "u": [(3,), (4,)]}
    job = Job(select, tables=tables, a="k x", t="k x", u="x")
    stem, found = job.engine.slot.executor.stems[0], []
    for start in range(0, 90, 30):
        rows = [(start + i, i % 4, i % 6) for i in range(30)]
        job.feed(a=rows, commit=False)
        assert stem.held == 0 and stem.built == start + 30 and stem.indexes.nbytes == 0
        job.engine.wind_back()
        found += job.feed(a=rows)
        assert job.engine.peak.rows == 35 and job.engine.held.rows == 5
    assert sorted(found) == sorted(job.expected()) and found


def test_peaks_are_of_the_time_before_expiry() -> None:
    job = Job("SELECT a.k FROM a [RANGE 1 MICROSECONDS], b [RANGE 1 MICROSECONDS] WHERE a.k = b.k", a="k", b="k")
    job.feed(a=[(i, i) for i in range(100)], b=[(i, i) for i in range(100)])
    held, peak = job.engine.held, job.engine.peak
    assert peak.rows == 200 and held.rows <= 4
    assert peak.bytes > held.bytes > 0


def test_a_batch_of_nothing() -> None:
    job = Job("SELECT a.k FROM a, b WHERE a.k = b.k", a="k", b="k")
    assert job.feed() == job.feed(a=[], b=[]) == []
    assert job.end() == []
    assert job.engine.counts.rows_in == 0


def test_a_table_after_the_first_batch_is_our_own_mistake() -> None:
    job = Job("SELECT a.k FROM a, t WHERE a.k = t.k", tables={"t": [(1,)]}, a="k", t="k")
    job.feed(a=[(1, 1)])
    with pytest.raises(InternalError):
        job.engine.load_table("t", batch_of(job.schemas["t"], [(2,)]))


def test_a_missing_column_stops_the_job_in_a_sentence() -> None:
    job = Job("SELECT a.k FROM a", a="k")
    with pytest.raises(JobError, match="no column 'k'"):
        job.engine.batch([("a", pa.record_batch({"ts": pa.array([1], TIME)}))])
    with pytest.raises(JobError, match="no column 'ts'"):
        job.engine.batch([("a", pa.record_batch({"k": [1]}))])


# Slides: which boundaries, and when

SLIDE = "SELECT COUNT(*) AS n, window_end() AS t FROM a [RANGE 20 MICROSECONDS SLIDE 10 MICROSECONDS]"


def ends(rows: list[tuple]) -> list[tuple[int, int]]:
    return sorted((round((t - EPOCH) / timedelta(microseconds=1)), n) for n, t in rows)


def test_a_boundary_comes_when_the_watermark_is_greater() -> None:
    job = Job(SLIDE, a="k")
    assert ends(job.feed(a=[(1, 0), (10, 0)])) == []
    assert ends(job.feed(a=[(11, 0)])) == [(10, 2)]
    assert ends(job.feed(a=[(20, 0)])) == []
    assert ends(job.feed(a=[(21, 0), (45, 0)])) == [(20, 4), (30, 3), (40, 1)]
    assert ends(job.end()) == [(50, 1)]


def test_the_end_goes_up_to_the_first_boundary_at_or_after_the_newest_row() -> None:
    for newest, last in [(10, 10), (11, 20), (20, 20), (-5, 0), (0, 0)]:
        job = Job(SLIDE, a="k")
        job.feed(a=[(newest, 0)])
        assert ends(job.end()) == [(last, 1)]


def test_the_newest_row_of_any_stream_even_if_it_was_filtered_or_late() -> None:
    """A row that joins nothing still moves the watermark."""
    window = "[RANGE 20 MICROSECONDS SLIDE 10 MICROSECONDS]"
    job = Job(f"SELECT COUNT(*) AS n, window_end() AS t FROM a {window}, b {window} WHERE b.k = 0", a="k", b="k")
    job.feed(a=[(5, 0)], b=[(5, 0), (18, 1)])
    assert ends(job.end()) == ends(job.expected()) == [(10, 1), (20, 1)]


TUMBLE = "SELECT COUNT(*) AS n, window_end() AS t FROM a [TUMBLE 10 MICROSECONDS]"


def test_a_window_with_a_borrowed_name_comes_when_the_watermark_is_its_end() -> None:
    """A row at its start is in it, a row at its end is not, and one at the watermark is not late."""
    job = Job(TUMBLE, a="k")
    assert ends(job.feed(a=[(0, 0), (9, 0)])) == []
    assert ends(job.feed(a=[(10, 0)])) == [(10, 2)]
    assert ends(job.feed(a=[(10, 0), (19, 0)])) == []
    assert ends(job.feed(a=[(20, 0), (45, 0)])) == [(20, 3), (30, 1)]
    assert ends(job.end()) == [(50, 1)]


def test_at_the_end_come_all_borrowed_windows_that_hold_a_row() -> None:
    for window, last in [
        ("TUMBLE 10 MICROSECONDS", [20]),
        ("HOP 10 MICROSECONDS, 30 MICROSECONDS", [20, 30, 40]),
        ("HOP 10 MICROSECONDS, 25 MICROSECONDS", [15, 25, 35]),  # windows begin at multiples of the slide
        ("CUMULATE 10 MICROSECONDS, 30 MICROSECONDS", [20, 30]),
        ("CUMULATE 10 MICROSECONDS, 30 MICROSECONDS OFFSET -4 MICROSECONDS", [16, 26]),
    ]:
        job = Job(f"SELECT COUNT(*) AS n, window_end() AS t FROM a [{window}]", a="k")
        job.feed(a=[(10, 0)])
        assert ends(job.end()) == ends(job.expected()) == [(end, 1) for end in last]


@pytest.mark.parametrize(
    "windows",
    [
        ("HOP 10 MICROSECONDS, 20 MICROSECONDS",) * 2,
        ("TUMBLE 10 MICROSECONDS", "CUMULATE 10 MICROSECONDS, 20 MICROSECONDS"),
        ("TUMBLE 10 MICROSECONDS", "RANGE 30 MICROSECONDS"),
        ("HOP 10 MICROSECONDS, 30 MICROSECONDS", "ROWS 2"),
        ("HOP 5 MICROSECONDS, 12 MICROSECONDS OFFSET 1 MICROSECONDS", "UNBOUNDED"),
    ],
)
def test_joins_of_borrowed_windows_keep_rows_as_long_as_they_count_and_no_longer(windows: tuple[str, str]) -> None:
    """Every two rows of two streams, from far too old to far too new, in both orders of arrival."""
    select = f"SELECT COUNT(*) AS n, window_end() AS t FROM a [{windows[0]}], b [{windows[1]}] WHERE a.k = b.k"
    for first, second in [("a", "b"), ("b", "a")]:
        for apart in range(35):
            job = Job(select, a="k", b="k")
            found = job.feed(**{first: [(7, 0)], second: [(7, 1)]})
            for time in (8, 10, 7 + apart):  # the watermark passes boundaries before the row comes
                found += job.feed(**{first: [(max(time, 7), 2)], second: [(min(time, 7 + apart), 3)]})
            found += job.feed(**{second: [(7 + apart, 0)]}) + job.end()
            assert ends(found) == ends(job.expected())


def test_before_1970() -> None:
    job = Job(SLIDE, a="k")
    assert ends(job.feed(a=[(-25, 0), (-11, 0)]) + job.feed(a=[(-5, 0)]) + job.end()) == [(-20, 1), (-10, 2), (0, 2)]


def test_a_window_is_open_at_its_old_end() -> None:
    """T - W < ts <= T."""
    job = Job(SLIDE, a="k")
    job.feed(a=[(10, 0), (30, 0)])
    assert ends(job.end()) == [(30, 1)]


def test_a_gap_of_millions_of_boundaries_costs_nothing() -> None:
    job = Job(SLIDE, a="k")
    job.feed(a=[(5, 0)])
    found = ends(job.feed(a=[(10**12, 0)]) + job.end())
    assert found == [(10, 1), (20, 1), (10**12, 1)]


def test_slides_of_joins_as_the_definition() -> None:
    select = (
        "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS s, window_end() AS t "
        "FROM a [RANGE 30 MICROSECONDS SLIDE 10 MICROSECONDS], b [RANGE 10 MICROSECONDS SLIDE 10 MICROSECONDS], c "
        "WHERE a.k = b.k AND c.x = b.x GROUP BY a.k HAVING COUNT(*) > 1"
    )
    for seed in range(5):
        rng = random.Random(seed)
        job = Job(select, None, dict.fromkeys("abc", 25), **dict.fromkeys("abc", "k x"))
        found = []
        for start in range(0, 100, 20):
            rows = {
                n: [(start + rng.randrange(25), rng.randrange(2), rng.randrange(3)) for _ in range(8)] for n in "abc"
            }
            found += job.feed(**rows)
        assert sorted(found + job.end(), key=repr) == job.expected()


def test_without_a_slide_there_is_one_answer_at_the_end() -> None:
    job = Job("SELECT a.k, COUNT(*) AS n FROM a, b WHERE a.k = b.k GROUP BY a.k", a="k", b="k")
    assert job.feed(a=[(1, 1), (1, 2)], b=[(1, 1)]) == job.feed(b=[(2, 1), (2, 2)]) == []
    assert job.end() == [(1, 2), (2, 1)]


def test_no_combination_no_row() -> None:
    job = Job("SELECT COUNT(*) AS n FROM a, b WHERE a.k = b.k", a="k", b="k")
    job.feed(a=[(1, 1)], b=[(1, 2)])
    assert job.end() == []


# Keys and payload of every type

NAN = float("nan")
KEYS = {
    pa.int8(): [1, -1, 127],
    pa.uint64(): [0, 2**63, 2**64 - 1],
    pa.float32(): [0.0, NAN, 1.5],
    pa.float64(): [0.0, NAN, float("inf")],
    pa.bool_(): [True, False],
    pa.decimal128(10, 2): [D("1.25"), D("-1.25"), D(0)],
    pa.decimal128(38, 4): [D("1.25"), D(-(10**30)), D(10**30)],
    pa.string(): ["", "a", "ü"],
    pa.large_string(): ["", "a", "ü"],
    pa.binary(): [b"", b"a", b"\0"],
    pa.binary(2): [b"ab", b"ba"],
    pa.date32(): [0, 1, -1],
    pa.timestamp("us"): [0, 1, -1],
    pa.timestamp("s", "UTC"): [0, 1, -1],
    pa.duration("ms"): [0, 1, -1],
    pa.time64("us"): [0, 1],
    pa.dictionary(pa.int8(), pa.string()): ["", "a", "ü"],
    pa.dictionary(pa.int32(), pa.int64()): [0, 5],
}


def filled(type_: pa.DataType, values: list[object]) -> pa.Array:
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    return pa.array(values, type_)


@pytest.mark.parametrize("type_", list(KEYS), ids=str)
def test_keys_of_every_type_also_in_slices(type_: pa.DataType) -> None:
    """Each value matches itself, and NULL matches nothing; the batches are slices of larger ones."""
    columns = pa.schema([("ts", TIME), ("k", type_), ("n", pa.int64())])
    values = KEYS[type_]

    def rows(order: list[object]) -> pa.RecordBatch:
        padded = [values[0], *order, None]
        return pa.record_batch(
            [pa.array([1] * len(padded), TIME), filled(type_, padded), pa.array(range(-1, len(order) + 1))],
            schema=columns,
        ).slice(1)

    job = Job("SELECT a.n, b.n AS m FROM a, b WHERE a.k = b.k", a=columns, b=columns)
    n = len(values)
    assert job.feed(a=rows(values), b=rows(values[::-1])) == [(i, n - 1 - i) for i in range(n)]


def test_the_two_zeros_are_one_key_and_each_keeps_its_own_sign() -> None:
    job = Job("SELECT a.f, b.f AS g FROM a, b WHERE a.f = b.f", a="f:float", b="f:float")
    [(f, g)] = job.feed(a=[(1, -0.0)], b=[(1, 0.0)])
    assert (str(f), str(g)) == ("-0.0", "0.0")


def test_keys_of_different_numeric_types_meet_by_value() -> None:
    def columns(type_: pa.DataType) -> pa.Schema:
        return pa.schema([("ts", TIME), ("k", type_)])

    for left, right in [(pa.int8(), pa.int64()), (pa.int32(), pa.float64()), (pa.uint64(), pa.int64())]:
        job = Job("SELECT b.k FROM a, b WHERE a.k = b.k", a=columns(left), b=columns(right))
        assert job.feed(a=[(1, 5), (1, 7)], b=[(1, 7), (1, 8)]) == [(7,)]


def test_a_null_that_stands_in_a_dictionary_is_null() -> None:
    columns = pa.schema([("ts", TIME), ("w", pa.dictionary(pa.int8(), pa.string()))])
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["a", None, ""]))
    batch = pa.record_batch([pa.array([1, 1, 1], TIME), hidden], schema=columns)
    job = Job("SELECT a.w, b.w AS v FROM a, b WHERE a.w = b.w", a=columns, b=columns)
    assert job.feed(a=batch, b=batch) == [("", ""), ("a", "a")]
    ordered = Job("SELECT a.w FROM a [ROWS 2], b WHERE a.w <= b.w", a=columns, b=columns)
    assert sorted(ordered.feed(a=batch, b=batch) + ordered.end()) == [("a",)]


def test_payload_of_nested_types_goes_through_joins_and_filters() -> None:
    columns = pa.schema(
        [("ts", TIME), ("k", pa.int64()), ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int64()))]
    )
    rows = [(i, i, [["a"] * i, None, []][i % 3], [None, [("x", i)], []][i % 3]) for i in range(9)]
    job = Job("SELECT a.l, b.m FROM a, b WHERE a.k = b.k AND a.k > 3 AND b.l IS NOT NULL", a=columns, b=columns)
    found = job.feed(a=batch_of(columns, rows).slice(1), b=batch_of(columns, rows).slice(2))
    assert found == sorted(((r[2], r[3]) for r in rows if r[1] > 3 and r[2] is not None), key=repr)


@pytest.mark.parametrize("type_", [pa.string_view(), pa.binary_view()], ids=str)
def test_views_go_through_filters(type_: pa.DataType) -> None:
    """Polars passes string views."""
    columns = pa.schema([("ts", TIME), ("k", pa.int64()), ("s", type_)])
    batch = pa.record_batch(
        [pa.array([1, 2], TIME), pa.array([1, 2]), pa.array([b"a", b"b"]).cast(type_)], schema=columns
    )
    job = Job("SELECT a.s FROM a WHERE a.k > 1", a=columns)
    assert len(job.feed(a=batch)) == 1


def test_a_key_that_cannot_be_computed_is_null() -> None:
    columns = pa.schema([("ts", TIME), ("k", pa.timestamp("s"))])
    batch = pa.record_batch([pa.array([1, 1], TIME), pa.array([5, 2**60], pa.timestamp("s"))], schema=columns)
    job = Job("SELECT a.ts FROM a, b WHERE a.k = b.k", a=columns, b=columns)
    assert len(job.feed(a=batch, b=batch)) == 1


def test_results_of_one_query_have_one_schema() -> None:
    columns = pa.schema([("ts", TIME), ("w", pa.dictionary(pa.int8(), pa.string(), ordered=True))])
    job = Job("SELECT a.w, a.ts + INTERVAL '1' SECOND AS t, 1 AS one, NULL AS nothing FROM a", a=columns)
    array = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.array(["x"]), ordered=True)
    job.feed(a=pa.record_batch([pa.array([1, 2], TIME), array], schema=columns))
    assert job.last is not None
    for batch in job.last.results:
        assert batch.schema == job.query.schema
        batch.validate(full=True)


def test_many_results_come_in_bounded_batches_and_all_of_them() -> None:
    rows = [(1, i % 2) for i in range(600)]
    job = Job("SELECT a.k FROM a, b WHERE a.k = b.k", Settings(packet=4096), a="k", b="k")
    found = job.engine.batch([("a", batch_of(job.schemas["a"], rows)), ("b", batch_of(job.schemas["b"], rows))]).results
    assert sum(b.num_rows for b in found) == 180_000
    assert len(found) >= 2 and max(b.num_rows for b in found) <= 65536 + 4096


def test_the_same_rows_in_every_order_and_cut() -> None:
    """With no late row the result is a function of the rows alone."""
    rng = random.Random(9)
    rows = {n: [(rng.randrange(50), rng.randrange(3), rng.randrange(3)) for _ in range(30)] for n in "abc"}
    select = (
        "SELECT a.x, b.x AS y, c.k FROM a [RANGE 9 MICROSECONDS], b [RANGE 5 MICROSECONDS], c "
        "WHERE a.k = b.k AND b.x = c.x"
    )
    wanted = None
    for _ in range(8):
        job = Job(
            select,
            Settings(check=True, packet=rng.choice([3, 100])),
            dict.fromkeys("abc", 50),
            **dict.fromkeys("abc", "k x"),
        )
        left, found = {n: rng.sample(r, len(r)) for n, r in rows.items()}, []
        while any(left.values()):
            n = {name: rng.randrange(12) for name in "abc"}
            found += job.feed(**{name: left[name][: n[name]] for name in "abc"})
            left = {name: left[name][n[name] :] for name in "abc"}
        wanted = job.expected() if wanted is None else wanted
        assert sorted(found + job.end(), key=repr) == wanted


def test_times_at_the_ends_of_the_range() -> None:
    """2**60 microseconds in either direction are readable; sums with windows of ten thousand years do not overflow."""
    far = 2**60
    for window in ("RANGE 3660000 DAYS", "RANGE 0 MICROSECONDS", "UNBOUNDED"):
        job = Job(f"SELECT a.k, b.k AS j FROM a [{window}], b [{window}]", a="k", b="k")
        one = batch([far, -far, 0], job.schemas["a"])
        other = batch([-far, far, 0], job.schemas["b"])
        found = job.engine.batch([("a", one), ("b", other)]).results
        pairs = {tuple(r.values()) for b in found for r in b.to_pylist()}
        same = {(0, 1), (1, 0), (2, 2)}
        assert pairs == (same if window != "UNBOUNDED" else {(i, j) for i in range(3) for j in range(3)})
        assert job.engine.counts.rows_dead == 0


def batch(times: list[int], columns: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array(np.array(times), TIME), pa.array(range(len(times)))], schema=columns)


@pytest.mark.parametrize("slide", [10, 86_400_000_000 * 3650])
def test_slides_at_the_ends_of_the_range(slide: int) -> None:
    select = f"SELECT COUNT(*) AS n FROM a [RANGE {2 * slide} MICROSECONDS SLIDE {slide} MICROSECONDS]"
    job = Job(select, a="k")
    out = job.engine.batch([("a", batch([-(2**60), 2**60], job.schemas["a"]))]).results + job.engine.end().results
    assert sum(r["n"] for b in out for r in b.to_pylist()) >= 3
