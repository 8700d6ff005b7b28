"""Values written as strings, in DuckDB's spelling; types whose spelling we do not reproduce (FLOAT, INTERVAL) are left
out. BLOB is decoded as UTF-8, as by decode(): DuckDB's own spelling of bytes (`\\xC3\\xA9`) would be useless for text
that comes from a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound import types as t
from eddyline.bound.expr import Kernel, Partial, Value
from eddyline.bound.functions import calendar
from eddyline.bound.functions.arrays import nulls_of, to_numpy
from eddyline.bound.functions.distinct import NotComputable, by_distinct

FIRST_DAY, YEAR_10000 = -719_162, 2_932_897
"""The first and last day between which every year has four digits and Arrow's spelling is DuckDB's."""


def writer(source: pa.DataType) -> Kernel | None:
    """The kernel that writes values of `source`; None when there is none."""
    if t.is_integer(source) or source == t.BOOL:
        return lambda args, rows: args[0].cast(t.STRING)
    if source == t.DOUBLE:
        return _double
    if pa.types.is_decimal128(source):
        return _decimal
    if source == t.DATE:
        return _date
    if source == t.BINARY:
        return decoded
    if pa.types.is_timestamp(source):
        return _zoned if t.is_zoned(source) else _timestamp
    return None


def decoded(args: Sequence[Value], rows: int) -> pa.Array | Partial:
    """Bytes decoded as UTF-8. Bytes that are not valid UTF-8 cannot be computed."""
    try:
        return args[0].cast(t.STRING)
    except pa.ArrowInvalid:
        return by_distinct(args[0], t.STRING, _utf8)


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotComputable from error


def _double(args: Sequence[Value], rows: int) -> pa.Array:
    values = to_numpy(args[0])
    text: NDArray[Any] = values.astype("U32")
    if np.isnan(values).any():
        text = np.where(np.isnan(values) & np.signbit(values), "-nan", text)
    return pa.array(text, t.STRING, mask=nulls_of(args))


def _decimal(args: Sequence[Value], rows: int) -> pa.Array:
    values, scale = to_numpy(args[0]), args[0].type.scale
    size = abs(values)
    sign = np.where((values < 0).astype(bool), "-", "")
    text = pa.array(np.strings.add(sign, (size // 10**scale).astype("U40")), t.STRING, mask=nulls_of(args))
    if not scale:
        return text
    fraction = pc.utf8_lpad(pa.array((size % 10**scale).astype("U40"), t.STRING), scale, "0")
    return pc.binary_join_element_wise(text, fraction, ".")


def _date(args: Sequence[Value], rows: int) -> pa.Array:
    return _days(args[0])


def _days(days: pa.Array) -> pa.Array:
    """Dates as text; a year before 1 is counted backwards and marked (BC)."""
    bounds = pc.min_max(days.view(pa.int32()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or (low >= FIRST_DAY and high < YEAR_10000):
        return days.cast(t.STRING)
    moments = to_numpy(days).astype(np.int64) * calendar.DAY
    year = calendar.year(moments)
    parts = [
        pc.utf8_lpad(pa.array(part, mask=nulls_of([days])).cast(t.STRING), width, "0")
        for part, width in (
            (np.where(year > 0, year, 1 - year), 4),
            (calendar.month(moments), 2),
            (calendar.day(moments), 2),
        )
    ]
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise(*parts, "-"), pa.array(np.where(year > 0, "", " (BC)")), ""
    )


def _timestamp(args: Sequence[Value], rows: int) -> pa.Array:
    days, rest = to_numpy(args[0]) // calendar.DAY, to_numpy(args[0]) % calendar.DAY
    null = nulls_of(args)
    clock = pa.array(rest).view(pa.time64("us")).cast(t.STRING)
    clock = pc.replace_substring_regex(clock, r"\.?0+$", "")
    return pc.binary_join_element_wise(_days(pa.array(days.astype(np.int32), mask=null).view(t.DATE)), clock, " ")


def _zoned(args: Sequence[Value], rows: int) -> pa.Array:
    return pc.binary_join_element_wise(_timestamp(args, rows), "+00", "")
