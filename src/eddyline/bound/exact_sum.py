"""Sums of integers and decimals that are exact, whatever their order: numbers as limbs of 32 bits.

A number is sum(limb[k] * 2**(32 k)). Normalised, all limbs but the top one are in [0, 2**32) and the top one carries
the sign. Fewer than 2**31 normalised numbers can be added limb by limb in int64 without overflow, and carrying
afterwards normalises the sum; so sums of sums are exact well beyond the 38 digits of a DECIMAL, and only the end
result can overflow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Limbs = list[NDArray[np.int64]]

WIDTH = 4
"""Limbs of a 128-bit number; the top one has room for 32 bits more."""

_MASK = np.int64(0xFFFFFFFF)
_LIMIT = 10**38
"""DECIMAL(38) holds what is strictly between -_LIMIT and _LIMIT."""


def limbs_of(array: pa.Array) -> Limbs:
    """The limbs of integers, booleans or decimals without NULLs."""
    if pa.types.is_decimal(array.type):
        words = np.frombuffer(array.buffers()[1], np.uint32)[4 * array.offset : 4 * (array.offset + len(array))]
        words = words.reshape(-1, 4)
        return [*(words[:, k].astype(np.int64) for k in range(3)), words[:, 3].view(np.int32).astype(np.int64)]
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64:
        return [(values & np.uint64(_MASK)).astype(np.int64), (values >> np.uint64(32)).astype(np.int64)]
    values = values.astype(np.int64)
    return [values] if array.type.bit_width <= 32 else [values & _MASK, values >> 32]


def add_up(limbs: Sequence[NDArray[np.int64]], ids: NDArray[np.int64], count: int) -> Limbs:
    """The normalised sum for each id."""
    sums = []
    for limb in limbs:
        total = np.zeros(count, np.int64)
        np.add.at(total, ids, limb)
        sums.append(total)
    return normalised(sums)


def normalised(limbs: Sequence[NDArray[np.int64]]) -> Limbs:
    """The same numbers with carries done, in WIDTH limbs."""
    result, carry = [], np.zeros(len(limbs[0]), np.int64)
    for k in range(WIDTH):
        limb = limbs[k] + carry if k < len(limbs) else carry
        carry = limb >> 32
        result.append(limb & _MASK if k < WIDTH - 1 else limb)
    return result


def times(limbs: Limbs, by: NDArray[np.int64]) -> Limbs:
    """Each normalised number as often as `by` says. In digits of 16 bits, so that no limb overflows on the way."""
    result = [np.zeros(len(by), np.int64)] * WIDTH
    for k in reversed(range(-(-int(by.max(initial=1)).bit_length() // 16))):
        digit = by >> 16 * k & 0xFFFF
        result = normalised([(high << 16) + limb * digit for high, limb in zip(result, limbs, strict=True)])
    return result


def to_float(limbs: Limbs) -> NDArray[np.float64]:
    """The nearest float64, but for a rounding or two: from the magnitude, since limbs of mixed sign would cancel."""
    negative = limbs[-1] < 0
    magnitude = [np.where(negative, n, p) for n, p in zip(normalised([-limb for limb in limbs]), limbs, strict=True)]
    value = np.zeros(len(negative))
    for limb in reversed(magnitude):
        value = value * 2.0**32 + limb
    return np.where(negative, -value, value)


def to_decimal(limbs: Limbs, type_: pa.DataType, null: NDArray[np.bool_]) -> tuple[pa.Array, int]:
    """The numbers as decimal128, NULL where `null` or where 38 digits are not enough; and how many of the latter."""
    low = limbs[0].astype(np.uint64) | (limbs[1].astype(np.uint64) << np.uint64(32))
    high = limbs[2] + (limbs[3] << 32)
    fits = (limbs[3] >= -(1 << 31)) & (limbs[3] < 1 << 31) & _less(high, low, _LIMIT) & ~_less(high, low, 1 - _LIMIT)
    words = np.stack([low, high.view(np.uint64)], axis=1)
    validity = np.packbits(fits & ~null, bitorder="little")
    array = pa.Array.from_buffers(type_, len(low), [pa.py_buffer(validity), pa.py_buffer(np.ascontiguousarray(words))])
    return array, int(np.count_nonzero(~fits & ~null))


def _less(high: NDArray[np.int64], low: NDArray[np.uint64], bound: int) -> NDArray[np.bool_]:
    bound_high, bound_low = np.int64(bound >> 64), np.uint64(bound & (2**64 - 1))
    less: NDArray[np.bool_] = (high < bound_high) | ((high == bound_high) & (low < bound_low))
    return less
