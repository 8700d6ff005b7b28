"""CAST and TRY_CAST between scalar types, with DuckDB's meaning: floats round half to even, decimals half away from
zero, and a value that does not fit cannot be computed.

The kernel of a cast is chosen once, from the two types; `_kernel` is the table. Casts that do not change the values (a
timestamp that gets a zone, a dictionary that is decoded) have no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Kernel, Literal, Partial, Value
from eddyline.bound.functions import decimals, reading, writing
from eddyline.bound.functions.arrays import AnyArray, Bools, strict
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.types import TypeMismatch, sql_type
from eddyline.cql.places import shown

DAY = 86_400_000_000


def cast(expr: Expr, type: pa.DataType, try_: bool = False) -> Expr:
    """The expression as another type; the expression itself when it has that type."""
    wanted = t.logical(type)
    if expr.type == wanted:
        return expr
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(None, wanted)
    kernel = _kernel(t.logical(expr.type), wanted)
    if kernel is None:
        raise TypeMismatch(f"{sql_type(expr.type)} cannot be cast to {sql_type(type)}")
    name = "try_cast" if try_ else "cast"
    return Call(name, (expr,), wanted, quiet(kernel) if try_ else kernel, sql_type(wanted))


def literal(expr: Literal, type: pa.DataType) -> Expr:
    """A constant cast to another type at once; TypeMismatch if the type has no such value."""
    made = cast(expr, type)
    if not isinstance(made, Call):
        return made
    try:
        result = made.kernel([pa.array([expr.value], expr.type)], 1)
    except (ValueError, ArithmeticError):
        result = Partial(pa.nulls(1, type), 1)
    if isinstance(result, Partial):
        form = f"write one, as in {t.example(type)}, or cast the other side to VARCHAR"
        raise TypeMismatch(f"{shown(str(expr.value))} is no {sql_type(type)}; {form}", str(expr.value))
    value = result[0]
    return Literal(value.value if pa.types.is_temporal(value.type) else value.as_py(), t.logical(type))


def quiet(kernel: Kernel) -> Kernel:
    """The kernel of TRY_CAST and the like: a value that cannot be computed is NULL and is not counted."""

    def tried(args: Sequence[Value], rows: int) -> pa.Array:
        result = kernel(args, rows)
        return result.values if isinstance(result, Partial) else result

    return tried


def _kernel(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    if t.physical(source) == t.physical(target):
        return lambda args, rows: args[0]
    if pa.types.is_decimal256(target):
        return lambda args, rows: args[0].cast(target)
    if target == t.STRING:
        return writing.writer(source)
    if source == t.STRING:
        return reading.reader(target)
    if source == t.BOOL and t.is_number(target):
        return _arrow(t.INT8) if target == t.INT8 else _after(_arrow(t.INT8), _kernel(t.INT8, target))
    if target == t.BOOL and t.is_number(source):
        return strict(lambda v: (v != 0).astype(bool), t.BOOL)
    if t.is_number(source) and t.is_number(target):
        return _number(source, target)
    if source == t.DATE and pa.types.is_timestamp(target):
        return strict(_days_to_us, target)
    if pa.types.is_timestamp(source) and target == t.DATE:
        return strict(lambda v: v // DAY, target)
    if source == t.TIMESTAMP and target == t.TIME:
        return strict(lambda v: v % DAY, target)
    return None


def _days_to_us(days: AnyArray) -> tuple[AnyArray, Bools]:
    wide = days.astype(np.int64)
    return wide * DAY, abs(wide) > (2**63 - 1) // DAY


def _number(source: pa.DataType, target: pa.DataType) -> Kernel:
    if pa.types.is_decimal128(target):
        return _to_decimal(source, target)
    if target in t.FLOATS:
        return _to_float(source, target)
    if source in t.FLOATS:
        return strict(_float_to_int(target), target)
    if pa.types.is_decimal128(source):
        return strict(_decimal_to_int(source, target), target)
    return _arrow(target) if t.holds(target, source) else strict(_int_to_int(target), target)


def _arrow(target: pa.DataType) -> Kernel:
    """A cast that cannot fail and that Arrow does as DuckDB does."""

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return args[0].cast(target, safe=False)

    return kernel


def _after(first: Kernel, second: Kernel | None) -> Kernel:
    assert second is not None

    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        half = first(args, rows)
        assert isinstance(half, pa.Array)
        return second([half], rows)

    return kernel


def _int_to_int(target: pa.DataType) -> Callable[[AnyArray], tuple[AnyArray, Bools]]:
    low, high = t.int_bounds(target)

    def convert(values: AnyArray) -> tuple[AnyArray, Bools]:
        own = np.iinfo(values.dtype)
        bad = (values < max(low, int(own.min))) | (values > min(high, int(own.max)))
        return values.astype(target.to_pandas_dtype()), bad

    return convert


def _float_to_int(target: pa.DataType) -> Callable[[AnyArray], tuple[AnyArray, Bools]]:
    low, high = t.int_bounds(target)

    def convert(values: AnyArray) -> tuple[AnyArray, Bools]:
        rounded = np.rint(values.astype(np.float64))
        bad = ~((rounded >= float(low)) & (rounded < float(high + 1)))
        return np.where(bad, 0, rounded).astype(target.to_pandas_dtype()), bad

    return convert


def _decimal_to_int(source: pa.DataType, target: pa.DataType) -> Callable[[AnyArray], tuple[AnyArray, Bools]]:
    low, high = t.int_bounds(target)

    def convert(values: AnyArray) -> tuple[AnyArray, Bools]:
        whole = decimals.rescale(values, -source.scale, source.precision).astype(object)
        bad = ((whole < low) | (whole > high)).astype(bool)
        return np.where(bad, 0, whole).astype(target.to_pandas_dtype()), bad

    return convert


def _to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    if source in t.FLOATS:
        return strict(_float_to_decimal(target), target)
    known = t.as_decimal(source)

    def convert(values: AnyArray) -> tuple[AnyArray, Bools]:
        if values.dtype != object:
            values = values.astype(object if values.dtype == np.uint64 else np.int64)
        result = decimals.rescale(values, target.scale - known.scale, known.precision)
        return result, decimals.outside(result, target)

    digits = known.precision - known.scale + target.scale
    if target.scale < known.scale or digits > target.precision or digits > 38:
        return strict(convert, target)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        return args[0].cast(target)

    return kernel


def _float_to_decimal(target: pa.DataType) -> Callable[[AnyArray], tuple[AnyArray, Bools]]:
    power, bound = 10.0**target.scale, 10.0**target.precision

    def convert(values: AnyArray) -> tuple[AnyArray, Bools]:
        product = values.astype(np.float64) * power
        rounded = half_away(product)
        bad = ~(abs(rounded) < bound)
        whole = np.where(bad, 0, rounded)
        narrow = target.precision <= decimals.NARROW
        return whole.astype(np.int64) if narrow else np.array([int(v) for v in whole.flat], object), bad

    return convert


def half_away(values: NDArray[Any]) -> NDArray[Any]:
    """Rounded to whole numbers, halves away from zero."""
    whole = np.trunc(values)
    result: NDArray[Any] = np.where(abs(values - whole) >= 0.5, whole + np.copysign(1.0, values), whole)
    return result.astype(values.dtype)


def _to_float(source: pa.DataType, target: pa.DataType) -> Kernel:
    dtype = target.to_pandas_dtype()
    if pa.types.is_decimal128(source):
        return strict(lambda v: decimals.to_float(v, source.scale, dtype), target)
    if source == t.DOUBLE:

        def narrow(values: AnyArray) -> tuple[AnyArray, Bools]:
            result = values.astype(np.float32)
            return result, np.isinf(result) & np.isfinite(values)

        return strict(narrow, target)
    return _arrow(target)


def _resolve(name: str) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        if len(args) != 1:
            raise TypeMismatch(f"{name} takes one value and a type")
        return cast(args[0], t.arrow_type(variant), name == "try_cast")

    return resolve


_DOC = (
    "As another type, if it has such a value. Floats are rounded half to even, decimals half away from zero; "
    "a BLOB is decoded as by `decode` (where DuckDB writes `\\xC3\\xA9` for é)."
)

FUNCTIONS = (
    Function("cast", "Casts", "CAST(a AS type), a::type", "the type", _DOC, _resolve("cast")),
    Function(
        "try_cast", "Casts", "TRY_CAST(a AS type)", "the type", "As CAST, but NULL is no error.", _resolve("try_cast")
    ),
)
