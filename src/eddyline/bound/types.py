"""DuckDB's types over Arrow types: names, the common type of several, and how values are decoded for evaluation.

A *logical* type is one that functions know: dictionaries and the other layouts of strings are strings, every timestamp
is in microseconds. All other types (lists, structs, ...) are opaque: their values can only be selected, counted and
tested for NULL, and fields can be taken from structs. Kernels see timestamps without their zone, as instants in UTC;
only the type of the expression has the zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BOOL, NULL, STRING, BINARY = pa.bool_(), pa.null(), pa.string(), pa.binary()
INT8, INT16, INT32, INT64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
UINT8, UINT16, UINT32, UINT64 = pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
DATE, TIMESTAMP, TIMESTAMPTZ, TIME = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us")
INTERVAL, MONTHS = pa.duration("us"), pa.month_day_nano_interval()
HUGEINT = pa.decimal128(38, 0)
"""Stands for DuckDB's 128-bit integer, which we do not have, where two 64-bit integers have no other common type for a
comparison."""

EARLIEST, LATEST = -9_223_372_022_400_000_000, 2**63 - 2
"""The first and the last moment of a timestamp, in microseconds since 1970: DuckDB's."""

SIGNED, UNSIGNED = (INT8, INT16, INT32, INT64), (UINT8, UINT16, UINT32, UINT64)
INTEGERS, FLOATS = (*SIGNED, *UNSIGNED), (FLOAT, DOUBLE)
_DIGITS = {INT8: 3, INT16: 5, INT32: 10, INT64: 19, UINT8: 3, UINT16: 5, UINT32: 10, UINT64: 20}

_NAMES: dict[pa.DataType, tuple[str, ...]] = {
    BOOL: ("BOOLEAN", "BOOL", "LOGICAL"),
    INT8: ("TINYINT", "INT1"),
    INT16: ("SMALLINT", "INT2", "SHORT"),
    INT32: ("INTEGER", "INT", "INT4", "SIGNED"),
    INT64: ("BIGINT", "INT8", "LONG"),
    UINT8: ("UTINYINT",),
    UINT16: ("USMALLINT",),
    UINT32: ("UINTEGER",),
    UINT64: ("UBIGINT",),
    FLOAT: ("FLOAT", "REAL", "FLOAT4"),
    DOUBLE: ("DOUBLE", "FLOAT8", "DOUBLE PRECISION"),
    STRING: ("VARCHAR", "STRING", "TEXT", "CHAR", "BPCHAR"),
    BINARY: ("BLOB", "BINARY", "BYTEA", "VARBINARY"),
    DATE: ("DATE",),
    TIMESTAMP: ("TIMESTAMP", "DATETIME", "TIMESTAMP WITHOUT TIME ZONE"),
    TIMESTAMPTZ: ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"),
    TIME: ("TIME",),
    INTERVAL: ("INTERVAL",),
    NULL: ("NULL",),
}
SQL_NAMES = {str(type): names[0] for type, names in _NAMES.items()}
"""The SQL name of each type, by its Arrow name."""
_BY_NAME = {name: type for type, names in _NAMES.items() for name in names}
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_SIZED = re.compile(r"(VARCHAR|CHAR|BPCHAR|STRING|TEXT)\s*\(\s*\d+\s*\)")


class TypeMismatch(Exception):
    """A call that cannot be typed; the message says what is wrong and what would be right. The binder adds the place:
    that of the constant with the value `culprit`, if there is one. It also adds the texts of the arguments: if they
    need one type (`unlike` are their types), or if one is a text that may be a number (`from_text`)."""

    def __init__(
        self,
        message: str,
        culprit: str | None = None,
        unlike: Sequence[pa.DataType] = (),
        from_text: bool = False,
    ) -> None:
        super().__init__(message)
        self.culprit, self.unlike, self.from_text = culprit, tuple(unlike), from_text


def arrow_type(sql_name: str) -> pa.DataType:
    """The Arrow type of a SQL type name.

    >>> arrow_type("decimal(10, 2)"), arrow_type("VARCHAR")
    (Decimal128Type(decimal128(10, 2)), DataType(string))
    """
    name = " ".join(sql_name.upper().split())
    if name in _BY_NAME:
        return _BY_NAME[name]
    if found := _DECIMAL.fullmatch(name):
        precision = int(found[1] or 18)
        scale = int(found[2] or 0) if found[1] else 3
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
        raise TypeMismatch(f"{sql_name} is no type: DECIMAL(p, s) takes 1 <= p <= 38 and s <= p")
    if _SIZED.fullmatch(name):
        return STRING
    raise TypeMismatch(
        f"there is no type {sql_name}: the types are {', '.join(n[0] for n in _NAMES.values())}, DECIMAL(p, s)"
    )


