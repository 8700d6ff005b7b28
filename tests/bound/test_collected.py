"""Quantiles, lists and texts put together: the same for every split, every order and every weight, and as DuckDB has
them."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import eddyline as el
from eddyline.bound.aggregates import State, accumulator, weighed
from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Literal, SourceColumn
from eddyline.bound.functions import aggregate
from eddyline.bound.types import sql_type
from eddyline.errors import ScriptError

DB = duckdb.connect()
SHARES = ["0", "0.1", "0.25", "0.333333333", "0.5", "0.9", "0.99", "1"]
NUMBERS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 5, 2**53 + 1, -(2**60), None],
    pa.uint8(): [0, 1, 200, None],
    pa.float64(): [0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e300, None],
    pa.float32(): [0.0, 1.5, 2.25, math.nan, None],
}
OTHERS: dict[pa.DataType, list[Any]] = {
    pa.string(): ["", "a", "b", "é", "zz", None],
    pa.bool_(): [True, False, None],
    pa.decimal128(9, 2): [Decimal("1.25"), Decimal("-3.5"), Decimal(0), None],
    pa.date32(): [0, 1, 19_700, None],
    pa.timestamp("us"): [0, -1, 10**15, None],
    pa.binary(): [b"", b"\xff", b"a", None],
}


def draw(type_: pa.DataType, rng: random.Random) -> tuple[pa.Array, np.ndarray]:
    pool = (NUMBERS | OTHERS)[type_]
    rows = rng.choice([1, 2, 3, 10, 60])
    ids = np.array([rng.randrange(3) for _ in range(rows)])
    return pa.array([rng.choice(pool) for _ in range(rows)], type_), ids


def ours(name: str, values: pa.Array, ids: np.ndarray, parameter: Literal | None, parts: int, weights: Any) -> pa.Array:
    made = aggregate(name, SourceColumn(0, "x", values.type), False, parameter)
    how = accumulator(made)
    states, cells = [], []
    for part in range(parts):
        at = np.arange(part, len(ids), parts)
        states.append(weighed(how, values.take(pa.array(at)), None if weights is None else weights[at], ids[at], 3))
        cells.append(np.arange(3))
    stacked: State = {n: pa.concat_arrays([s[n] for s in states]) for n in states[0]}
    return how.final(how.merge(stacked, np.concatenate(cells), 3), ErrorCount()).cast(made.type)


def theirs(sql: str, values: pa.Array, ids: np.ndarray) -> list[Any]:
    DB.register("given", pa.table({"x": values, "id": ids}))
    rows = dict(DB.execute(f"SELECT id, {sql} FROM given GROUP BY id").fetchall())
    return [rows.get(i) for i in range(3)]


def check(name: str, sql: str, type_: pa.DataType, parameter: Literal | None, seed: int) -> None:
    rng = random.Random(f"{name} {type_} {seed}")
    values, ids = draw(type_, rng)
    expected = theirs(sql, values, ids)
    weights = np.array([rng.randint(1, 3) for _ in ids]) if seed % 3 == 2 else None
    if weights is not None:
        every = np.repeat(np.arange(len(ids)), weights)
        expected = theirs(sql, values.take(pa.array(every)), ids[every])
    got = ours(name, values, ids, parameter, 1 + seed % 4, weights)
    for cell, (a, b) in enumerate(zip(got.to_pylist(), expected, strict=True)):
        if cell in ids:
            assert same(a, b), (name, type_, values.to_pylist(), ids.tolist(), a, b)
    DB.register("given", pa.table({"x": values}))
    (theirs_type,) = DB.execute(f"SELECT typeof({sql}) FROM given").fetchall()[0]
    assert sql_type(got.type) == theirs_type or (pa.types.is_list(got.type) and theirs_type.endswith("[]"))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or a == b or math.isclose(a, b, rel_tol=1e-6 if abs(a) < 100 else 1e-12)
    return bool(a == b)


@pytest.mark.parametrize("type_", NUMBERS)
@pytest.mark.parametrize("share", SHARES)
def test_quantile_cont_as_duckdb(type_: pa.DataType, share: str) -> None:
    literal = Literal(Decimal(share), pa.decimal128(18, 9))
    for seed in range(6):
        check("quantile_cont", f"quantile_cont(x, {share})", type_, literal, seed)


@pytest.mark.parametrize("type_", [*NUMBERS, *OTHERS])
def test_others_as_duckdb(type_: pa.DataType) -> None:
    for seed in range(6):
        for share in SHARES[seed % 2 :: 2]:
            literal = Literal(Decimal(share), pa.decimal128(18, 9))
            check("quantile_disc", f"quantile_disc(x, {share})", type_, literal, seed)
        check("array_agg", "list(x ORDER BY x)", type_, None, seed)


def test_texts_as_duckdb() -> None:
    for seed in range(12):
        check("string_agg", "string_agg(x, '; ' ORDER BY x)", pa.string(), Literal("; ", pa.string()), seed)


def rows(select: str) -> list[dict[str, Any]]:
    table = pa.table(
        {
            "ts": pa.array(range(1, 9), pa.timestamp("us")),
            "k": ["a", "a", "b", "a", "b", "b", "a", "a"],
            "x": [4, 1, None, 3, 7, 7, 2, None],
        }
    )
    found: list[dict[str, Any]] = []
    el.query(select, {"s": el.stream(table, time="ts")}).start(sink=lambda b: found.extend(b.to_pylist())).wait()
    return sorted(found, key=lambda row: str(row["k"]))


def test_as_written() -> None:
    select = """
        SELECT k, median(x) AS m, percentile_cont(0.25) WITHIN GROUP (ORDER BY x) AS p, quantile_disc(x, 0.5) AS d,
            percentile_disc(1) WITHIN GROUP (ORDER BY x) AS last, array_agg(x) AS l, string_agg(x::VARCHAR, '+') AS t,
            approx_count_distinct(x) AS n FROM s GROUP BY k HAVING median(x) > 1
    """
    assert rows(select) == [
        {"k": "a", "m": 2.5, "p": 1.75, "d": 2, "last": 4, "l": [1, 2, 3, 4, None], "t": "1+2+3+4", "n": 4},
        {"k": "b", "m": 7.0, "p": 7.0, "d": 7, "last": 7, "l": [7, 7, None], "t": "7+7", "n": 1},
    ]


@pytest.mark.parametrize(
    ("item", "answer"),
    [
        ("quantile_cont(x)", "must be a number from 0 to 1"),
        ("quantile_cont(x, 1.5)", "must be a number from 0 to 1"),
        ("quantile_cont(x, x)", "must be a number from 0 to 1"),
        ("quantile_cont(k, 0.5)", "integers and floats"),
        ("quantile_cont(CAST(x AS DECIMAL(9, 2)), 0.5)", r"write CAST\(x AS DOUBLE\)"),
        ("median(x, 0.5)", "MEDIAN takes"),
        ("string_agg(x)", "strings: write a CAST"),
        ("string_agg(k, k)", "separator"),
        ("list(x ORDER BY ts)", "ascending order"),
        ("list(DISTINCT x)", "DISTINCT"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC)", "from the other end"),
        ("sum(x) WITHIN GROUP (ORDER BY x)", "belongs to a percentile"),
    ],
)
def test_refused(item: str, answer: str) -> None:
    with pytest.raises(ScriptError, match=answer):
        rows(f"SELECT {item} AS k FROM s")


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ("ts - ts", "epoch(x)"),
        ("ts", "epoch(x)"),
        ("CAST(ts AS DATE)", "epoch(x)"),
        ("CAST(ts AS TIMESTAMPTZ)", "epoch(x)"),
        ("CAST(x AS DECIMAL(9, 2))", "CAST(x AS DOUBLE)"),
        ("k", "quantile_disc(x, 0.5)"),
        ("x > 2", "quantile_disc(x, 0.5)"),
    ],
)
def test_the_advice_for_a_median_can_be_followed(argument: str, instead: str) -> None:
    with pytest.raises(ScriptError) as refused:
        rows(f"SELECT k, median({argument}) AS m FROM s GROUP BY k")
    assert instead in str(refused.value) and "quantile_disc(x, 0.5)" in str(refused.value)
    advised = instead.replace("x", argument, 1) if "disc" in instead else f"median({instead.replace('x', argument, 1)})"
    for query in (advised, f"quantile_disc({argument}, 0.5)"):
        assert [row["m"] is not None for row in rows(f"SELECT k, {query} AS m FROM s GROUP BY k")] == [True, True]
