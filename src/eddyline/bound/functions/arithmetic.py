"""+ - * / // % on numbers: DuckDB's result types, and overflow or a zero divisor found without exceptions.

Integers first go through Arrow's checked kernels, which cost nothing extra; only if one raises are the overflowing rows
searched, in NumPy. Floats never overflow: they become infinite, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Kernel, Literal, Partial, Value
from eddyline.bound.functions import decimals, times
from eddyline.bound.functions.arrays import AnyArray, Bools, strict, without
from eddyline.bound.functions.build import coerce, count, is_null, is_written_integer, make, meet, refuse
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.types import TypeMismatch

_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def _resolve(name: str) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1 if name in "+-" else 2, 2)
        if len(args) == 1:
            return _sign(name, args[0])
        if any(pa.types.is_temporal(a.type) for a in args):
            return times.arithmetic(name, args)
        if not all(t.is_number(t.logical(a.type)) or a.type == t.NULL for a in args):
            raise refuse(name, args, f"two numbers{', or a time and an interval' if name in '+-' else ''}")
        type = _result(name, args)
        operands, kernel = _OPERATORS[name](name, type)
        if operands is None:
            return make(name, _decimal_operands(name, args, type), type, kernel)
        return make(name, [coerce(a, operands) for a in args], type, kernel)

    return resolve


def _result(name: str, args: Sequence[Expr]) -> pa.DataType:
    """The type of the result; both arguments are numbers or NULL."""
    left, right = (t.logical(a.type) for a in args)
    if t.NULL in (left, right):
        left = right = left if right == t.NULL else right
        left = right = t.INT32 if left == t.NULL else left
    if left in t.FLOATS or right in t.FLOATS:
        return t.DOUBLE if t.DOUBLE in (left, right) else t.FLOAT
    if left in t.INTEGERS and right in t.INTEGERS:
        return t.DOUBLE if name == "/" else _integer(name, args, left, right)
    if name in ("/", "//"):
        return t.DOUBLE
    a, b = t.as_decimal(left), t.as_decimal(right)
    if name == "%":
        type = t.comparable([a, b])
        return t.DOUBLE if type is None or pa.types.is_decimal256(type) else type
    if name in "+-":
        scale = max(a.scale, b.scale)
        return pa.decimal128(min(38, max(a.precision - a.scale, b.precision - b.scale) + scale + 1), scale)
    return _product(a, b)


def _integer(name: str, args: Sequence[Expr], left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if any(is_written_integer(a) for a in args):
        return meet(name, args)
    if (left in t.SIGNED) == (right in t.SIGNED):
        return max(left, right, key=lambda type: type.bit_width)
    signed, unsigned = (left, right) if left in t.SIGNED else (right, left)
    if unsigned == t.UINT64:
        return meet(name, args)
    return signed if signed.bit_width > unsigned.bit_width else t.INT64


def _product(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    width, scale = a.precision + b.precision, a.scale + b.scale
    if scale > 38:
        raise TypeMismatch(
            f"the product of {t.sql_type(a)} and {t.sql_type(b)} needs {scale} decimals: cast one to DOUBLE"
        )
    if width > decimals.NARROW >= max(a.precision, b.precision) and scale < decimals.NARROW:
        width = decimals.NARROW
    return pa.decimal128(min(width, 38), scale)


def _decimal_operands(name: str, args: Sequence[Expr], type: pa.DataType) -> list[Expr]:
    """Sums want both sides in the scale of the result, products as they are."""
    if name == "*":
        return [coerce(a, t.as_decimal(t.logical(a.type))) if not is_null(a) else coerce(a, type) for a in args]
    return [coerce(a, type) for a in args]


def _sum(name: str, type: pa.DataType) -> tuple[pa.DataType | None, Kernel]:
    if pa.types.is_decimal128(type):
        return None, _decimal(name, type)
    if type in t.FLOATS:
        return type, lambda args, rows: _PLAIN[name](*args)
    slow = strict(_overflowing(name), type)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        try:
            return _CHECKED[name](*args)
        except pa.ArrowInvalid:
            return slow(args, rows)

    return type, kernel


def _overflowing(name: str) -> Callable[[AnyArray, AnyArray], tuple[AnyArray, Bools]]:
    def operate(a: AnyArray, b: AnyArray) -> tuple[AnyArray, Bools]:
        if name == "+":
            result = a + b
            bad = result < a if a.dtype.kind == "u" else ((a ^ result) & (b ^ result)) < 0
        elif name == "-":
            result = a - b
            bad = a < b if a.dtype.kind == "u" else ((a ^ b) & (a ^ result)) < 0
        else:
            result = a * b
            by = np.where(b == 0, b.dtype.type(1), b)
            least = np.iinfo(a.dtype).min
            bad = (b != 0) & ((result // by != a) | (result % by != 0))
            if a.dtype.kind == "i":
                bad |= (a == least) & (b == -1) | (b == least) & (a == -1)
        return result, bad

    return operate


def _decimal(name: str, type: pa.DataType) -> Kernel:
    """A kernel: Arrow's exact one if the result has at most 38 digits, else Python's integers; results that do not fit
    the type cannot be computed."""

    def wide(a: AnyArray, b: AnyArray) -> tuple[AnyArray, Bools]:
        a, b = a.astype(object), b.astype(object)
        result = a + b if name == "+" else a - b if name == "-" else a * b
        return result, decimals.outside(result, type)

    slow = strict(wide, type)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        digits = [a.type.precision for a in args]
        if (sum(digits) if name == "*" else max(digits)) + 1 > 38:
            return slow(args, rows)
        try:
            return _PLAIN[name](*args).cast(type)
        except pa.ArrowInvalid:
            return slow(args, rows)

    return kernel


def _divide(name: str, type: pa.DataType) -> tuple[pa.DataType | None, Kernel]:
    """Division of floats; in DuckDB `//` of floats is `/`."""
    if type not in t.FLOATS:
        return type, strict(_truncating, type)
    zero = pa.scalar(0.0, type)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array | Partial:
        return _unless_zero(pc.divide(*args), args[1], zero)

    return type, kernel


def _unless_zero(values: pa.Array, divisor: Value, zero: pa.Scalar) -> pa.Array | Partial:
    if isinstance(divisor, pa.Scalar) and divisor.is_valid and divisor.as_py() != 0:
        return values
    bad = pc.equal(divisor, zero)
    return without(values, pa.repeat(bad, len(values)) if isinstance(bad, pa.Scalar) else bad)


def _truncating(a: AnyArray, b: AnyArray) -> tuple[AnyArray, Bools]:
    bad = b == 0
    if a.dtype.kind == "i":
        bad = bad | (a == np.iinfo(a.dtype).min) & (b == -1)
    by = np.where(bad, b.dtype.type(1), b)
    quotient = a // by
    return quotient + ((a % by != 0) & ((a < 0) != (by < 0))).astype(a.dtype), bad


def _modulo(name: str, type: pa.DataType) -> tuple[pa.DataType | None, Kernel]:
    def remainder(a: AnyArray, b: AnyArray) -> tuple[AnyArray, Bools]:
        bad = np.asarray(b == 0, bool)
        if a.dtype.kind == "i" and not pa.types.is_decimal(type):
            bad = bad | (a == np.iinfo(a.dtype).min) & (b == -1)
        by = np.where(bad, b.dtype.type(1) if b.dtype != object else 1, b)
        if a.dtype != object:
            return np.fmod(a, by), bad
        size = abs(a) % abs(by)
        return np.where((a < 0).astype(bool), -size, size), bad

    return (None if pa.types.is_decimal128(type) else type), strict(remainder, type)


def _sign(name: str, arg: Expr) -> Expr:
    type = t.logical(arg.type)
    if not (t.is_number(type) or type == t.NULL or (type == t.INTERVAL and name == "-")):
        raise refuse(name, [arg], "a number" if name == "+" else "a number or an interval")
    if name == "+" or is_null(arg):
        return arg
    if isinstance(arg, Literal):
        value = -arg.value  # type: ignore[operator]
        if is_written_integer(arg):
            return Literal(value, t.INT32 if -(2**31) <= value < 2**31 else t.INT64)
        if type not in t.UNSIGNED:
            return Literal(value, type)
    if type in t.FLOATS or pa.types.is_decimal128(type):
        return make(name, [arg], type, lambda args, rows: pc.negate(args[0]))
    if type in t.UNSIGNED:
        return make(name, [arg], type, strict(lambda v: (v, v != 0), type))
    return make(name, [arg], type, strict(lambda v: (-v, v == np.iinfo(v.dtype).min), type))


_OPERATORS = {"+": _sum, "-": _sum, "*": _sum, "/": _divide, "//": _divide, "%": _modulo}


def _entry(name: str, doc: str, gives: str, takes: str = "", aliases: Sequence[str] = ()) -> Function:
    return Function(name, "Arithmetic", takes or f"a {name} b", gives, doc, _resolve(name), dict.fromkeys(aliases, ""))


FUNCTIONS = (
    _entry(
        "+",
        "Sum; also a time plus an interval, a date plus days.",
        "the wider type; decimals one digit more",
        "a + b, +a",
    ),
    _entry(
        "-",
        "Difference, or the negative; also between times.",
        "as +; timestamps: INTERVAL; dates: BIGINT",
        "a - b, -a",
    ),
    _entry("*", "Product.", "the wider type; decimals: digits and scales added"),
    _entry(
        "/", "Division of floats; by zero it cannot be computed.", "DOUBLE (FLOAT if one side is and none is DOUBLE)"
    ),
    _entry("//", "Division of integers, towards zero; of anything else the same as /.", "the wider integer; DOUBLE"),
    _entry("%", "Remainder, with the sign of the dividend.", "the wider type", aliases=["mod"]),
)