def sql_type(type: pa.DataType) -> str:
    """The SQL name of an Arrow type; a type without a SQL name keeps Arrow's.

    >>> sql_type(pa.int64()), sql_type(pa.dictionary(pa.int8(), pa.string())), sql_type(pa.decimal128(4, 1))
    ('BIGINT', 'VARCHAR', 'DECIMAL(4,1)')
    >>> sql_type(pa.list_(pa.struct([("id", pa.int64())])))
    'STRUCT(id BIGINT)[]'
    """
    known = logical(type)
    if pa.types.is_struct(type):
        return f"STRUCT({', '.join(f'{field.name} {sql_type(field.type)}' for field in type)})"
    if pa.types.is_map(type):
        return f"MAP({sql_type(type.key_type)}, {sql_type(type.item_type)})"
    if is_list(type):
        return f"{sql_type(type.value_type)}[]"
    if pa.types.is_decimal(known):
        return f"DECIMAL({known.precision},{known.scale})"
    if is_zoned(known):
        return "TIMESTAMP WITH TIME ZONE"
    if is_moment(type) and type.unit != "us":
        return f"TIMESTAMP_{type.unit.upper()}"
    return "INTERVAL" if known == MONTHS else _NAMES[known][0] if known in _NAMES else str(type)


def example(type: pa.DataType) -> str:
    """How a constant of a type is written, for messages; empty where there is no short way."""
    known = logical(type)
    if is_number(known):
        return "42" if is_integer(known) else "1.5"
    return "'2024-02-29 23:59:59'" if pa.types.is_timestamp(known) else _EXAMPLES.get(known, "")


_EXAMPLES = {BOOL: "TRUE", DATE: "'2024-02-29'", TIME: "'23:59:59'"}


@lru_cache(maxsize=4096)
def logical(type: pa.DataType) -> pa.DataType:
    """The type that functions see for a column of this Arrow type."""
    if pa.types.is_dictionary(type):
        return logical(type.value_type)
    if pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return STRING
    if pa.types.is_large_binary(type) or pa.types.is_binary_view(type) or pa.types.is_fixed_size_binary(type):
        return BINARY
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", type.tz)
    if pa.types.is_duration(type):
        return INTERVAL
    if pa.types.is_time(type):
        return TIME
    if pa.types.is_date64(type):
        return DATE
    if pa.types.is_float16(type):
        return FLOAT
    if pa.types.is_decimal32(type) or pa.types.is_decimal64(type):
        return pa.decimal128(type.precision, type.scale)
    return type


@lru_cache(maxsize=4096)
def physical(type: pa.DataType) -> pa.DataType:
    """The type that kernels see: logical, and without a zone."""
    known = logical(type)
    return TIMESTAMP if pa.types.is_timestamp(known) else known


_COARSE = {"s": 1_000_000, "ms": 1_000}


def decode(array: pa.Array) -> pa.Array:
    """The values of a column as kernels take them."""
    wanted = physical(array.type)
    if array.type == wanted:
        return array
    if pa.types.is_dictionary(array.type):
        return decode(array.dictionary_decode())
    if getattr(array.type, "unit", "") == "ns":
        array = floored(array)
    if pa.types.is_timestamp(array.type):
        if array.type.unit in _COARSE:  # a time that microseconds cannot hold becomes NULL
            unit, raw = _COARSE[array.type.unit], array.view(pa.int64())
            fits = pc.and_(pc.less_equal(raw, LATEST // unit), pc.greater_equal(raw, EARLIEST // unit))
            array = pc.if_else(fits, raw, pa.scalar(None, pa.int64())).view(pa.timestamp(array.type.unit))
        return array.cast(pa.timestamp(array.type.unit)).cast(TIMESTAMP)
    return array.cast(wanted, safe=False)


def floored(array: pa.Array) -> pa.Array:
    """Times in nanoseconds as microseconds, rounded towards the past; a cast would round towards 1970.

    >>> floored(pa.array([-1, 1999, None], pa.timestamp("ns"))).view(pa.int64()).to_pylist()
    [-1, 1, None]
    """
    type_ = array.type
    coarse = pa.timestamp("us", type_.tz) if is_moment(type_) else INTERVAL if pa.types.is_duration(type_) else TIME
    raw = array.view(pa.int64())
    missing = raw.is_null().to_numpy(zero_copy_only=False) if raw.null_count else None
    whole = np.floor_divide(raw.fill_null(0).to_numpy(), 1000)
    return pa.array(whole, mask=missing).view(coarse)


def in_one_zone(type: pa.DataType) -> pa.DataType:
    """A timestamp type with its zone replaced by UTC, in which all timestamps with a zone are shown and computed."""
    return pa.timestamp(type.unit, "UTC") if is_zoned(type) else type


def is_opaque(type: pa.DataType) -> bool:
    """Whether the type has no functions."""
    known = logical(type)
    return not (known in _NAMES or known == MONTHS or is_zoned(known) or pa.types.is_decimal128(known))


def is_list(type: pa.DataType) -> bool:
    """A list, of any layout."""
    kinds = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, kind)(type) for kind in kinds)


