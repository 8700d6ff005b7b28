"""Values written as strings, in DuckDB's spelling; types with a spelling that is not ours (FLOAT, INTERVAL) are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.query import types as t
from eddyline.query.expr import Kernel, Value
from eddyline.query.functions.arrays import Partial, nulls_of, to_numpy, without

_ERA = pa.scalar(-62_135_596_800_000_000, t.TIMESTAMP)
"""The first moment of the year 1: years before it have another spelling."""
_END = pa.scalar(253_402_300_800_000_000, t.TIMESTAMP)
"""The first moment of the year 10000."""


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
    if pa.types.is_timestamp(source):
        return _zoned if t.is_zoned(source) else _timestamp
    return None


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


def _date(args: Sequence[Value], rows: int) -> pa.Array | Partial:
    days = args[0]
    moments = days.view(pa.int32()).cast(pa.int64())
    low, high = (pa.scalar(edge.value // 86_400_000_000, pa.int64()) for edge in (_ERA, _END))
    far = pc.or_(pc.less(moments, low), pc.greater_equal(moments, high))
    if not pc.any(far).as_py():
        return days.cast(t.STRING)
    return without(pc.if_else(far, pa.scalar(0, t.DATE), days).cast(t.STRING), far)


def _timestamp(args: Sequence[Value], rows: int) -> pa.Array | Partial:
    moments = args[0]
    far = pc.or_(pc.less(moments, _ERA), pc.greater_equal(moments, _END))
    safe = pc.if_else(far, _ERA, moments)
    return without(pc.replace_substring_regex(safe.cast(t.STRING), r"\.?0+$", ""), far)


def _zoned(args: Sequence[Value], rows: int) -> pa.Array | Partial:
    plain = _timestamp(args, rows)
    values = plain.values if isinstance(plain, Partial) else plain
    values = pc.binary_join_element_wise(values, "+00", "")
    return Partial(values, plain.failed) if isinstance(plain, Partial) else values
