"""Between Arrow and NumPy: the values of an argument as a NumPy array, and a NumPy function as a kernel.

NULLs never reach the NumPy function: it gets some value of the type in their place, and its results there are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.expr import Kernel, Partial, Value
from eddyline.bound.functions import decimals

AnyArray = NDArray[Any]
Bools = NDArray[np.bool_]


def to_numpy(array: pa.Array) -> AnyArray:
    """The values as a NumPy array; times as integers of their unit, decimals as unscaled integers, NULLs as arbitrary
    values."""
    kind = array.type
    if pa.types.is_decimal128(kind):
        return decimals.unscaled(array)
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(kind) else 0)
    values: AnyArray = array.to_numpy(zero_copy_only=False)
    return values


def from_numpy(values: AnyArray, type: pa.DataType, null: Bools | None = None) -> pa.Array:
    """The opposite of `to_numpy`, NULL where `null` is set. Decimals must fit."""
    if pa.types.is_decimal128(type):
        return decimals.scaled(values, type, null)
    if pa.types.is_temporal(type):
        width = pa.int32() if type.bit_width == 32 else pa.int64()
        return pa.array(values.astype(width.to_pandas_dtype(), copy=False), mask=null).view(type)
    return pa.array(values, type=type, mask=null)


def truth(array: pa.Array) -> Bools:
    """Where a BOOLEAN array is true; NULL is not. (Unpacking bits is ten times as quick as Arrow's conversion.)"""
    valid, values = array.buffers()
    if not len(array) or values is None:
        return np.zeros(len(array), bool)
    true = _bits(values, array)
    return true & _bits(valid, array) if array.null_count else true


def _bits(buffer: pa.Buffer, array: pa.Array) -> Bools:
    end = array.offset + len(array)
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), count=end, bitorder="little")
    return bits[array.offset :].view(np.bool_)


def nulls_of(args: Sequence[Value]) -> Bools | None:
    """Where some argument is NULL; None if no argument has a NULL. A constant counts as an array of length one."""
    found: Bools | None = None
    for arg in args:
        if isinstance(arg, pa.Scalar):
            here = None if arg.is_valid else np.ones(1, bool)
        else:
            here = truth(arg.is_null()) if arg.null_count else None
        if here is not None:
            found = here if found is None else found | here
    return found


def strict(function: Callable[..., AnyArray | tuple[AnyArray, Bools]], type: pa.DataType) -> Kernel:
    """A kernel that gives NULL where an argument is NULL, and elsewhere the result of a NumPy function.

    The function may return a second array that says which rows cannot be computed. It gets constants as arrays of
    length one.
    """

    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        null = nulls_of(args)
        if null is not None and len(null) == 1 != rows:
            return pa.nulls(rows, type)
        values = [to_numpy(pa.repeat(a, 1) if isinstance(a, pa.Scalar) else a) for a in args]
        with np.errstate(all="ignore"):
            result = function(*values)
        if not isinstance(result, tuple):
            return from_numpy(np.broadcast_to(result, rows), type, null)
        result, bad = result
        bad = np.broadcast_to(bad, rows)
        if not bad.any():
            return from_numpy(np.broadcast_to(result, rows), type, null)
        known = from_numpy(np.where(bad, np.zeros(1, result.dtype), result), type, bad if null is None else bad | null)
        failed = int(np.count_nonzero(bad if null is None else bad & ~null))
        return Partial(known, failed) if failed else known

    return kernel


def without(values: pa.Array, bad: pa.Array) -> pa.Array | Partial:
    """The values, NULL where `bad` is true: rows that could not be computed."""
    result = pc.if_else(bad.fill_null(False), pa.scalar(None, values.type), values)
    failed = result.null_count - values.null_count
    return Partial(result, failed) if failed else values
