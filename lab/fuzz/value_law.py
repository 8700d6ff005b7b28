"""What a value from outside means, one value at a time in plain Python (docs/semantics.md, "Values from outside"): the
readers of columns are compared with it.

Values are numbers, texts, bytes, lists, dictionaries (structs and maps) and None; dates are days and times are units
since 1970, so that no year is too large.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.bound.types import int_bounds, is_list

BAD = "<bad>"
"""Stands for a value that the type cannot hold: its row is dead."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I | re.A)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?)?(Z|[+-]\d\d(?::?\d\d)?)?", re.A
)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Json:
    """A value of JSON: its kind (null, text, number, truth, array, object), what it holds and its spelling."""

    kind: str
    held: Any
    spelling: str


def of_text(text: str, type_: pa.DataType) -> Any:
    """A text as a value of a type that is not nested."""
    t = pa.types
    if t.is_string(type_):
        return text
    if t.is_binary(type_):
        return text.encode()
    text = text.strip()
    if t.is_boolean(type_):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), BAD)
    if t.is_integer(type_):
        if re.fullmatch(r"0x[0-9a-f]+", text, re.I):
            return _in_range(int(text, 16), type_)
        return _in_range(int(text), type_) if re.fullmatch(r"[+-]?\d{1,37}", text, re.A) else BAD
    if t.is_floating(type_):
        if re.fullmatch(r"[+-]?(nan|inf|infinity)", text, re.I):
            return float(text)
        return _float(Decimal(text), type_) if _NUMBER.fullmatch(text) else BAD
    if t.is_decimal(type_):
        return _decimal(Decimal(text), type_) if _NUMBER.fullmatch(text) else BAD
    if t.is_date(type_):
        try:
            return _days(text) if len(text) == 10 else BAD
        except ValueError:
            return BAD
    return _moment(text, type_)


def of_json(value: Json, type_: pa.DataType) -> Any:
    """A value of JSON as a type."""
    if value.kind == "null":
        return None
    if is_list(type_):
        return _all([of_json(v, type_.value_type) for v in value.held]) if value.kind == "array" else BAD
    if pa.types.is_struct(type_) or pa.types.is_map(type_):
        if value.kind != "object":
            return BAD
        if pa.types.is_map(type_):
            return _members({name: of_json(v, type_.item_type) for name, v in dict(value.held).items()})
        held = dict(value.held)
        null = Json("null", None, "null")
        return _members({field.name: of_json(held.get(field.name, null), field.type) for field in type_})
    text = value.held if value.kind == "text" else value.spelling
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        return BAD
    if pa.types.is_binary(type_):
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return BAD
    return of_text(text, type_)


def of_value(value: Any, source: pa.DataType, type_: pa.DataType) -> Any:
    """A value of a column of Arrow as another type; the types are of one kind."""
    t = pa.types
    if t.is_dictionary(source) or t.is_dictionary(type_):
        here, there = (some.value_type if t.is_dictionary(some) else some for some in (source, type_))
        return of_value(value, here, there)
    if value is None or source == type_:
        return value
    if is_list(type_):
        return _all([of_value(v, source.value_type, type_.value_type) for v in value])
    if t.is_map(type_):
        return _members({key: of_value(v, source.item_type, type_.item_type) for key, v in value.items()})
    if t.is_struct(type_):
        here = {field.name: field.type for field in source}
        some = {f.name: of_value(value[f.name], here[f.name], f.type) if f.name in here else None for f in type_}
        return _members(some)
    if isinstance(value, str):
        return of_text(value, type_)
    if isinstance(value, bytes):
        return _utf8(value) if t.is_string(type_) else value
    if t.is_date(source) or t.is_timestamp(source):
        return _of_moment(value, source, type_)
    return _of_number(value, source, type_)


def _of_number(value: Any, source: pa.DataType, type_: pa.DataType) -> Any:
    t = pa.types
    if t.is_string(type_):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if t.is_boolean(type_):
        return bool(value) if value in (0, 1) else BAD
    if t.is_integer(type_):
        whole = value == value and abs(value) != float("inf") and value == int(value)
        return _in_range(int(value), type_) if whole else BAD
    if t.is_decimal(type_):
        if isinstance(value, float):
            text = str(np.float32(value)) if t.is_float32(source) else repr(value)
            return _decimal(Decimal(text), type_) if _NUMBER.fullmatch(text) else BAD
        return _decimal(Decimal(int(value) if isinstance(value, bool) else value), type_)
    found = _float(value, type_)
    return BAD if abs(found) == float("inf") and isinstance(value, float) and abs(value) != float("inf") else found


