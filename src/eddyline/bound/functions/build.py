"""Making typed calls: casts arguments to a common type by DuckDB's rules, and raises errors that say what would be
right.

An integer constant takes the type of the other argument if it fits (`tiny + 1` is a TINYINT), and a string constant is
read as that type (`day = '2024-01-01'`). No other expression changes its type because of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import pyarrow as pa

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Kernel, Literal
from eddyline.bound.functions import casts
from eddyline.bound.types import TypeMismatch, sql_type

Accepts = Callable[[pa.DataType], bool]


def listed(args: Sequence[Expr]) -> str:
    """The types of arguments, for messages."""
    return ", ".join(sql_type(a.type) for a in args) or "nothing"


def refuse(name: str, args: Sequence[Expr], takes: str) -> TypeMismatch:
    """The error to raise for arguments that a function does not take."""
    return TypeMismatch(f"{name} does not take ({listed(args)}): it takes {takes}")


def count(name: str, args: Sequence[Expr], least: int, most: int | None = None) -> None:
    """Check the number of arguments."""
    most = least if most is None else most
    if not least <= len(args) <= most:
        wanted = f"{least}" if least == most else f"{least} or more" if most > 99 else f"{least} to {most}"
        raise TypeMismatch(f"{name} takes {wanted} argument{'s' * (wanted != '1')}, not {len(args)}")


def make(name: str, args: Sequence[Expr], type: pa.DataType, kernel: Kernel, variant: str = "") -> Expr:
    """A call of a function that is NULL if an argument is; the literal NULL if an argument is the literal NULL."""
    if any(isinstance(a, Literal) and a.value is None for a in args):
        return Literal(None, type)
    return Call(name, tuple(args), type, kernel, variant)


def is_null(expr: Expr) -> bool:
    """The literal NULL, typed or not."""
    return isinstance(expr, Literal) and expr.value is None


def is_written_integer(expr: Expr) -> TypeGuard[Literal]:
    """Whether it is an integer constant: INTEGER if it fits, else BIGINT."""
    if not (isinstance(expr, Literal) and isinstance(expr.value, int) and expr.type in (t.INT32, t.INT64)):
        return False
    return expr.type == t.INT32 or not -(2**31) <= expr.value < 2**31


def is_written_string(expr: Expr) -> bool:
    """Whether it is a string constant."""
    return isinstance(expr, Literal) and isinstance(expr.value, str)


def meet(name: str, args: Sequence[Expr], huge: bool = False) -> pa.DataType:
    """The common type of all arguments. With `huge` they are only compared, so it may be a type that no result can
    have."""
    together = t.comparable if huge else t.common
    if any(t.is_opaque(a.type) for a in args):
        raise refuse(name, args, "values of the SQL types, not nested ones")
    strings = [a for a in args if is_written_string(a)]
    written = [a for a in args if is_written_integer(a)]
    kept = [a.type for a in args if not is_written_integer(a) and not is_written_string(a)]
    type = together(kept)
    for number in written:
        if type is not None and not _fits(number, type):
            kept.append(number.type)
            type = together(kept)
    if type == t.NULL and strings:
        type = t.STRING
    if type is None or t.MONTHS in (a.type for a in args):
        types = [a.type for a in args]
        raise TypeMismatch(f"{name} needs values of one type, not ({listed(args)}): write a CAST", unlike=types)
    integers = [a for a in args if t.is_integer(t.logical(a.type))]
    if type == t.HUGEINT and not huge and len(integers) == len([a for a in args if not is_null(a)]):
        raise TypeMismatch(f"{name} of UBIGINT and a signed integer has no type here: cast one to DECIMAL(20,0)")
    return type


def _fits(number: Literal, type: pa.DataType) -> bool:
    assert isinstance(number.value, int)
    if not t.is_integer(type):
        return False
    low, high = t.int_bounds(type)
    return low <= number.value <= high


def coerce(expr: Expr, type: pa.DataType) -> Expr:
    """The expression as the type that its function takes, without a cast if kernels see the same values in both
    types."""
    if is_null(expr):
        return Literal(None, type)
    if t.physical(expr.type) == t.physical(type):
        return expr
    if is_written_integer(expr) and _fits(expr, type):
        return Literal(expr.value, type)
    if isinstance(expr, Literal):
        return casts.literal(expr, type)
    return casts.cast(expr, type)


def unify(name: str, args: Sequence[Expr], huge: bool = False) -> tuple[list[Expr], pa.DataType]:
    """The arguments cast to their common type, and that type."""
    type = meet(name, args, huge)
    return [coerce(a, type) for a in args], type


def constant(name: str, expr: Expr, what: str) -> object:
    """The value of an argument that must be a constant; TypeMismatch if it is not."""
    if not isinstance(expr, Literal):
        raise TypeMismatch(f"{what} of {name} must be a constant")
    return expr.value