def is_moment(type: pa.DataType) -> bool:
    """A timestamp, with or without a time zone."""
    return bool(pa.types.is_timestamp(type))


def is_zoned(type: pa.DataType) -> bool:
    """A timestamp with a time zone."""
    return bool(pa.types.is_timestamp(type) and type.tz is not None)


def is_integer(type: pa.DataType) -> bool:
    """A whole number of at most 64 bits."""
    return type in INTEGERS


def is_number(type: pa.DataType) -> bool:
    """An integer, a float or a decimal."""
    return type in INTEGERS or type in FLOATS or pa.types.is_decimal128(type)


def as_decimal(type: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer or decimal type."""
    return type if pa.types.is_decimal128(type) else pa.decimal128(_DIGITS[type], 0)


def int_bounds(type: pa.DataType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    bits = type.bit_width
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type in SIGNED else (0, (1 << bits) - 1)


def common(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type to which CASE, COALESCE and comparisons cast values of all these types; None if there is none.

    >>> common([pa.int64(), pa.float64()]), common([pa.date32(), pa.timestamp("us")]), common([pa.string(), pa.int8()])
    (DataType(double), TimestampType(timestamp[us]), None)
    """
    result: pa.DataType | None = NULL
    for type in types:
        result = _common_of_two(result, logical(type)) if result is not None else None
    return result


def _common_of_two(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if is_number(a) and is_number(b):
        return _common_number(a, b)
    if BOOL in (a, b) and (is_integer(a) or is_integer(b)):
        return b if a == BOOL else a
    moments = [t for t in (a, b) if t == DATE or pa.types.is_timestamp(t)]
    if len(moments) == 2:
        return next((t for t in moments if is_zoned(t)), TIMESTAMP)
    return None


def _common_number(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if a in FLOATS or b in FLOATS:
        return DOUBLE if DOUBLE in (a, b) else FLOAT
    if a in INTEGERS and b in INTEGERS:
        if (a in SIGNED) == (b in SIGNED):
            return max(a, b, key=lambda t: t.bit_width)
        signed, unsigned = (a, b) if a in SIGNED else (b, a)
        wider = next((s for u, s in zip(UNSIGNED, (*SIGNED[1:], HUGEINT), strict=True) if u == unsigned))
        return HUGEINT if wider == HUGEINT else max(signed, wider, key=lambda t: t.bit_width)
    mixed = a in INTEGERS or b in INTEGERS
    whole, scale = _digits([a, b])
    return pa.decimal128(min(38, whole + scale), scale if mixed else min(scale, 38 - whole))


def _digits(types: Sequence[pa.DataType]) -> tuple[int, int]:
    """Digits before and after the point that hold every value of integer and decimal types."""
    decimals = [as_decimal(type) for type in types]
    return max(d.precision - d.scale for d in decimals), max(d.scale for d in decimals)


def comparable(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type in which values of all these types are compared: as `common`, but no digit of a decimal is lost.

    >>> comparable([pa.decimal128(38, 0), pa.decimal128(2, 1)])
    Decimal256Type(decimal256(76, 1))
    """
    known = [logical(type) for type in types if type != NULL]
    if any(pa.types.is_decimal128(k) for k in known) and all(is_integer(k) or pa.types.is_decimal128(k) for k in known):
        whole, scale = _digits(known)
        if whole + scale > 38:
            return pa.decimal256(76, scale)
    return common(types)


def holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether a cast from `narrow` to `wide` cannot fail: both are integers and every value fits."""
    if not (is_integer(wide) and is_integer(narrow)):
        return False
    bounds = [int_bounds(wide)[0], int_bounds(narrow)[0], int_bounds(narrow)[1], int_bounds(wide)[1]]
    return all(x <= y for x, y in pairwise(bounds))


def keeps_apart(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Whether a cast from `narrow` to `wide` gives different values for different values. (Values that `wide` cannot
    hold become NULL, as a date of the year 300000 does.)

    >>> keeps_apart(pa.int32(), pa.float64()), keeps_apart(pa.int64(), pa.float64())
    (True, False)
    """
    source, target = logical(narrow), logical(wide)
    if pa.types.is_timestamp(narrow) and narrow.unit == "ns":
        return bool(narrow == wide)
    if physical(source) == physical(target):
        return True
    if source == BOOL:
        return is_number(target) and (target in FLOATS or is_integer(target) or target.precision > target.scale)
    if target in FLOATS:
        exact = 24 if target == FLOAT else 53  # the bits of whole numbers that a float holds
        return source == FLOAT or (is_integer(source) and source.bit_width - (source in SIGNED) <= exact)
    if pa.types.is_decimal256(target):
        return False  # it cannot be cast back
    if pa.types.is_decimal(target) and (is_integer(source) or pa.types.is_decimal128(source)):
        held = as_decimal(source)
        return bool(target.scale >= held.scale and target.precision - target.scale >= held.precision - held.scale)
    return holds(target, source) or (source == DATE and pa.types.is_timestamp(target))
