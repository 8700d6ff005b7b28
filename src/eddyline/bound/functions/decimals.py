"""Decimals as unscaled integers: 64-bit where the precision allows it, Python integers in an object array where not.

Both kinds of array take the same NumPy operators, so every function on decimals is written once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NARROW = 18
"""Digits that a 64-bit integer holds."""

Integers = NDArray[Any]
Bools = NDArray[np.bool_]


def unscaled(array: pa.Array) -> Integers:
    """The values times ten to the scale, NULLs as anything that fits."""
    if not len(array):
        return np.empty(0, np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2], words[1::2]
    if array.type.precision <= NARROW:
        return low
    values: Integers = (high.astype(object) << 64) + low.view(np.uint64).astype(object)
    return values


def scaled(values: Integers, type: pa.DataType, null: Bools | None = None) -> pa.Array:
    """The decimals of unscaled integers that fit the type."""
    words = np.empty((len(values), 2), np.int64)
    if values.dtype == object:
        words[:, 0] = (values & (2**64 - 1)).astype(np.uint64).view(np.int64)
        words[:, 1] = (values >> 64).astype(np.int64)
    else:
        words[:, 0] = values
        words[:, 1] = words[:, 0] >> 63
    valid = None if null is None else pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(type, len(values), [valid, pa.py_buffer(words)])


def widen(values: Integers, digits: int) -> Integers:
    """The integers in an array type in which numbers of `digits` digits do not overflow."""
    return values if digits <= NARROW else values.astype(object)


def outside(values: Integers, type: pa.DataType) -> Bools:
    """Which unscaled integers do not fit the type."""
    bound = 10**type.precision
    values = values if bound < 2**63 else values.astype(object)
    bad: Bools = ((values >= bound) | (values <= -bound)).astype(bool)
    return bad


def rescale(values: Integers, by: int, digits: int) -> Integers:
    """Times ten to the power `by`, for integers of at most `digits` digits; halves are rounded away from zero."""
    if by >= 0:
        result: Integers = widen(values, digits + by) * 10**by
        return result
    unit = 10**-by
    values = values if -by < NARROW else values.astype(object)
    size = abs(values)
    size = (size + unit // 2) // unit
    result = np.where(values < 0, -size, size)
    return result


def to_float(values: Integers, scale: int, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """The nearest float as DuckDB computes it: from the whole part and the fraction separately if no float equals the
    integer."""
    power = 10**scale
    exact = 2 ** (53 if dtype is np.float64 else 24)
    near: Integers = values.astype(dtype) / dtype(power)
    if not scale:
        return near
    far = abs(values) > exact
    if not far.any():
        return near
    size = abs(values)
    apart = (size // power).astype(dtype) + (size % power).astype(dtype) / dtype(power)
    return np.where(far.astype(bool), np.where(values < 0, -apart, apart), near)
