"""Grouping against DuckDB: the same combinations, expanded over the boundaries by a range join."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import WINDOW_END, Aggregate, Call, Expr, Literal, SourceColumn
from eddyline.bound.model import BoundQuery, BoundSource, BoundStream, GroupBy, Output
from eddyline.bound.slide import Slide
from eddyline.engine.groups.group_by import Grouping
from eddyline.engine.tuning import ENGINE, EngineTuning

NEVER_ENDS = 2**63 - 1
SLIDE = 10_000_000

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "i64": (pa.int64(), [-(2**63), -5, 0, 7, 2**63 - 1, 2**62 + 1]),
    "u64": (pa.uint64(), [0, 1, 2**64 - 1, 2**64 - 2, 2**63]),
    "f32": (pa.float32(), [0.5, -0.0, 0.0, math.nan, -3.25]),
    "f64": (pa.float64(), [1.1, -0.0, 0.0, math.nan, 1e9, -2.5, 3.3]),
    "finite": (pa.float64(), [0.1, 1e-7, 123456.789, -98765.4321, 0.0, 3.0]),
    "text": (pa.string(), ["", "a", "b", "ab", "z\u00fcrich", "\U0001f600"]),
    "big_text": (pa.large_string(), ["", "long " * 9, "b"]),
    "coded": (pa.dictionary(pa.int32(), pa.string()), ["x", "y", "", "yy"]),
    "raw": (pa.binary(), [b"", b"\x00", b"\xff\x00", b"a"]),
    "pair": (pa.binary(2), [b"\x00\x01", b"zz", b"\xff\xff"]),
    "money": (pa.decimal128(12, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("9999999999.99"), Decimal("0.01")]),
    "wide": (pa.decimal128(38, 4), [Decimal("1" * 30 + ".1234"), Decimal("-" + "9" * 32 + ".9999"), Decimal("0.0001")]),
    "day": (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(1, 1, 1)]),
    "moment": (pa.timestamp("us"), [datetime.datetime(2024, 1, 1, 2, 3, 4, 5), datetime.datetime(1950, 1, 1)]),
    "zoned": (pa.timestamp("us", "UTC"), [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), None]),
    "flag": (pa.bool_(), [True, False]),
    "clock": (pa.time64("us"), [datetime.time(1, 2, 3, 4), datetime.time(23, 59)]),
}
NUMERIC = ("i8", "i64", "u64", "finite", "money", "wide")


def column_of(name: str) -> SourceColumn:
    return SourceColumn(0, name, VALUES[name][0])


def aggregate(name: str, of: str | None = None, distinct: bool = False) -> Aggregate:
    if name == "count" or of is None:
        type_ = pa.int64()
    elif name in ("min", "max"):
        type_ = VALUES[of][0]
    elif name == "sum" and not pa.types.is_floating(VALUES[of][0]):
        type_ = pa.decimal128(38, getattr(VALUES[of][0], "scale", 0))
    else:
        type_ = pa.float64()
    return Aggregate(name, None if of is None else column_of(of), distinct, type_)


def query_of(
    keys: tuple[str, ...], aggregates: list[Aggregate], slide: int | None, having: Expr | None = None
) -> BoundQuery:
    schema = pa.schema([("ts", pa.timestamp("us")), *((n, t) for n, (t, _) in VALUES.items())])
    outputs = [Output(f"k{i}", column_of(k)) for i, k in enumerate(keys)]
    outputs += [Output(f"a{i}", a) for i, a in enumerate(aggregates)]
    if slide is not None:
        outputs.insert(0, Output("t", WINDOW_END))
    group = GroupBy(
        tuple(column_of(k) for k in keys), tuple(aggregates), having, None if slide is None else Slide(slide)
    )
    return BoundQuery((BoundSource("s", BoundStream("s", schema, "ts")),), (), tuple(outputs), group)


def random_rows(rng: random.Random, names: set[str], rows: int) -> dict[str, pa.Array]:
    return {n: pa.array(rng.choices([*VALUES[n][1], None], k=rows), VALUES[n][0]) for n in names}


def sql_of(aggregate: Aggregate) -> str:
    arg = aggregate.arg.name if isinstance(aggregate.arg, SourceColumn) else "*"
    return f"{aggregate.name}({'DISTINCT ' if aggregate.distinct else ''}{arg})"


def expected(
    query: BoundQuery,
    columns: dict[str, pa.Array],
    first: np.ndarray,
    last: np.ndarray,
    upto: int,
    having: str = "true",
) -> list[dict[str, Any]]:
    """The results of DuckDB, from T = 0 on."""
    assert query.group is not None
    slide = query.group.slide and query.group.slide.step
    keys = [f"{k.name} AS k{i}" for i, k in enumerate(query.group.keys) if isinstance(k, SourceColumn)]
    select = ", ".join(keys + [f"{sql_of(a)} AS a{i}" for i, a in enumerate(query.group.aggregates)])
    groups = ", ".join(["boundary", *(k.name for k in query.group.keys if isinstance(k, SourceColumn))])
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("combos", pa.table({**columns, "first": first, "last": last}))
        answer = connection.sql(
            f"SELECT {'make_timestamp(boundary) AS t,' if slide else ''} {select} FROM combos, "
            f"range(0, {upto + 1}, {slide or 1}) b(boundary) WHERE first <= boundary AND boundary <= last "
            f"GROUP BY {groups} HAVING {having}"
        )
        rows: list[dict[str, Any]] = answer.to_arrow_table().to_pylist()
        return rows


def keyed(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows by boundary and key; fails if a key is repeated."""
    result: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple("NaN" if v != v else v for n, v in row.items() if not n.startswith("a"))
        assert key not in result
        result[key] = {n: v for n, v in row.items() if n.startswith("a")}
    return result


