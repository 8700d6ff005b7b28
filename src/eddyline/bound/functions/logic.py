"""AND, OR, NOT in three-valued logic, and the tests for NULL. Both sides are always evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Value
from eddyline.bound.functions.build import coerce, count, is_null, refuse
from eddyline.bound.functions.table import Function, Resolve
from eddyline.cql.limits import PARTS


def condition(name: str, expr: Expr) -> Expr:
    """A condition: BOOLEAN or NULL."""
    if t.logical(expr.type) != t.BOOL and not is_null(expr):
        raise refuse(name, [expr], "conditions (BOOLEAN)")
    return coerce(expr, t.BOOL)


def _both(name: str, kernel: Callable[[Value, Value], Value]) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 2, PARTS.most)

        def run(args: Sequence[Value], rows: int) -> pa.Array:
            result = args[0]
            for arg in args[1:]:
                result = kernel(result, arg)
            return result

        return Call(name, tuple(condition(name, a) for a in args), t.BOOL, run)

    return resolve


def negate(expr: Expr) -> Expr:
    """NOT."""
    return Call("not", (condition("not", expr),), t.BOOL, lambda args, rows: pc.invert(args[0]))


def _not(args: tuple[Expr, ...], variant: str) -> Expr:
    count("not", args, 1)
    return negate(args[0])


def _is_null(name: str, kernel: Callable[[Value], pa.Array]) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1)
        return Call(name, args, t.BOOL, lambda args, rows: kernel(args[0]))

    return resolve


FUNCTIONS = (
    Function(
        "and", "Logic", "a AND b", "BOOLEAN", "Both; FALSE if one is, else NULL if one is.", _both("and", pc.and_kleene)
    ),
    Function(
        "or",
        "Logic",
        "a OR b",
        "BOOLEAN",
        "One of them; TRUE if one is, else NULL if one is.",
        _both("or", pc.or_kleene),
    ),
    Function("not", "Logic", "NOT a", "BOOLEAN", "The opposite; NULL stays NULL.", _not),
    Function(
        "is null",
        "Logic",
        "a IS NULL",
        "BOOLEAN",
        "Whether there is no value, of any type.",
        _is_null("is null", pc.is_null),
    ),
    Function(
        "is not null",
        "Logic",
        "a IS NOT NULL",
        "BOOLEAN",
        "Whether there is a value, of any type.",
        _is_null("is not null", pc.is_valid),
    ),
)
