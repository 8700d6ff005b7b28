"""Values of any type as text for display: in dead-letter outputs and their reasons. The text that CAST gives is in
functions/writing.py."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def as_text(values: pa.Array) -> pa.Array:
    """Any array as strings. The text of a value does not depend on the other values. A cast where Arrow has a good one,
    else value by value (dead rows are few)."""
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return as_text(values.dictionary_decode())
    if pa.types.is_duration(type_):
        return _durations(values)
    if type_ == pa.month_day_nano_interval():
        return pa.array([None if v is None else _interval(*v) for v in values.to_pylist()], pa.string())
    if pa.types.is_fixed_size_binary(type_) or pa.types.is_binary_view(type_):
        return as_text(values.cast(pa.large_binary()))
    try:
        return pc.cast(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None if v is None else _one(v) for v in values.to_pylist()], pa.string())


def _one(value: Any) -> str:
    r"""One value as text. Bytes that are valid UTF-8 are shown as characters, as in a column of strings; others are
    escaped.

    >>> print(_one(b"caf\xc3\xa9 \xff"))
    café \xff
    """
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


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