def _of_moment(value: int, source: pa.DataType, type_: pa.DataType) -> Any:
    nanos = value * (86_400 * 10**9 if pa.types.is_date(source) else 10**9 // _PER_SECOND[source.unit])
    if pa.types.is_date(type_):
        return nanos // (86_400 * 10**9) if nanos % (86_400 * 10**9) == 0 else BAD
    if type_.unit != "ns" and getattr(source, "unit", "") == "ns":
        nanos -= nanos % 1000
    step = 10**9 // _PER_SECOND[type_.unit]
    return _in_range(nanos // step, pa.int64()) if nanos % step == 0 else BAD


def _moment(text: str, type_: pa.DataType) -> Any:
    found = _TIME.fullmatch(text)
    if not found or (found[6] and not found[3]):
        return BAD
    zone = timedelta()
    try:
        clock = [int(part or 0) for part in found.group(2, 3, 4)]
        since = timedelta(days=_days(found[1]), hours=clock[0], minutes=clock[1], seconds=clock[2])
        if clock[0] > 23 or max(clock[1:]) > 59:
            return BAD
        if found[6] and found[6] != "Z":
            digits = found[6][1:].replace(":", "").ljust(4, "0")
            hours, minutes = int(digits[:2]), int(digits[2:])
            if hours > 23 or minutes > 59:
                return BAD
            zone = timedelta(hours=hours, minutes=minutes) * (1 if found[6][0] == "+" else -1)
    except (ValueError, OverflowError):
        return BAD
    digits = 9 if type_.unit == "ns" else 6
    fraction = int((found[5] or "").ljust(digits, "0")[:digits]) * 10 ** (9 - digits)
    nanos = ((since.days * 86_400 + since.seconds) - round(zone.total_seconds())) * 10**9 + fraction
    step = 10**9 // _PER_SECOND[type_.unit]
    return _in_range(nanos // step, pa.int64()) if nanos % step == 0 else BAD


def _days(text: str) -> int:
    """The days since 1970 of a date; the year 0000 is 1 BC. ValueError if there is no such day."""
    is_zero = text.startswith("0000-")
    day = date.fromisoformat(f"0400{text[4:]}" if is_zero else text)
    return (day - date(1970, 1, 1)).days - 146_097 * is_zero


def _in_range(value: int, type_: pa.DataType) -> Any:
    low, high = int_bounds(type_)
    return value if low <= value <= high else BAD


def _float(value: float | Decimal, type_: pa.DataType) -> float:
    """The nearest one, of two the even one. A number beyond the range of the type is infinite."""
    double = float(value)
    if not pa.types.is_float32(type_):
        return double
    with np.errstate(over="ignore"):
        near = np.float32(double)
    if not np.isfinite(near) or not near:
        return float(near)
    exact, up = Fraction(value), np.float32(np.inf)  # the float of a double may be another one than that of the number
    around = [some for some in (np.nextafter(near, -up), near, np.nextafter(near, up)) if np.isfinite(some)]
    return float(min(around, key=lambda some: (abs(Fraction(float(some)) - exact), int(some.view(np.uint32)) & 1)))


def _decimal(value: Decimal, type_: pa.DataType) -> Any:
    with localcontext() as context:
        context.prec = 400
        scaled = value.scaleb(type_.scale)
        fits = scaled == scaled.to_integral_value() and abs(scaled) < 10**type_.precision
        return value if fits else BAD


def _utf8(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return BAD


def _all(values: list[Any]) -> Any:
    return BAD if any(_is_bad(v) for v in values) else values


def _members(values: dict[str, Any]) -> Any:
    return BAD if any(_is_bad(v) for v in values.values()) else values


def _is_bad(value: Any) -> bool:
    return isinstance(value, str) and value == BAD


def held_in(array: pa.Array) -> list[Any]:
    """The values of a column as this module has them."""
    t, type_ = pa.types, array.type
    if t.is_dictionary(type_):
        return held_in(array.dictionary_decode())
    if t.is_date(type_) or t.is_timestamp(type_):
        return list(array.view(pa.int32() if t.is_date32(type_) else pa.int64()).to_pylist())
    if is_list(type_):
        return [None if not value.is_valid else held_in(value.values) for value in array]
    if t.is_map(type_):
        pairs = [None if not v.is_valid else (held_in(v.values.field(0)), held_in(v.values.field(1))) for v in array]
        return [None if pair is None else dict(zip(*pair, strict=True)) for pair in pairs]
    if t.is_struct(type_):
        columns = {field.name: held_in(values) for field, values in zip(type_, array.flatten(), strict=True)}
        valid = array.is_valid().to_pylist()
        return [{n: column[row] for n, column in columns.items()} if ok else None for row, ok in enumerate(valid)]
    return list(array.to_pylist())


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, NaN being NaN and 0.0 other than -0.0."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return type(one) is type(other) and bool(one == other)
