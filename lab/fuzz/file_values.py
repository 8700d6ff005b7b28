"""Random odd values for the fuzzer of files: types, texts, values of JSON, and values of columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from eddyline.bound.types import int_bounds, is_list
from lab.fuzz.value_law import Json

PLAIN: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(4,1)": pa.decimal128(4, 1),
    "DECIMAL(38,10)": pa.decimal128(38, 10),
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}
_TEXTS = (
    *("", " ", "x", "NULL", "null", "true", "FALSE", "0", "1", "-1", "+7", "007", " 42 ", "128", "-129", "256", "1.5"),
    *("1.0", ".5", "5.", "1e3", "1E-2", "-0", "-0.0", "0.1", "999.9", "1000.0", "12.34", "nan", "-inf", "Infinity"),
    *("2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551615"),
    *("9007199254740993", "12345678901234567890123456789.0123456789", "1e400", "1e39", "1e-400", "3.4028236e38"),
    *("2026-01-01", "2026-02-29", "2026-13-01", "26-1-1", "0001-01-01", "9999-12-31", "2026-01-01 12:34:56"),
    *("2026-01-01T12:34:56.123456", "2026-01-01 12:34:56.123456789", "1960-01-01 00:00:00.1234567", "1500-06-01 12:00"),
    *("2026-01-01 12:34:56Z", "2026-01-01 12:34:56.5+02:00", "2026-01-01 25:00:00", "2026-01-01T00:00:00-1130"),
    *("äöü", "日本", "👩", "a,b", 'say "hi"', "tab\there", "back\\slash", "/w==", "YWI=", "[1, 2]", '{"a": 1}'),
)
_NUMBERS = (
    *("0", "1", "-1", "-0", "1.5", "1.50", "-0.0", "127", "128", "256", "1e3", "1E+2", "2.0", "999.9", "1e400", "0.1"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551616", "12345678901234567890.12", "1e-7"),
)


def type_of(rng: Random, nested: bool, depth: int = 2) -> tuple[str, pa.DataType]:
    """The name of a type and the type."""
    kind = rng.choice(("[]", "STRUCT", "MAP")) if nested and depth and rng.random() < 0.45 else ""
    if not kind:
        return rng.choice(list(PLAIN.items()))
    name, inner = type_of(rng, nested, depth - 1)
    if kind == "[]":
        return f"{name}[]", pa.list_(inner)
    if kind == "MAP":
        return f"MAP(VARCHAR, {name})", pa.map_(pa.string(), inner)
    other, second = type_of(rng, nested, depth - 1)
    return f"STRUCT(a {name}, b {other})", pa.struct([("a", inner), ("b", second)])


def text(rng: Random, type_: pa.DataType) -> str:
    """A text, mostly one that the type can hold."""
    t = pa.types
    likely: list[Callable[[str], bool]] = [lambda some: True]
    if t.is_integer(type_) or t.is_decimal(type_) or t.is_floating(type_):
        likely.append(lambda some: some[:1].isdigit() and "-" not in some[1:5])
    if t.is_date(type_) or t.is_timestamp(type_):
        likely.append(lambda some: some[4:5] == "-")
    if t.is_integer(type_) and rng.random() < 0.5:
        low, high = int_bounds(type_)
        return str(rng.choice((low, high, low - 1, high + 1, rng.randint(low, high))))
    return rng.choice([some for some in _TEXTS if likely[-1](some)] if rng.random() < 0.8 else _TEXTS)


def json_value(rng: Random, type_: pa.DataType | None, depth: int = 3) -> Json:
    """A value of JSON, mostly one that the type can hold."""
    if rng.random() < 0.08:
        return Json("null", None, "null")
    if type_ is not None and depth and rng.random() < 0.92:
        if is_list(type_):
            return array([json_value(rng, type_.value_type, depth - 1) for _ in range(rng.randint(0, 3))], rng)
        if pa.types.is_map(type_):
            names = [rng.choice(("x", "y", "ä", "")) for _ in range(rng.randint(0, 3))]
            return object_([(name, json_value(rng, type_.item_type, depth - 1)) for name in names], rng)
        if pa.types.is_struct(type_):
            fields = [*type_, *rng.sample(list(type_), rng.randint(0, 1))]
            held = [(f.name, json_value(rng, f.type, depth - 1)) for f in fields if rng.random() < 0.85]
            return object_(held, rng)
    if depth and rng.random() < 0.06:
        inner = [json_value(rng, None, depth - 1) for _ in range(rng.randint(0, 2))]
        return array(inner, rng) if rng.random() < 0.5 else object_([("k", value) for value in inner], rng)
    odd = rng.random()
    if odd < 0.1:
        truth = rng.random() < 0.5
        return Json("truth", truth, str(truth).lower())
    if odd < 0.4:
        number = rng.choice(_NUMBERS)
        return Json("number", number, number)
    held_text = "\ud800x" if odd > 0.98 else text(rng, type_ or pa.string())
    return Json("text", held_text, json.dumps(held_text, ensure_ascii=odd > 0.95 or rng.random() < 0.3))


def array(values: list[Json], rng: Random) -> Json:
    """An array of JSON."""
    gap = rng.choice(("", " "))
    return Json("array", values, "[" + f"{gap},{gap}".join(value.spelling for value in values) + "]")


def object_(members: list[tuple[str, Json]], rng: Random) -> Json:
    """An object of JSON, perhaps with two members of one name."""
    gap = rng.choice(("", " ", "\t"))
    spelled = (f"{json.dumps(name, ensure_ascii=False)}{gap}:{gap}{value.spelling}" for name, value in members)
    return Json("object", members, "{" + f",{gap}".join(spelled) + "}")


def source_type(rng: Random, type_: pa.DataType) -> pa.DataType:
    """A type of a column that may be read as another."""
    t = pa.types
    if is_list(type_):
        return pa.list_(source_type(rng, type_.value_type))
    if t.is_map(type_):
        return pa.map_(pa.string(), source_type(rng, type_.item_type))
    if t.is_struct(type_):
        return pa.struct([pa.field(f.name, source_type(rng, f.type)) for f in type_])
    if rng.random() < 0.4:
        return type_
    if t.is_string(type_) or t.is_binary(type_):
        numbers = [pa.bool_(), pa.int64(), pa.float64(), pa.decimal128(4, 1)] if t.is_string(type_) else []
        return rng.choice([pa.string(), pa.binary(), *numbers])
    if t.is_date(type_) or t.is_timestamp(type_):
        return rng.choice([pa.date32(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")), pa.string()])
    return rng.choice([p for p in PLAIN.values() if t.is_boolean(p) or t.is_decimal(p) or t.is_primitive(p)][:10])


def value(rng: Random, type_: pa.DataType) -> Any:
    """A value of a column of this type."""
    t = pa.types
    if rng.random() < 0.1:
        return None
    if is_list(type_):
        return [value(rng, type_.value_type) for _ in range(rng.randint(0, 3))]
    if t.is_map(type_):
        return {name: value(rng, type_.item_type) for name in rng.sample(("x", "y", "ä"), rng.randint(0, 3))}
    if t.is_struct(type_):
        return {field.name: value(rng, field.type) for field in type_}
    if t.is_boolean(type_):
        return rng.random() < 0.5
    if t.is_integer(type_):
        low, high = int_bounds(type_)
        return max(low, min(high, rng.choice((0, 1, 2, 7, -1, 100, 2**24 + 1, 2**53, 2**53 + 1, low, high))))
    if t.is_floating(type_):
        odd = (float("nan"), float("inf"), -0.0, 0.1, 1e300, 5e-324, 2.0**63, 1e20)
        held = rng.choice((0.0, 1.0, 2.0, -7.0, 1.5, 100.0, 255.0, 12.3, *odd))
        return _as_float32(held) if t.is_float32(type_) else held
    if t.is_decimal(type_):
        return Decimal(rng.choice((0, 1, 10, 15, -70, 9999, -9999))).scaleb(-type_.scale)
    if t.is_string(type_):
        return rng.choice(_TEXTS)
    if t.is_binary(type_):
        return rng.choice((b"", b"x", b"\xff\x00", "ä".encode(), b"\xed\xa0\x80"))
    if t.is_date(type_):
        return rng.choice((0, -1, 20454, -719162, 2932896, 2932897, 106_000_000))
    per_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[type_.unit]
    far = min(2**62, 36_000_000 * per_day)
    return rng.choice((0, 1, -1, 1001, -1001, 1_500_000, 20454 * per_day, 20454 * per_day + 1, -per_day, far))


def _as_float32(held: float) -> float:
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(held))


def as_column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values as a column."""
    t = pa.types
    if t.is_date(type_):
        return pa.array(values, pa.int32()).view(type_)
    if t.is_timestamp(type_):
        return pa.array(values, pa.int64()).view(type_)
    if not t.is_nested(type_):
        return pa.array(values, type_)
    missing = pa.array([v is None for v in values], pa.bool_())
    if t.is_struct(type_):
        fields = [as_column([None if v is None else v[f.name] for v in values], f.type) for f in type_]
        return pa.StructArray.from_arrays(fields, fields=list(type_), mask=missing)
    lengths = [0 if v is None else len(v) for v in values]
    ends = pa.array([sum(lengths[:at]) for at in range(len(lengths) + 1)], pa.int32())
    if t.is_map(type_):
        keys = pa.array([key for v in values if v for key in v], pa.string())
        items = as_column([item for v in values if v for item in v.values()], type_.item_type)
        return pa.MapArray.from_arrays(ends, keys, items, type_, mask=missing)
    inner = as_column([item for v in values if v for item in v], type_.value_type)
    return pa.ListArray.from_arrays(ends, inner, type_, mask=missing)


