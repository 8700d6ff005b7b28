"""Functions of one or two numbers. Where IEEE has an answer (sqrt(-1) is NaN, ln(0) is -inf) DuckDB gives it, and so
do we."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Expr, Literal
from eddyline.bound.functions import decimals
from eddyline.bound.functions.arrays import AnyArray, Bools, strict
from eddyline.bound.functions.build import coerce, constant, count, is_null, make, refuse
from eddyline.bound.functions.casts import half_away
from eddyline.bound.functions.table import Function, Resolve
from eddyline.bound.types import TypeMismatch


def _number(name: str, arg: Expr) -> pa.DataType:
    if is_null(arg):
        return t.DOUBLE
    type = t.logical(arg.type)
    if not t.is_number(type):
        raise refuse(name, [arg], "a number")
    return type


def _abs(args: tuple[Expr, ...], variant: str) -> Expr:
    count("abs", args, 1)
    type = t.INTERVAL if t.logical(args[0].type) == t.INTERVAL else _number("abs", args[0])
    if type in t.UNSIGNED:
        return args[0]
    if type in t.FLOATS or pa.types.is_decimal128(type):
        return make("abs", args, type, lambda args, rows: pc.abs(args[0]))
    return make("abs", args, type, strict(lambda v: (abs(v), v == np.iinfo(v.dtype).min), type))


def _sign(args: tuple[Expr, ...], variant: str) -> Expr:
    count("sign", args, 1)
    _number("sign", args[0])
    return make("sign", args, t.INT8, strict(lambda v: (v > 0).astype(np.int8) - (v < 0).astype(np.int8), t.INT8))


def _round(args: tuple[Expr, ...], variant: str) -> Expr:
    count("round", args, 1, 2)
    type = _number("round", args[0])
    digits = 0
    if len(args) == 2:
        given = constant("round", args[1], "the number of digits")
        if given is None:
            return Literal(None, type)
        if not isinstance(given, int):
            raise refuse("round", args, "a number and a whole number of digits")
        digits = given
    if type in t.UNSIGNED:
        if type == t.UINT64:
            raise TypeMismatch("round of UBIGINT has no type here: cast it to DECIMAL(20,0)")
        type = t.INT64
    value = coerce(args[0], type)
    if t.is_integer(type):
        return make("round", [value], type, strict(_round_integer(digits), type), f"{digits}")
    if type in t.FLOATS:
        return make("round", [value], type, strict(_round_float(digits), type), f"{digits}")
    carries = digits < 0 and not type.scale  # 95 becomes 100; a decimal with a scale has a digit to spare
    result = pa.decimal128(min(38, type.precision + carries), max(0, min(digits, type.scale)))

    def to_digits(values: AnyArray) -> AnyArray | tuple[AnyArray, Bools]:
        rounded = decimals.rescale(values, min(digits, type.scale) - type.scale, type.precision)
        rounded = rounded * 10**-digits if digits < 0 else rounded
        return (rounded, decimals.outside(rounded, result)) if carries and type.precision == 38 else rounded

    if digits <= type.scale - type.precision:
        raise TypeMismatch(f"{t.sql_type(type)} has no digit that round(x, {digits}) would keep")
    return make("round", [value], result, strict(to_digits, result), f"{digits}")


def _round_integer(digits: int) -> Callable[[AnyArray], AnyArray | tuple[AnyArray, Bools]]:
    def to_digits(values: AnyArray) -> AnyArray | tuple[AnyArray, Bools]:
        if digits >= 0:
            return values
        if digits < -19:
            return np.zeros_like(values)
        rounded = decimals.rescale(values.astype(object), digits, 38) * 10**-digits
        limits = np.iinfo(values.dtype)
        bad = ((rounded < int(limits.min)) | (rounded > int(limits.max))).astype(bool)
        return np.where(bad, 0, rounded).astype(values.dtype), bad

    return to_digits


def _round_float(digits: int) -> Callable[[AnyArray], AnyArray]:
    def to_digits(values: AnyArray) -> AnyArray:
        wide = values.astype(np.float64)
        if digits == 0:
            return half_away(values)
        power = np.float64(10.0) ** abs(digits)
        rounded = half_away(wide * power) / power if digits > 0 else half_away(wide / power) * power
        other = wide if digits > 0 else np.where(np.isfinite(wide), 0.0, wide)
        return np.where(np.isfinite(rounded), rounded, other).astype(values.dtype)

    return to_digits


def _whole(name: str, function: Callable[[AnyArray], AnyArray]) -> Resolve:
    """floor, ceil, trunc: decimals lose their scale; floor and ceil make doubles of integers, trunc leaves them."""

    def of_decimal(scale: int) -> Callable[[AnyArray], AnyArray]:
        unit = 10**scale

        def to_whole(values: AnyArray) -> AnyArray:
            whole: AnyArray = values // unit
            if name == "ceil":
                whole = -(-values // unit)
            elif name == "trunc":
                size = abs(values) // unit
                whole = np.where((values < 0).astype(bool), -size, size)
            return whole

        return to_whole

    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1)
        type = _number(name, args[0])
        if pa.types.is_decimal128(type):
            result = pa.decimal128(type.precision, 0)
            return make(name, args, result, strict(of_decimal(type.scale), result))
        if t.is_integer(type):
            return args[0] if name == "trunc" else coerce(args[0], t.DOUBLE)
        return make(name, args, type, strict(function, type))

    return resolve


def _real(name: str, function: Callable[..., pa.Array], arity: int = 1, gives: pa.DataType = t.DOUBLE) -> Resolve:
    """A function of doubles. `function` is Arrow's, which calls the C library for each value, as DuckDB does.

    NumPy's are quicker but not the same everywhere: which of its loops runs, and so the last bit, depends on the
    processor, and for `power` also on how many rows there are.
    """

    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, arity)
        for arg in args:
            _number(name, arg)
        return make(name, [coerce(a, t.DOUBLE) for a in args], gives, lambda args, rows: function(*args))

    return resolve


def _pi(args: tuple[Expr, ...], variant: str) -> Expr:
    count("pi", args, 0)
    return Literal(math.pi, t.DOUBLE)


def _entry(name: str, doc: str, resolve: Resolve, gives: str = "DOUBLE", takes: str = "", alias: str = "") -> Function:
    aliases = {alias: ""} if alias else {}
    return Function(name, "Numbers", takes or f"{name}(x)", gives, doc, resolve, aliases)


FUNCTIONS = (
    _entry("abs", "The absolute value, also of an interval.", _abs, "the type of x"),
    _entry("sign", "-1, 0 or 1; 0 for NaN.", _sign, "TINYINT"),
    _entry(
        "round",
        "Rounded to n decimals (0 if not given, a constant), halves away from zero.",
        _round,
        "the type of x; decimals lose scale",
        "round(x[, n])",
    ),
    _entry("floor", "The next whole number below.", _whole("floor", np.floor), "DOUBLE; FLOAT and DECIMAL stay"),
    _entry(
        "ceil",
        "The next whole number above.",
        _whole("ceil", np.ceil),
        "DOUBLE; FLOAT and DECIMAL stay",
        alias="ceiling",
    ),
    _entry("trunc", "Without its decimals.", _whole("trunc", np.trunc), "the type of x; decimals lose scale"),
    _entry("sqrt", "The square root; NaN below zero.", _real("sqrt", pc.sqrt)),
    _entry("exp", "e to the power of x.", _real("exp", pc.exp)),
    _entry("ln", "The natural logarithm; -inf of zero, NaN below.", _real("ln", pc.ln)),
    _entry("log10", "The logarithm to base 10.", _real("log10", pc.log10), alias="log"),
    _entry("log2", "The logarithm to base 2.", _real("log2", pc.log2)),
    _entry("pow", "x to the power of y.", _real("pow", pc.power, 2), takes="pow(x, y)", alias="power"),
    _entry("pi", "The number pi.", _pi, takes="pi()"),
    _entry("isnan", "Whether it is NaN.", _real("isnan", pc.is_nan, gives=t.BOOL), "BOOLEAN"),
    _entry("isinf", "Whether it is infinite.", _real("isinf", pc.is_inf, gives=t.BOOL), "BOOLEAN"),
    _entry(
        "isfinite", "Whether it is neither NaN nor infinite.", _real("isfinite", pc.is_finite, gives=t.BOOL), "BOOLEAN"
    ),
)
