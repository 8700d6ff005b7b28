"""Numbers for groups: equal tuples of values get one number 0..n-1, whatever their types.

Equality is that of GROUP BY and DISTINCT: NULL is a value like any other, NaN equals itself, -0.0 equals 0.0. Columns
are numbered one by one and the numbers are combined as the digits of a mixed-radix number, which is renumbered densely
before it could exceed 62 bits; so no combination of columns can overflow and make two tuples collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ids = NDArray[np.int64]

_RADIX_LIMIT = 1 << 62
_DIRECT_RANGE = 1 << 16
_WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_WIDE |= {pa.large_list(narrow): pa.large_list(wide) for narrow, wide in _WIDE.items()}


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type in which values of `type_` are kept: one that Arrow can hash, gather and compare."""
    if pa.types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if pa.types.is_decimal32(type_) or pa.types.is_decimal64(type_):
        return pa.decimal128(type_.precision, type_.scale)
    if type_ == pa.string_view():
        return pa.large_string()
    if type_ == pa.binary_view():
        return pa.large_binary()
    return type_


def decoded(array: pa.Array) -> pa.Array:
    """The same values in their plain type."""
    return array.cast(plain_type(array.type))


def plain(array: pa.Array) -> pa.Array:
    """The same values in their plain type, with one NaN and one zero."""
    array = decoded(array)
    if not pa.types.is_floating(array.type):
        return array
    values = values_of(array)
    values = np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0))
    return pa.array(values, type=array.type, mask=nulls_of(array))


def widened(array: pa.Array) -> pa.Array:
    """The same array with 64-bit offsets for texts, which together may be too large for 32-bit offsets.

    >>> widened(pa.array(["a"])).type, widened(pa.array([["a"]], pa.large_list(pa.string()))).type
    (DataType(large_string), LargeListType(large_list<item: large_string>))
    """
    wide = _WIDE.get(array.type)
    return array if wide is None else array.cast(wide)


def values_of(array: pa.Array) -> NDArray[Any]:
    """The values as NumPy sees them, with something harmless for NULL."""
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(False if pa.types.is_boolean(array.type) else 0).cast(array.type))
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def nulls_of(array: pa.Array) -> NDArray[np.bool_] | None:
    """Where the NULLs are; None if there are none."""
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


def group_ids(columns: Sequence[pa.Array | Ids], rows: int) -> tuple[Ids, int]:
    """A number for each row, the same for equal rows, and how many numbers there are. Arrow columns must be plain.

    >>> group_ids([pa.array(["a", None, "a", None])], 4)
    (array([0, 1, 0, 1]), 2)
    """
    codes, bound = np.zeros(rows, np.int64), 1
    if not rows:
        return codes, 0
    for column in columns:
        digits, radix = _digits(column)
        if bound * radix > _RADIX_LIMIT or bound <= _direct(rows) < bound * radix:
            codes, bound = _dense(codes, bound)
        codes, bound = codes * radix + digits if bound > 1 else digits, bound * radix
    return _dense(codes, bound)


def representatives(ids: Ids, count: int) -> Ids:
    """For each number a row that has it."""
    rows = np.empty(count, np.int64)
    rows[ids] = np.arange(len(ids))
    return rows


def _direct(rows: int) -> int:
    """The bound up to which a table of all numbers is cheaper than hashing the rows."""
    return max(_DIRECT_RANGE, 4 * rows)


def _digits(column: pa.Array | Ids) -> tuple[Ids, int]:
    """Numbers for one column, equal for equal values and below the radix; not necessarily all in use."""
    if not isinstance(column, np.ndarray):
        if column.null_count or not pa.types.is_integer(column.type) or column.type == pa.uint64():
            return _hashed(column)
        column = column.to_numpy(zero_copy_only=False).astype(np.int64)
    low, high = int(column.min()), int(column.max())
    if high - low < _direct(len(column)):
        return column - low, high - low + 1
    return _hashed(pa.array(column))


def _dense(codes: Ids, bound: int) -> tuple[Ids, int]:
    """The codes below `bound` renumbered so that every number is in use."""
    if bound > _direct(len(codes)):
        return _hashed(pa.array(codes))
    used = np.zeros(bound, np.bool_)
    used[codes] = True
    numbers = np.cumsum(used) - 1
    return numbers[codes], int(numbers[-1]) + 1


def _hashed(column: pa.Array) -> tuple[Ids, int]:
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(1, len(encoded.dictionary))
