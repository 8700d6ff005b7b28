"""Edge values of every type, and calls evaluated both by DuckDB and by us on the same table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr, Literal, SourceColumn
from eddyline.bound.functions import call, cast

NAN, INF = math.nan, math.inf
D = Decimal


def _integers(type: pa.DataType) -> list[int | None]:
    low, high = t.int_bounds(type)
    return [None, *sorted({v for v in (0, 1, -1, 2, 3, -7, 100, low, low + 1, high, high - 1) if low <= v <= high})]


_DAYS = [
    date(1970, 1, 1),
    date(1969, 12, 31),
    date(2000, 2, 29),
    date(1900, 3, 1),
    date(2024, 12, 31),
    date(2021, 1, 3),
    date(1, 1, 1),
    date(9999, 12, 31),
    date(2020, 12, 28),
    date(2023, 1, 1),
]
_MOMENTS = [
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2000, 2, 29, 12, 30, 15, 500000),
    datetime(1900, 3, 1, 0, 0, 0, 1),
    datetime(2024, 12, 31, 23, 0),
    datetime(2021, 1, 3, 4, 5, 6, 120000),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59),
    datetime(2020, 1, 31, 10),
    datetime(2023, 1, 1, 13),
]
_FLOATS = [None, 0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.5, 2.675, 123456.789, 1e30, -1e-30, 3e9, NAN, INF, -INF, 100.0]
_TEXTS = [
    None,
    "",
    "a",
    "A b",
    " x ",
    "né😀",
    "a%b",
    "a_b",
    "12",
    " 1.5e1 ",
    "abc",
    "Straße",
    "2020-02-29",
    "true",
    "nan",
    "a,b,,c",
    "-7",
    "\tq\n",
    "2021-01-03 04:05:06.5",
    "\\",
    "É",
    "aab",
    "1_000",
    "0x1F",
    "1e400",
    "12abc",
    "10:30",
    "2020-1-5",
    "99999999999999999999",
    "-0.5",
    "2020-02-30",
    "9.995",
    " 2020-01-05T10:11:12Z",
    "t",
    "NO",
    "2020-01-05 10:11:12+02:30",
    "2.5",
    "\u00a0y\u3000",
    "102021-03-23",
    "2020-01-05 (BC)",
    "-0005-03-01",
    "2020-01-05 1:",
    "2020-01-05 1::2",
    "2020-01-05 24:00:00",
    "2020-01-05 1:1",
    "1999-2-3 x",
    "0000-01-01",
]

NESTED = pa.struct([("a", t.INT64), ("B c", t.STRING), ("n", pa.struct([("m", pa.timestamp("ms")), ("d", t.DOUBLE)]))])
LISTED = pa.list_(pa.struct([("x", t.INT64), ("l", pa.list_(t.STRING))]))
VALUES: dict[pa.DataType, Sequence[Any]] = {
    t.BOOL: [None, True, False],
    **{type: _integers(type) for type in t.INTEGERS},
    t.FLOAT: [*_FLOATS, 16777217.0],
    t.DOUBLE: [*_FLOATS, 1e308, -1e308, 5e-324, 9007199254740993.0, 9.3e18, 0.1],
    pa.decimal128(4, 1): [None, *map(D, ("0", "0.5", "-0.5", "1.5", "-2.5", "99.9", "999.9", "-999.9"))],
    pa.decimal128(10, 2): [None, *map(D, ("0", "0.05", "-0.5", "1.25", "-2.5", "99999999.99", "-99999999.99", "100"))],
    pa.decimal128(18, 3): [None, *map(D, ("0", "0.001", "-1.5", "123456789012345.678", "-999999999999999.999", "2"))],
    pa.decimal128(38, 10): [
        None,
        *map(D, ("0", "1.5", "-2.25", "9999999999999999999999999999.9999999999", "-0.0000000001")),
    ],
    t.STRING: _TEXTS,
    t.BINARY: [None, b"", b"a", b"\x00\xff", b"\x00", "né😀".encode(), b'{"a": "\\\\"}', b"\xed\xa0\x80", b"\xc0\x80"],
    t.DATE: [None, *_DAYS],
    t.TIMESTAMP: [None, *_MOMENTS],
    t.TIMESTAMPTZ: [None, *_MOMENTS[:6]],
    t.INTERVAL: [None, *(timedelta(microseconds=v) for v in (0, 1, -1, 86_400_000_000, -3_600_000_001, 10**15))],
    NESTED: [
        None,
        {},
        {"a": 1, "B c": "x"},
        {"a": -7, "n": {"m": _MOMENTS[2], "d": 1.5}},
        {"B c": "é", "n": {"d": NAN}},
    ],
    LISTED: [None, [], [None], [{"x": 1, "l": ["a", None, ""]}], [{"x": 2}, None, {"x": 3, "l": []}]],
}


@dataclass(frozen=True)
class Case:
    """A call over columns a, b, c of the types given and constants, and how SQL writes it."""

    name: str
    args: tuple[Expr, ...]
    sql: str
    variant: str = ""

    def expr(self) -> Expr:
        if self.name in ("cast", "try_cast"):
            return cast(self.args[0], t.arrow_type(self.variant), self.name == "try_cast")
        return call(self.name, self.args, self.variant)


def col(type: pa.DataType, at: int = 0) -> SourceColumn:
    """Column a, b or c of the grid."""
    return SourceColumn(0, "abc"[at], type)


def lit(value: object, type: pa.DataType | None = None) -> Literal:
    """A constant as the binder makes it."""
    if type is None:
        kinds = {bool: t.BOOL, int: t.INT32, str: t.STRING, float: t.DOUBLE, type_(None): t.NULL, timedelta: t.INTERVAL}
        type = kinds[type_(value)]
        if isinstance(value, int) and not isinstance(value, bool) and not -(2**31) <= value < 2**31:
            type = t.INT64
    return Literal(value // timedelta(microseconds=1) if isinstance(value, timedelta) else value, type)


type_ = type


@cache
def table(types: tuple[pa.DataType, ...]) -> pa.Table:
    """Every combination of the edge values of up to three types."""
    rows: list[tuple[Any, ...]] = [()]
    for type in types:
        rows = [(*row, value) for row in rows for value in VALUES[type]]
    return pa.table({"abc"[i]: pa.array([r[i] for r in rows], type) for i, type in enumerate(types)})


CONNECTION = duckdb.connect()


def ours(expr: Expr, data: pa.Table) -> tuple[pa.Array, int]:
    """What we make of an expression, and how many values could not be computed."""
    env = {SourceColumn(0, n, data[n].type): data[n].combine_chunks() for n in data.column_names}
    errors = ErrorCount()
    return evaluate(expr, env, data.num_rows, errors), errors.count


def theirs(sql: str, data: pa.Table) -> tuple[list[Any], str]:
    """What DuckDB makes of it, NULL where it raises, and its type."""
    CONNECTION.register("grid", data)
    rows = CONNECTION.sql(f"SELECT TRY({sql}) AS r, typeof({sql}) AS t FROM grid").to_arrow_table()
    return plain(rows["r"].combine_chunks()), rows["t"][0].as_py()


def plain(array: pa.Array) -> list[Any]:
    """Values as Python compares them: times as integers."""
    type = array.type
    if pa.types.is_interval(type):
        return [None if v is None else v.days * 86_400_000_000 + v.nanoseconds // 1000 for v in array.to_pylist()]
    if pa.types.is_temporal(type):
        wide = pa.int32() if type.bit_width == 32 else pa.int64()
        return list(array.view(wide).to_pylist())
    return list(array.to_pylist())


def same(a: Any, b: Any) -> bool:
    """Equal; floats within 1e-12, NaN equal to itself."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-12)
    return bool(a == b) and (a is None) == (b is None)


def differences(expr: Expr, sql: str, data: pa.Table) -> list[str]:
    """Where the two disagree, in words."""
    mine, _ = ours(expr, data)
    other, type = theirs(sql, data)
    found = []
    if mine.type != t.logical(expr.type):
        found.append(f"{sql}: declared {expr.type}, evaluated {mine.type}")
    if t.sql_type(mine.type) != type and type != '"NULL"':
        found.append(f"{sql}: type {t.sql_type(mine.type)}, DuckDB {type}")
    for row, (a, b) in enumerate(zip(plain(mine), other, strict=True)):
        if not same(a, b):
            at = {name: plain(data[name].slice(row, 1).combine_chunks())[0] for name in data.column_names}
            found.append(f"{sql} at {at}: {a!r}, DuckDB {b!r}")
    return found