def assert_same(got: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    ours, theirs = keyed(got), keyed(wanted)
    assert ours.keys() == theirs.keys()
    for key, values in theirs.items():
        for name, value in values.items():
            if isinstance(value, float):
                assert ours[key][name] == pytest.approx(value, rel=1e-9, abs=1e-3, nan_ok=True), (key, name)
            else:
                assert ours[key][name] == value, (key, name)


def env_of(columns: dict[str, pa.Array], start: int, stop: int) -> dict[Expr, pa.Array]:
    return {column_of(n): c.slice(start, stop - start) for n, c in columns.items()}


def run_whole(
    query: BoundQuery,
    columns: dict[str, pa.Array],
    first: np.ndarray,
    last: np.ndarray,
    upto: int,
    tuning: EngineTuning = ENGINE,
) -> list[Any]:
    grouping = Grouping(query, ErrorCount(), tuning=tuning)
    grouping.add(env_of(columns, 0, len(first)), len(first), first, last)
    return [row for batch in grouping.emit(upto) for row in batch.to_pylist()]


def cuts(rng: random.Random, rows: int, parts: int) -> Iterator[tuple[int, int]]:
    at = sorted({0, rows, *(rng.randrange(rows) for _ in range(parts))})
    yield from pairwise(at)


def run_streaming(
    query: BoundQuery,
    columns: dict[str, pa.Array],
    first: np.ndarray,
    last: np.ndarray,
    upto: int,
    rng: random.Random,
    tuning: EngineTuning = ENGINE,
) -> list[dict[str, Any]]:
    """Adds combinations in batches by `first`, emits all complete boundaries, and undoes and repeats some batches."""
    grouping = Grouping(query, ErrorCount(), tuning=tuning)
    result: list[dict[str, Any]] = []
    for start, stop in cuts(rng, len(first), 7):
        limit = min(int(first[stop]) - 1, upto) if stop < len(first) else upto
        for _ in range(rng.choice([0, 0, 1, 2])):
            middle = rng.randint(start, stop)
            grouping.add(env_of(columns, start, middle), middle - start, first[start:middle], last[start:middle])
            if rng.random() < 0.5:
                grouping.emit(rng.choice([limit, limit // 2, upto]))
            grouping.wind_back()
        grouping.add(env_of(columns, start, stop), stop - start, first[start:stop], last[start:stop])
        batches = grouping.emit(limit) + grouping.emit(limit)
        assert all(batch.schema == query.schema for batch in batches)
        rows = [row for batch in batches for row in batch.to_pylist()]
        if query.group and query.group.slide:
            assert [r["t"] for r in rows] == sorted(r["t"] for r in rows)
        result += rows
        grouping.commit()
    return result


def random_windows(rng: random.Random, rows: int, boundaries: int, unbounded: bool) -> tuple[np.ndarray, np.ndarray]:
    first = np.array(sorted(rng.randrange(boundaries) for _ in range(rows))) * SLIDE
    last = first + np.array([rng.choice([0, 1, 3, 3, 3, -1]) for _ in range(rows)]) * SLIDE
    if unbounded:
        last[np.array([rng.random() < 0.3 for _ in range(rows)])] = NEVER_ENDS
    return first, last


ALL_KINDS = [
    [aggregate("count"), *(aggregate("count", n) for n in ("text", "f64", "coded", "zoned"))],
    [aggregate("count", n, distinct=True) for n in VALUES],
    [aggregate(f, n) for f in ("min", "max") for n in VALUES],
    [aggregate("sum", n) for n in (*NUMERIC, "flag", "f64", "f32")],
    [aggregate("avg", n) for n in (*NUMERIC, "f64", "f32")],
    [aggregate("var_samp", n) for n in ("i8", "finite", "money", "f32")]
    + [aggregate("stddev_samp", n) for n in ("i8", "finite", "money", "f64")],
]


@pytest.mark.parametrize("kind", range(len(ALL_KINDS)))
@pytest.mark.parametrize("unbounded", [False, True])
def test_every_aggregate(kind: int, unbounded: bool) -> None:
    rng = random.Random(kind * 2 + unbounded)
    first, last = random_windows(rng, 400, 12, unbounded)
    columns = random_rows(rng, set(VALUES), 400)
    upto = 16 * SLIDE
    for keys in ((), ("text", "flag")):
        query = query_of(keys, ALL_KINDS[kind], SLIDE)
        wanted = expected(query, columns, first, last, upto)
        assert_same(run_whole(query, columns, first, last, upto), wanted)
    assert_same(run_streaming(query, columns, first, last, upto, rng), wanted)


@pytest.mark.parametrize("key", VALUES)
def test_every_key_type(key: str) -> None:
    rng = random.Random(key)
    first, last = random_windows(rng, 300, 9, True)
    columns = random_rows(rng, {key, "flag", "i64", "f64"}, 300)
    for keys in ((key,), ("flag", key, "f64", "i64")):
        query = query_of(tuple(dict.fromkeys(keys)), [aggregate("count"), aggregate("sum", "i64")], SLIDE)
        wanted = expected(query, columns, first, last, 12 * SLIDE)
        assert_same(run_streaming(query, columns, first, last, 12 * SLIDE, rng), wanted)


def test_without_slide_emits_once() -> None:
    rng = random.Random(5)
    columns = random_rows(rng, {"text", "money", "i8"}, 500)
    zeros = np.zeros(500, np.int64)
    query = query_of(("text",), [aggregate("sum", "money"), aggregate("count", "i8", True), aggregate("count")], None)
    grouping = Grouping(query, ErrorCount())
    for start, stop in cuts(rng, 500, 9):
        grouping.add(env_of(columns, start, stop), stop - start, zeros[start:stop], zeros[start:stop])
        grouping.commit()
    got = [row for batch in grouping.emit(0) for row in batch.to_pylist()]
    assert_same(got, expected(query, columns, zeros, zeros, 0))
    assert grouping.emit(0) == [] and grouping.rows == 0


def test_having_and_expressions() -> None:
    rng = random.Random(8)
    first, last = random_windows(rng, 300, 10, False)
    columns = random_rows(rng, {"i8", "text", "finite"}, 300)
    count, total = aggregate("count"), aggregate("sum", "i8")
    more = Call(
        ">", (count, Literal(3, pa.int64())), pa.bool_(), kernel=lambda args, rows: pc.greater(args[0], args[1])
    )
    query = query_of(("text",), [count, total, aggregate("avg", "finite")], SLIDE, more)
    wanted = expected(query, columns, first, last, 15 * SLIDE, "count(*) > 3")
    assert 0 < len(wanted) < len(expected(query, columns, first, last, 15 * SLIDE))
    assert_same(run_whole(query, columns, first, last, 15 * SLIDE), wanted)
    assert_same(run_streaming(query, columns, first, last, 15 * SLIDE, rng), wanted)


def test_windows_need_not_start_on_a_boundary() -> None:
    rng = random.Random(9)
    first = np.array(sorted(rng.randrange(-5 * SLIDE, 9 * SLIDE) for _ in range(200)))
    last = first + np.array([rng.randrange(3 * SLIDE) for _ in range(200)])
    columns = random_rows(rng, {"i8"}, 200)
    query = query_of(("i8",), [aggregate("count")], SLIDE)
    got = [r for r in run_whole(query, columns, first, last, 14 * SLIDE) if r["t"] >= datetime.datetime(1970, 1, 1)]
    assert_same(got, expected(query, columns, first, last, 14 * SLIDE))


def test_gaps_cost_nothing_and_the_ends_of_time_are_reachable() -> None:
    query = query_of(("i8",), [aggregate("count")], 1_000_000)
    grouping = Grouping(query, ErrorCount())
    top = (2**63 - 1) // 1_000_000 * 1_000_000
    first = np.array([-(2**63), -(10**15), 0, 10**17, top, 2**63 - 1])
    last = np.array([-(2**63) + 999_999, -(10**15), 2_000_000, 10**17, 2**63 - 1, 2**63 - 1])
    env: dict[Expr, pa.Array] = {column_of("i8"): pa.array([1] * 6, pa.int8())}
    grouping.add(env, 6, first, last)
    batches = [batch for upto in (5, 2_000_000, 2**63 - 1) for batch in grouping.emit(upto)]
    boundaries = [t for batch in batches for t in batch["t"].cast(pa.int64()).to_pylist()]
    lowest = -(2**63) // 1_000_000 * 1_000_000 + 1_000_000
    assert boundaries == [lowest, -(10**15), 0, 1_000_000, 2_000_000, 10**17, top]
    assert grouping.rows == 0


def test_unbounded_cells_collapse_and_chunks_do_not_show() -> None:
    rng = random.Random(3)
    first, last = random_windows(rng, 500, 100, True)
    columns = random_rows(rng, {"i8", "text"}, 500)
    query = query_of(("i8",), [aggregate("count"), aggregate("sum", "i8"), aggregate("max", "text")], SLIDE)
    wanted = expected(query, columns, first, last, 110 * SLIDE)
    for cells, size in ((1, 1), (7, 3000), (100, 20_000), (1 << 14, 1 << 22)):
        tuning = EngineTuning(chunk_cells=cells, chunk_bytes=size)
        assert_same(run_whole(query, columns, first, last, 110 * SLIDE, tuning), wanted)
    grouping = Grouping(query, ErrorCount())
    grouping.add(env_of(columns, 0, 500), 500, first, last)
    grouping.emit(110 * SLIDE)
    assert grouping.rows == 6  # one cell for each value of i8 and for NULL, all with last = never


@pytest.mark.parametrize("few", [0, 50, 10**9])
def test_compaction_does_not_show(few: int) -> None:
    tuning = EngineTuning(few_cells=few, many_parts=10**9 if few else 1)
    rng = random.Random(4)
    first, last = random_windows(rng, 400, 20, True)
    columns = random_rows(rng, {"text", "i8", "finite", "f64"}, 400)
    kinds = [aggregate("count", "f64", True), aggregate("var_samp", "finite"), aggregate("min", "text")]
    query = query_of(("i8",), kinds, SLIDE)
    got = run_streaming(query, columns, first, last, 25 * SLIDE, rng, tuning)
    assert_same(got, expected(query, columns, first, last, 25 * SLIDE))


def test_state_is_bounded_by_the_cells_that_live() -> None:
    rng = random.Random(6)
    query = query_of(("i8",), [aggregate("count")], SLIDE)
    grouping = Grouping(query, ErrorCount())
    sizes = []
    for batch in range(300):
        columns = random_rows(rng, {"i8"}, 50)
        first = np.full(50, batch * SLIDE)
        grouping.add(env_of(columns, 0, 50), 50, first, first + 4 * SLIDE)
        grouping.emit((batch - 1) * SLIDE)
        grouping.commit()
        sizes.append((grouping.rows, grouping.memory_bytes))
    assert max(sizes)[0] <= 6 * 6 and max(size for _, size in sizes) < 10_000
    grouping.wind_back()
    assert (grouping.rows, grouping.memory_bytes) == sizes[-1]


def test_wind_back_without_a_commit_is_empty() -> None:
    query = query_of((), [aggregate("count")], SLIDE)
    grouping = Grouping(query, ErrorCount())
    zeros = np.zeros(3, np.int64)
    grouping.add({}, 3, zeros, zeros)
    assert grouping.rows == 1 and grouping.memory_bytes > 0
    grouping.wind_back()
    assert grouping.rows == 0 and grouping.memory_bytes == 0 and grouping.emit(0) == []
    grouping.wind_back()
    grouping.add({}, 3, zeros, zeros)
    assert [b.to_pylist() for b in grouping.emit(0)] == [[{"t": datetime.datetime(1970, 1, 1), "a0": 3}]]


def test_a_group_without_combinations_emits_nothing() -> None:
    grouping = Grouping(query_of((), [aggregate("count")], SLIDE), ErrorCount())
    assert grouping.emit(10**15) == []
    late = np.array([0]), np.array([10**15])
    grouping.add({}, 1, *late)
    assert grouping.rows == 0 and grouping.emit(2 * 10**15) == []
