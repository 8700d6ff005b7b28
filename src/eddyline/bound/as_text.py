"""Values of any type as text for display: in dead-letter outputs and their reasons. The text that CAST gives is in
functions/writing.py."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.functions.writing import FIRST_DAY, YEAR_10000
from eddyline.bound.nested import entries, joined, valid_rows
from eddyline.bound.types import BINARY, STRING, is_list, is_moment, logical

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def as_text(values: pa.Array) -> pa.Array:
    """Any array as strings. The text of a value does not depend on the other values. A cast where Arrow has a good one,
    else value by value (dead rows are few)."""
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return as_text(values.dictionary_decode())
    if pa.types.is_duration(type_):
        return _durations(values)
    if pa.types.is_date(type_) or is_moment(type_):
        return _moments(values)
    if pa.types.is_nested(type_) and not pa.types.is_union(type_):
        return _nested(values)
    if type_ == pa.month_day_nano_interval():
        return pa.array([None if v is None else _interval(*v) for v in values.to_pylist()], pa.string())
    if pa.types.is_fixed_size_binary(type_) or pa.types.is_binary_view(type_):
        return as_text(values.cast(pa.large_binary()))
    try:
        return pc.cast(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None if v is None else _one(v) for v in values.to_pylist()], pa.string())


def _nested(values: pa.Array) -> pa.Array:
    """Lists, structs and maps, with text in quotes.

    >>> as_text(pa.array([{"a": ["x", None], "b": 1.5}])).to_pylist()
    ["{'a': ['x', NULL], 'b': 1.5}"]
    """
    valid = valid_rows(values)
    if pa.types.is_struct(values.type):
        fields = zip(values.type.names, values.flatten(), strict=True)
        parts = [pc.binary_join_element_wise(f"'{name}': ", _inside(field), "") for name, field in fields]
        inner = pc.binary_join_element_wise(*parts, ", ") if parts else pa.array([""] * len(values))
    else:
        lengths, columns = entries(values)
        texts = [_inside(column) for column in columns]
        each = pc.binary_join_element_wise(*texts, ": ") if len(texts) > 1 else texts[0]
        inner = joined(each, lengths)
    begin, end = "[]" if is_list(values.type) else "{}"
    made = pc.binary_join_element_wise(begin, inner, end, "")
    return made if valid is None else pc.if_else(pa.array(valid), made, pa.scalar(None, pa.string()))


def _inside(values: pa.Array) -> pa.Array:
    """The texts of values inside a nested one."""
    text = as_text(values)
    if logical(values.type) in (STRING, BINARY):
        text = pc.binary_join_element_wise("'", text, "'", "")
    return pc.coalesce(text, "NULL")


def _one(value: Any) -> str:
    r"""One value as text. Bytes that are valid UTF-8 are shown as characters, as in a column of strings; others are
    escaped.

    >>> print(_one(b"caf\xc3\xa9 \xff"))
    café \xff
    """
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def _moments(values: pa.Array) -> pa.Array:
    """Dates and timestamps. Arrow does not write years of other than four digits as anyone reads them.

    >>> as_text(pa.array([2**31 - 1, -719163, 0], pa.int32()).cast(pa.date32())).to_pylist()
    ['5881580-07-11', '0001-12-31 (BC)', '1970-01-01']
    """
    is_days = pa.types.is_date32(values.type)
    a_day = _a_day(values.type)
    raw = values.view(pa.int32() if is_days else pa.int64())
    if not has_far_years(values):
        return pc.cast(values, pa.string())
    far = pc.or_(pc.less(raw, FIRST_DAY * a_day), pc.greater_equal(raw, YEAR_10000 * a_day))
    near = pc.if_else(far, pa.scalar(None, values.type), values)
    texts = zip(pc.cast(near, pa.string()).to_pylist(), raw.to_pylist(), strict=True)
    shown = (text if text or number is None else _far(number, a_day, values.type) for text, number in texts)
    return pa.array(list(shown), pa.string())


def _a_day(type_: pa.DataType) -> int:
    return 1 if pa.types.is_date32(type_) else 86_400 * _PER_SECOND[getattr(type_, "unit", "ms")]


def has_far_years(values: pa.Array) -> bool:
    """Whether some dates or timestamps have a year of other than four digits, which Arrow does not write."""
    if not (pa.types.is_date(values.type) or is_moment(values.type)):
        return False
    bounds = pc.min_max(values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64()))
    low, high, a_day = bounds["min"].as_py(), bounds["max"].as_py(), _a_day(values.type)
    return low is not None and bool(low < FIRST_DAY * a_day or high >= YEAR_10000 * a_day)


def _far(number: int, a_day: int, type_: pa.DataType) -> str:
    """A date or timestamp of any year; one before the year 1 is counted backwards and marked (BC)."""
    days, rest = divmod(number, a_day)
    cycles, day = divmod(days - FIRST_DAY, 146_097)  # days of 400 years
    near = date.fromordinal(1 + day)
    year = near.year + 400 * cycles
    text = f"{year if year > 0 else 1 - year:04}-{near:%m-%d}"
    if is_moment(type_):
        clock = pa.array([rest], pa.int64()).cast(pa.timestamp(type_.unit)).cast(pa.string())[0].as_py()
        text += clock[10:] + ("Z" if type_.tz else "")
    return text if year > 0 else f"{text} (BC)"


def _durations(values: pa.Array) -> pa.Array:
    """Lengths of time as hours:minutes:seconds.

    >>> _durations(pa.array([-61_500_000, None], pa.duration("us"))).to_pylist()
    ['-00:01:01.500000', None]
    """
    micros = pc.cast(pc.cast(values, pa.duration("us"), safe=False), pa.int64())
    left = pc.abs(micros)
    parts = []
    for size in (3_600_000_000, 60_000_000, 1_000_000, 1):
        whole = pc.divide(left, size)
        left = pc.subtract(left, pc.multiply(whole, size))
        parts.append(pc.utf8_lpad(pc.cast(whole, pa.string()), 6 if size == 1 else 2, "0"))
    sign = pc.if_else(pc.less(micros, 0), "-", "")
    return pc.binary_join_element_wise(sign, parts[0], ":", parts[1], ":", parts[2], ".", parts[3], "")


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """An interval with months as DuckDB writes and reads it.

    >>> _interval(14, -1, 61_500_000_000), _interval(0, 0, 0)
    ('1 year 2 months -1 day 00:01:01.500000', '00:00:00')
    """
    sign = -1 if months < 0 else 1
    counts = ((sign * (abs(months) // 12), "year"), (sign * (abs(months) % 12), "month"), (days, "day"))
    parts = [f"{number} {unit}{'' if abs(number) == 1 else 's'}" for number, unit in counts if number]
    if abs(nanoseconds) >= 1000 or not parts:
        seconds, micros = divmod(abs(nanoseconds) // 1000, 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        parts.append(("-" if nanoseconds < 0 else "") + clock + (f".{micros:06}" if micros else ""))
    return " ".join(parts)
