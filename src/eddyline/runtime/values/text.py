"""Text to typed columns, where a value that cannot be read costs its own row and no other.

The whole column is cast at once; only if that fails are the bad rows searched: first by the shape of a value (one
regular expression over the column), then, for values of the right shape that are out of range, by halving. So a clean
column costs one cast, and even a column full of bad values needs no Python step per row.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.nested import Result

_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?)?"
_NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?"
_SHAPES = (
    (pa.types.is_integer, r"^-?(0[xX][0-9a-fA-F]+|[0-9]{1,37})$"),
    (pa.types.is_floating, rf"^(?i:[+-]?({_NUMBER}|nan|inf(inity)?))$"),
    (pa.types.is_decimal, rf"^(?i:[+-]?{_NUMBER})$"),
    (pa.types.is_boolean, r"^(?i:true|false|0|1)$"),
    (pa.types.is_date, rf"^{_DAY}$"),
    (pa.types.is_timestamp, rf"^{_DAY}([ T]{_CLOCK})?(Z|[+-][0-9:]+)?$"),
)
_ZONED = r":[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


def readable_type(type_: pa.DataType) -> bool:
    """Whether a column of this type can be read from text."""
    return is_text(type_) or any(matches(type_) for matches, _ in _SHAPES)


def cast_text(values: pa.Array, type_: pa.DataType) -> Result:
    """Strings as `type_`, NULL where a string cannot be read, and the mask of those rows (None: all could be read).

    >>> cast_text(pa.array(["1", "x", None]), pa.int64())[1]
    array([False,  True, False])
    """
    if is_text(type_):
        return pc.cast(values, type_), None
    trimmed = pc.utf8_trim_whitespace(values)
    if pa.types.is_integer(type_):
        trimmed = pc.replace_substring_regex(trimmed, r"^\+([0-9])", r"\1")
        if pa.types.is_unsigned_integer(type_):
            trimmed = pc.replace_substring_regex(trimmed, r"^-(0+)$", r"\1")
    convert = _to_timestamp if pa.types.is_timestamp(type_) else pc.cast
    try:
        return convert(trimmed, type_), None
    except pa.ArrowInvalid:
        misshapen = _misshapen(trimmed, type_)
        shaped = pc.if_else(misshapen, pa.scalar(None, pa.string()), trimmed)
        result, out_of_range = cast_or_null(lambda part: convert(part, type_), shaped)
        bad = misshapen.to_numpy(zero_copy_only=False)
        return result, bad if out_of_range is None else bad | out_of_range


def cast_or_null(convert: Callable[[pa.Array], pa.Array], values: pa.Array) -> Result:
    """`convert(values)`, NULL in the rows that it refuses, and the mask of those (None: it refused nothing)."""
    try:
        return convert(values), None
    except pa.ArrowInvalid:
        bad = np.zeros(len(values), dtype=np.bool_)
    todo = [(0, len(values))]
    while todo:
        low, high = todo.pop()
        try:
            convert(values.slice(low, high - low))
        except pa.ArrowInvalid:
            if high - low == 1:
                bad[low] = True
            else:
                middle = (low + high) // 2
                todo += [(low, middle), (middle, high)]
    kept = pc.if_else(pa.array(bad), pa.scalar(None, values.type), values)
    return convert(kept), bad


def _misshapen(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Where a value does not have the shape of the type, or is a number outside its range."""
    pattern = next(pattern for matches, pattern in _SHAPES if matches(type_))
    wrong = pc.invert(pc.match_substring_regex(values, pattern))
    if pa.types.is_integer(type_):
        plain = pc.match_substring_regex(values, r"^-?[0-9]{1,37}$")
        numbers = pc.cast(pc.if_else(plain, values, pa.scalar(None, pa.string())), pa.decimal128(38, 0))
        bits = type_.bit_width if pa.types.is_unsigned_integer(type_) else type_.bit_width - 1
        least = 0 if pa.types.is_unsigned_integer(type_) else -(1 << bits)
        low, high = (pa.scalar(Decimal(bound), pa.decimal128(38, 0)) for bound in (least, (1 << bits) - 1))
        outside = pc.or_(pc.less(numbers, low), pc.greater(numbers, high)).fill_null(False)
        wrong = pc.or_(wrong, outside)
    elif pa.types.is_decimal(type_):
        whole, scale = type_.precision - type_.scale, type_.scale
        fits = rf"^[+-]?0*[0-9]{{0,{whole}}}(\.[0-9]{{0,{scale}}}0*)?$"
        plain = pc.match_substring_regex(values, r"^[+-]?[0-9.]+$")
        wrong = pc.or_(wrong, pc.and_(plain, pc.invert(pc.match_substring_regex(values, fits))))
    return wrong.fill_null(False)


def is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
    )


def is_utf8(text: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def has_zone(texts: pa.Array) -> bool:
    """Whether some of these times have a zone."""
    return bool(pc.any(pc.match_substring_regex(pc.utf8_trim_whitespace(texts), _ZONED)).as_py())


def _to_timestamp(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Timestamps from ISO 8601, with or without a zone (then UTC) in one column; digits beyond the microsecond are cut
    off, of TIMESTAMP_NS those beyond the nanosecond."""
    unit, digits = ("ns", 9) if type_.unit == "ns" else ("us", 6)
    naive = pa.timestamp(unit)
    try:
        return pc.cast(pc.cast(values, naive), type_)
    except pa.ArrowInvalid:
        short = pc.replace_substring_regex(values, rf"(\.[0-9]{{{digits}}})[0-9]+", r"\1")
        zoned = pc.match_substring_regex(short, _ZONED)
        nothing = pa.scalar(None, pa.string())
        with_zone = pc.cast(pc.if_else(zoned, short, nothing), pa.timestamp(unit, "UTC"))
        without = pc.cast(pc.if_else(zoned, nothing, short), naive)
        return pc.cast(pc.coalesce(pc.cast(with_zone, naive), without), type_)
