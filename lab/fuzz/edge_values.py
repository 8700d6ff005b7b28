"""Edge values of every type: limits, zeros of both signs, NaN, leap days, odd spellings of numbers and times."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from eddyline.bound import types as t

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
EDGES: dict[pa.DataType, Sequence[Any]] = {
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
    pa.decimal128(18, 0): [None, *map(D, ("0", "15", "-5", "9" * 18, "-" + "9" * 18))],
    pa.decimal128(38, 0): [None, *map(D, ("0", "-1", "25", "9" * 38, "-" + "9" * 38, "9" * 37 + "4"))],
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

_TWICE = (t.BOOL, t.INT64, t.DOUBLE, pa.decimal128(18, 3), t.STRING, t.DATE, t.TIMESTAMP, t.INTERVAL)
EDGE_SCHEMA = pa.schema([(f"c{i}", type) for i, type in enumerate((*EDGES, *_TWICE))])
"""A column of every type, and another one of some, so that a column meets another of its type."""


def edge_rows(rng: random.Random, rows: int, names: Sequence[str]) -> pa.Table:
    """Some columns of EDGE_SCHEMA: most values are edge values, the others are random. `ts` counts the rows."""
    types = [EDGE_SCHEMA.field(name).type for name in names]
    columns = [pa.array([_value(rng, type) for _ in range(rows)], type) for type in types]
    return pa.table([*columns, pa.array(range(rows), t.TIMESTAMP)], [*names, "ts"])


def _value(rng: random.Random, type: pa.DataType) -> object:
    return rng.choice(EDGES[type]) if rng.random() < 0.7 else _random(rng, type)


def _random(rng: random.Random, type: pa.DataType) -> object:
    """Any value of a type; small numbers as often as large ones."""
    if t.is_integer(type):
        low, high = t.int_bounds(type)
        return max(low, rng.getrandbits(rng.randint(1, high.bit_length())) * rng.choice((1, -1 if low else 1)))
    if type in t.FLOATS:
        return rng.gauss(0, 1) * 10.0 ** rng.randint(-8, 12)
    if pa.types.is_decimal(type):
        digits = rng.randint(1, type.precision)
        return D(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-type.scale)
    if type == t.STRING:
        return "".join(rng.choice("aAbé 10.-%_😀") for _ in range(rng.randint(0, 8)))
    if type == t.BINARY:
        return rng.randbytes(rng.randint(0, 5))
    if type == t.DATE:
        return date.fromordinal(rng.randint(1, date.max.toordinal()))
    if pa.types.is_timestamp(type):
        return datetime(1, 1, 1) + timedelta(microseconds=rng.randrange(9998 * 365 * 86_400_000_000))
    if type == t.INTERVAL:
        return timedelta(microseconds=rng.randint(-(10**15), 10**15))
    return rng.choice(EDGES[type])