def relaid(rng: Random, column: pa.Array) -> pa.Array:
    """The same values in another layout of Arrow."""
    t, type_ = pa.types, column.type
    rows = len(column)
    if rng.random() < 0.5 or not rows:
        return column
    if t.is_string(type_) or t.is_binary(type_):
        views = (pa.string_view(), pa.large_string()) if t.is_string(type_) else (pa.binary_view(), pa.large_binary())
        column = column.cast(rng.choice(views))
    elif t.is_list(type_):
        inner = relaid(rng, column.values)
        ends, lengths = column.offsets, column.value_lengths().fill_null(0)
        mask = column.is_null()
        if rng.random() < 0.5:
            offsets = pa.array(column.offsets.to_pylist()[:-1], pa.int32())
            column = pa.ListViewArray.from_arrays(offsets, lengths.cast(pa.int32()), inner, mask=mask)
        else:
            column = pa.LargeListArray.from_arrays(ends.cast(pa.int64()), inner, mask=mask)
    elif t.is_struct(type_):
        fields = [relaid(rng, field) for field in column.flatten()]
        column = pa.StructArray.from_arrays(fields, names=type_.names, mask=column.is_null())
    wrap = rng.random()
    if wrap < 0.25:
        return pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int16()), column)
    if wrap < 0.5:
        return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, rows + 1), pa.int32()), column)
    return column
