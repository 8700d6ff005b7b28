"""Keys as 64-bit integers.

`encode` maps equal values to equal integers. For types that fit, it is *exact*: unequal values get unequal integers, so
the integer is the key. For other types (strings, binary, wide decimals) it is a hash, and a match must be verified on
the values. `in_order` also keeps the order of the values. NaN is one value, the greatest; -0.0 equals 0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.types import decode
from eddyline.kernels import values as kernels

Keys = NDArray[np.int64]

_INT64_DIGITS = 18
_SIGN = np.int64(-(2**63))


def is_exact(type: pa.DataType) -> bool:
    """Whether the encoded key decides equality on its own."""
    t = pa.types
    if t.is_decimal(type):
        return bool(type.precision <= _INT64_DIGITS)
    return bool(t.is_boolean(type) or t.is_integer(type) or t.is_floating(type) or t.is_temporal(type))


def has_order(type: pa.DataType) -> bool:
    """Whether `in_order` can encode the type."""
    return is_exact(type)


def encode(array: pa.Array) -> Keys:
    """One integer per value, independent of the storage of its type; arbitrary where the value is NULL."""
    if not len(array):
        return np.empty(0, np.int64)
    t, type = pa.types, array.type
    if t.is_dictionary(type):
        if array.dictionary.null_count:
            return encode(array.dictionary_decode())
        codes = encode(array.dictionary) if len(array.dictionary) else np.zeros(1, np.int64)
        keys: Keys = codes[_filled(array.indices)]
        return keys
    array = decode(array)
    type = array.type
    if t.is_boolean(type):
        return _filled(array.cast(pa.int64()))
    if t.is_floating(type):
        values = np.asarray(array.cast(pa.float64())) + 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.int64)
    if t.is_decimal(type):
        per_row, end = type.bit_width // 64, array.offset + len(array)
        words = np.frombuffer(array.buffers()[1], np.int64, per_row * end).reshape(-1, per_row)[array.offset :]
        return words[:, 0].copy() if is_exact(type) else combine([words[:, i] for i in range(per_row)])
    if t.is_integer(type):
        if type == pa.uint64():
            return _filled(array.view(pa.int64()))
        return _filled(array if type == pa.int64() else array.cast(pa.int64()))
    if t.is_temporal(type):
        return _filled(array.view(pa.int32() if type.bit_width == 32 else pa.int64()).cast(pa.int64()))
    array = array.cast(pa.binary())
    if array.offset:
        array = pa.concat_arrays([array])
    out = np.empty(len(array), np.int64)
    data = array.buffers()[2]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    kernels.hash_bytes(text, np.frombuffer(array.buffers()[1], np.int32, len(array) + 1), out)
    return out


def in_order(array: pa.Array) -> Keys:
    """Like `encode`, but only for exact types: a < b exactly if the integers have the same order."""
    array = decode(array)
    keys = encode(array)
    if pa.types.is_floating(array.type):
        return np.where(keys < 0, ~keys ^ _SIGN, keys)
    return keys ^ _SIGN if array.type == pa.uint64() else keys


def combine(parts: list[Keys]) -> Keys:
    """The key of several columns: a hash, which must be verified part by part."""
    key = parts[0]
    for part in parts[1:]:
        key = _combined(key, part)
    return key


def _combined(left: Keys, right: Keys) -> Keys:
    out = np.empty(left.size, np.int64)
    kernels.combine(np.ascontiguousarray(left), np.ascontiguousarray(right), out)
    return out


def _filled(array: pa.Array) -> Keys:
    """Integers unchanged, and 0 for NULL: NumPy would turn them into floats."""
    values: Keys = np.asarray(array.fill_null(0) if array.null_count else array)
    return values


def without_null(arrays: list[pa.Array]) -> NDArray[np.bool_] | None:
    """Which rows have a value in every array; None if all do."""
    valid = None
    for array in arrays:
        here = _valid(array)
        if here is not None:
            valid = here if valid is None else valid & here
    return valid


def _valid(array: pa.Array) -> NDArray[np.bool_] | None:
    """Which values are not NULL; None if all are. A dictionary may contain NULL, too."""
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = pc.is_valid(array.dictionary).take(array.indices).fill_null(False)
    elif array.null_count:
        array = pc.is_valid(array)
    else:
        return None
    valid: NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return valid
