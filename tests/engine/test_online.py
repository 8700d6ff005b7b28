"""Running estimates: intervals that hold as often as they say, where there are none, and results that stay the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.groups.clusters import CLUSTERS, of_pieces, refusal
from eddyline.engine.groups.online import RunningEstimate
from eddyline.errors import SettingError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from tests.support.jobs import TIME, Job, bound, tuples

ON = Settings(check=True, estimates="on", optimizer="off")
RUNS = 200
COLUMNS = "k g v:float"
SCHEMA = pa.schema([("ts", TIME), ("k", pa.int64()), ("g", pa.int64()), ("v", pa.float64())])
WHOLE = 100_000
"""The length of a window in microseconds."""
ONE = "SELECT COUNT(*) AS n, SUM(a.v) AS s, AVG(a.v) AS m FROM a {} WHERE a.k > 5"
JOIN = "SELECT COUNT(*) AS n, SUM(a.v * b.v) AS s, AVG(b.v) AS m FROM a {}, b {} WHERE a.k = b.k"
Rows = Mapping[str, pa.RecordBatch]


def rows(rng: np.random.Generator, number: int, keys: int, times: np.ndarray | None = None) -> pa.RecordBatch:
    """Rows in random order, which come one after the other."""
    times = np.cumsum(rng.integers(1, 50, number)) if times is None else times
    key, group, value = rng.integers(0, keys, number), rng.integers(0, 3, number), rng.exponential(10, number)
    arrays = [pa.array(times, TIME), pa.array(key), pa.array(group), pa.array(value)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def truth(data: Rows) -> dict[str, float]:
    """What the queries ONE and JOIN give over all rows."""
    a, av = np.asarray(data["a"]["k"]), np.asarray(data["a"]["v"])
    if "b" not in data:
        kept = av[a > 5]
        return {"n": len(kept), "s": kept.sum(), "m": kept.mean()}
    b, bv = np.asarray(data["b"]["k"]), np.asarray(data["b"]["v"])
    size = 1 + max(a.max(), b.max())
    count, other = np.bincount(a, minlength=size), np.bincount(b, minlength=size)
    summed, other_summed = np.bincount(a, av, size), np.bincount(b, bv, size)
    n = int((count * other).sum())
    return {"n": n, "s": (summed * other_summed).sum(), "m": (count * other_summed).sum() / n}


def of(found: Sequence[RunningEstimate]) -> dict[str, RunningEstimate]:
    """By aggregate, of the only group."""
    assert len({tuple(one.group.items()) for one in found}) == 1
    return {one.aggregate: one for one in found}


def coverage(
    select: str, make: Callable[[np.random.Generator], tuple[Rows, Rows]], **settings: int
) -> dict[str, float]:
    """How often the interval has the truth, by aggregate; `make` gives all rows, and those that are seen."""
    query, names = bound(select, a=COLUMNS, b=COLUMNS), ("a", "b") if "b." in select else ("a",)
    inside: dict[str, list[bool]] = {"n": [], "s": [], "m": []}
    for seed in range(RUNS):
        every, seen = make(np.random.default_rng(seed))
        every, seen = {n: every[n] for n in names}, {n: seen[n] for n in names}
        engine = BatchDriver(query, replace(ON, check=False, **settings))
        engine.batch(list(seen.items()))
        exact = truth(every)
        for name, one in of(engine.estimates({n: b.num_rows for n, b in every.items()})).items():
            assert one.half_width is not None, one.why
            inside[name].append(abs(one.value - exact[name]) <= one.half_width)
    return {name: float(np.mean(some)) for name, some in inside.items()}


def bounded(number: int, keys: int, *shares: float) -> Callable[[np.random.Generator], tuple[Rows, Rows]]:
    def make(rng: np.random.Generator) -> tuple[Rows, Rows]:
        every = {name: rows(rng, number, keys) for name in "ab"}
        return every, {n: every[n].slice(0, int(number * share)) for n, share in zip("ab", shares, strict=True)}

    return make


def in_a_window(number: int, keys: int, share: float) -> Callable[[np.random.Generator], tuple[Rows, Rows]]:
    def make(rng: np.random.Generator) -> tuple[Rows, Rows]:
        every, seen = {}, {}
        for name in "ab":
            some = rng.poisson(number)
            times = np.sort(rng.integers(1, WHOLE + 1, some))
            times[0] = 1
            every[name] = rows(rng, some, keys, times)
            seen[name] = every[name].slice(0, int(np.searchsorted(times, share * WHOLE)))
        return every, seen

    return make


TUMBLE = f"[RANGE {WHOLE} MICROSECONDS SLIDE {WHOLE} MICROSECONDS]"


@pytest.mark.parametrize(
    ("select", "make"),
    [
        pytest.param(ONE.format(""), bounded(2000, 20, 0.2, 0.2), id="one"),
        pytest.param(JOIN.format("", ""), bounded(1000, 300, 0.4, 0.25), id="join"),
        pytest.param(JOIN.format("", ""), bounded(1000, 1000, 0.8, 0.7), id="nearly all of a join"),
        pytest.param(ONE.format(TUMBLE), in_a_window(2000, 20, 0.3), id="one window"),
        pytest.param(JOIN.format(TUMBLE, TUMBLE), in_a_window(1000, 300, 0.4), id="join in a window"),
    ],
)
def test_95_percent_intervals_have_the_final_value_in_95_percent_of_all_runs(
    select: str, make: Callable[[np.random.Generator], tuple[Rows, Rows]]
) -> None:
    found = coverage(select, make)
    assert all(0.90 <= share <= 0.99 for share in found.values()), found


def test_an_interval_shrinks_to_the_result() -> None:
    data = {name: rows(np.random.default_rng(5), 800, 50) for name in "ab"}
    job = Job(JOIN.format("", ""), ON, a=COLUMNS, b=COLUMNS)
    widths = []
    for at in range(4):
        job.feed(**{name: batch.slice(200 * at, 200) for name, batch in data.items()})
        now = of(job.engine.estimates({"a": 800, "b": 800}))
        assert now["n"].share == pytest.approx(((at + 1) / 4) ** 2)
        widths.append(now["s"].half_width)
    assert widths == sorted(widths, reverse=True) and widths[-1] == 0
    assert {name: one.value for name, one in now.items()} == pytest.approx(truth(data))


def test_each_group_has_its_own_estimates_and_those_with_most_rows_come_first() -> None:
    data = rows(np.random.default_rng(1), 3000, 20)
    job = Job("SELECT a.g, COUNT(*) AS n, SUM(a.k) FROM a WHERE a.k > a.g * 5 GROUP BY a.g", ON, a=COLUMNS)
    job.feed(a=data.slice(0, 600))
    found = job.engine.estimates({"a": 3000})
    assert [(one.group, one.aggregate) for one in found] == [
        ({"g": g}, name) for g in (0, 1, 2) for name in ("n", "SUM(a.k)")
    ]
    assert all(one.half_width and one.rows and one.share == 0.2 for one in found)


def test_the_results_are_the_same_with_estimates() -> None:
    rng = np.random.default_rng(2)
    data = {name: rows(rng, 600, 30) for name in "ab"}
    window = "[RANGE 4000 MICROSECONDS SLIDE 1000 MICROSECONDS]"
    select = (
        "SELECT a.g, window_end() AS t, COUNT(*) AS n, SUM(a.k), MAX(b.v), COUNT(DISTINCT b.k)"
        f" FROM a {window}, b {window} WHERE a.k = b.k GROUP BY a.g HAVING COUNT(*) > 2"
    )
    found = []
    for settings in (replace(ON, estimates="off"), ON, replace(ON, slots=3), replace(ON, optimizer="auto")):
        job, results = Job(select, settings, a=COLUMNS, b=COLUMNS), []
        for at in range(0, 600, 100):
            job.feed(commit=False, **{name: batch.slice(at, 100) for name, batch in data.items()})
            job.engine.wind_back()
            results += job.feed(**{name: batch.slice(at, 100) for name, batch in data.items()})
            assert bool(job.engine.estimates({})) == (settings.estimates == "on")
        found.append(sorted(results + job.end(), key=repr))
    assert found[0] and all(one == found[0] for one in found[1:])


def test_a_batch_that_is_wound_back_leaves_no_trace_in_the_estimates() -> None:
    data = rows(np.random.default_rng(3), 400, 20)
    once, twice = (Job(ONE.format(""), ON, a=COLUMNS) for _ in range(2))
    once.feed(a=data.slice(0, 200))
    twice.feed(a=data.slice(200), commit=False)
    twice.engine.wind_back()
    twice.feed(a=data.slice(0, 200))
    assert once.engine.estimates({"a": 400}) == twice.engine.estimates({"a": 400})


def test_slots_give_the_estimates_of_one_slot() -> None:
    data = {name: rows(np.random.default_rng(6), 500, 50) for name in "ab"}
    found = []
    for slots in (1, 3):
        job = Job(JOIN.format("", ""), replace(ON, slots=slots), a=COLUMNS, b=COLUMNS)
        job.feed(**data)
        found.append(of(job.engine.estimates({"a": 1000, "b": 1000})))
    for name, one in found[0].items():
        assert (one.value, one.half_width) == pytest.approx((found[1][name].value, found[1][name].half_width))


def test_without_the_number_of_rows_only_averages_have_intervals() -> None:
    job = Job(ONE.format(""), ON, a=COLUMNS)
    job.feed(a=rows(np.random.default_rng(7), 400, 20))
    found = of(job.engine.estimates({}))
    assert found["m"].half_width and found["m"].share is None
    assert (found["n"].half_width, found["n"].why) == (None, "the number of rows of a stream is not known")
    assert found["n"].value == found["n"].rows


def test_an_extreme_has_no_interval() -> None:
    job = Job("SELECT MIN(a.v) AS low, COUNT(DISTINCT a.k) AS keys, MEDIAN(a.v) AS mid FROM a", ON, a=COLUMNS)
    data = rows(np.random.default_rng(8), 400, 20)
    job.feed(a=data)
    found = of(job.engine.estimates({"a": 800}))
    assert {one.why for one in found.values()} == {"only the rows so far are known"}
    assert all(one.half_width is None for one in found.values())
    assert (found["low"].value, found["keys"].value) == (min(data["v"].to_pylist()), 20)


def test_few_rows_have_no_interval() -> None:
    job = Job("SELECT COUNT(*) AS n FROM a WHERE a.k = 0", ON, a=COLUMNS)
    job.feed(a=rows(np.random.default_rng(9), 400, 20))
    assert of(job.engine.estimates({"a": 800}))["n"].why == "fewer than 30 rows so far"


def test_rows_of_one_moment_are_one_cluster() -> None:
    job = Job(ONE.format(""), ON, a=COLUMNS)
    job.feed(a=rows(np.random.default_rng(9), 400, 20, np.full(400, 7)))
    assert of(job.engine.estimates({"a": 800}))["m"].why == "the rows of a so far have too few different times"


def test_the_window_that_is_open_has_its_owners_end_and_share() -> None:
    """Three quarters of the first tenth have passed, and then half of the second: of a CUMULATE 15 of 20."""
    step = WHOLE // 10
    for window, shares in [
        (f"TUMBLE {step} MICROSECONDS", (0.75, 0.5)),
        (f"CUMULATE {step} MICROSECONDS, {WHOLE} MICROSECONDS", (0.75, 0.75)),
        (f"HOP {step} MICROSECONDS, {2 * step} MICROSECONDS", (0.75, 0.75)),
    ]:
        rng, job = np.random.default_rng(5), Job(ONE.format(f"[{window}]"), ON, a=COLUMNS)
        for number, upto in enumerate((step * 3 // 4, step * 3 // 2)):
            job.feed(a=rows(rng, 400, 20, np.linspace(number * step, upto, 400).astype(np.int64)))
            estimate = of(job.engine.estimates({}))["n"]
            assert estimate.window_end == datetime.fromtimestamp((number + 1) * step / 1e6, UTC)
            assert estimate.share == pytest.approx(shares[number], rel=0.01)


def test_rows_out_of_order_have_no_interval_in_a_window() -> None:
    rng = np.random.default_rng(4)
    job = Job(ONE.format(TUMBLE), ON, {"a": WHOLE // 4}, a=COLUMNS)
    times = np.sort(rng.integers(1, WHOLE // 2, 400))
    times[-1] -= WHOLE // 8
    job.feed(a=rows(rng, 400, 20, times))
    assert of(job.engine.estimates({}))["n"].why == "rows of a come out of order"


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("SELECT COUNT(*) FROM a AS x, a AS y WHERE x.k = y.k", "a stream is joined with itself"),
        ("SELECT COUNT(*) FROM a [RANGE 1 SECOND], b WHERE a.k = b.k", "only rows of about the same time are joined"),
        (f"SELECT COUNT(*) FROM a {TUMBLE}, b {TUMBLE} WHERE a.k = b.k AND a.ts - b.ts <= INTERVAL '1' MILLISECOND",
         "only rows of about the same time are joined"),
        (f"SELECT COUNT(*) FROM a {TUMBLE}, b [ROWS 5] WHERE a.k = b.k",
         "rows of a ROWS window are counted when the window ends"),
        ("SELECT a.k FROM a", "the query has no aggregates"),
        ("SELECT a.k FROM a GROUP BY a.k", ""),
    ],
)  # fmt: skip
def test_queries_without_intervals_say_why(select: str, why: str) -> None:
    job = Job(select, ON, a=COLUMNS, b=COLUMNS)
    assert refusal(job.query) == why
    names = {source.stream.name for source in job.query.sources}
    job.feed(**{name: rows(np.random.default_rng(0), 200, 5) for name in names})
    assert all(one.half_width is None and one.why == why for one in job.engine.estimates({"a": 400, "b": 400}))


def test_sorted_input_is_not_covered() -> None:
    """A limit that the guide names: the rows so far do not tell of those to come."""
    data = rows(np.random.default_rng(0), 1000, 20)
    data = data.set_column(3, "v", pa.array(np.sort(np.asarray(data["v"]))))
    job = Job(ONE.format(""), ON, a=COLUMNS)
    job.feed(a=data.slice(0, 300))
    mean = of(job.engine.estimates({"a": 1000}))["m"]
    assert mean.half_width is not None and mean.value + mean.half_width < truth({"a": data})["m"]


def test_a_plan_that_groups_below_a_join_is_refused() -> None:
    with pytest.raises(SettingError, match=r"estimates=on needs a plan without \+"):
        Job(JOIN.format(TUMBLE, TUMBLE), replace(ON, plan="((a)+ b)"), a=COLUMNS, b=COLUMNS)


def test_clusters_of_successive_times_are_random_and_differ_by_stream() -> None:
    pieces = np.arange(16_000)
    first, second = of_pieces(0, pieces), of_pieces(1, pieces)
    both = np.bincount(first * CLUSTERS + second, minlength=CLUSTERS**2)
    assert first.min() >= 0 and first.max() == CLUSTERS - 1
    assert ((both - 62.5) ** 2 / 62.5).sum() < 330  # chi square, 255 degrees of freedom: 0.999 is at 330


def test_numbers_of_all_types_are_estimated() -> None:
    schema = pa.schema([("ts", TIME), ("d", pa.decimal128(38, 2)), ("w", pa.bool_()), ("i", pa.int32())])
    numbers = np.arange(200)
    columns = [pa.array(numbers, TIME), pa.array([f"{n}.25" for n in numbers]).cast(pa.decimal128(38, 2))]
    columns += [pa.array([None if n % 3 == 0 else n % 2 == 0 for n in numbers]), pa.array(numbers, pa.int32())]
    job = Job("SELECT SUM(a.d) AS d, COUNT(a.w) AS w, AVG(a.i) AS i FROM a", ON, a=schema)
    job.feed(a=pa.RecordBatch.from_arrays(columns, schema=schema))
    found = of(job.engine.estimates({"a": 400}))
    values = {name: float(one.value) for name, one in found.items()}
    assert values == pytest.approx({"d": 2 * (19900 + 50), "w": 266, "i": 99.5})
    assert all(one.half_width for one in found.values())
    assert tuples(job.engine.end().results)
