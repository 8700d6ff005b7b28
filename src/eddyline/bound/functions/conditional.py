"""CASE and the functions built on it: every branch is evaluated, and the values have one common type."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.expr import Call, Expr, Literal, Value
from eddyline.bound.functions.build import count, is_null, refuse, unify
from eddyline.bound.functions.comparison import compare
from eddyline.bound.functions.logic import condition
from eddyline.bound.functions.table import Function, Resolve


def _column(value: Value, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def _case(args: tuple[Expr, ...], variant: str) -> Expr:
    count("case", args, 2, 10_000)
    pairs = len(args) // 2
    conditions = [condition("case", a) for a in args[0 : 2 * pairs : 2]]
    values, type = unify("case", [*args[1 : 2 * pairs : 2], *args[2 * pairs :]])
    if len(args) % 2 == 0:
        values.append(Literal(None, type))
    mixed = [e for pair in zip(conditions, values, strict=False) for e in pair]

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        result = args[-1]
        for at in range(2 * pairs - 2, -1, -2):
            result = pc.if_else(_column(args[at], rows).fill_null(False), args[at + 1], result)
        return _column(result, rows)

    return Call("case", (*mixed, values[-1]), type, kernel)


def _if(args: tuple[Expr, ...], variant: str) -> Expr:
    count("if", args, 3)
    return _case(args, variant)


def _coalesce(name: str, most: int) -> Resolve:
    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 2 if most == 2 else 1, most)
        values, type = unify(name, args)
        return Call("coalesce", tuple(values), type, lambda args, rows: pc.coalesce(*args))

    return resolve


def _nullif(args: tuple[Expr, ...], variant: str) -> Expr:
    count("nullif", args, 2)
    if is_null(args[0]):
        return args[0]
    sides, met = unify("nullif", args, huge=True)
    test, type = compare("=", met), t.logical(args[0].type)

    def kernel(args: Sequence[Value], rows: int) -> pa.Array:
        value, a, b = args
        if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar):
            a = pa.repeat(a, rows)
        return pc.if_else(test(a, b).fill_null(False), pa.scalar(None, value.type), value)

    return Call("nullif", (args[0], *sides), type, kernel)


def _extreme(name: str, order: str) -> Resolve:
    """GREATEST or LEAST of the arguments that are not NULL: the first value to which `order` prefers no other."""

    def resolve(args: tuple[Expr, ...], variant: str) -> Expr:
        count(name, args, 1, 10_000)
        values, type = unify(name, args)
        if type == t.INTERVAL:  # DuckDB does not order intervals here as it does elsewhere
            raise refuse(name, args, "numbers, strings, dates and timestamps")
        test = compare(order, type)

        def kernel(args: Sequence[Value], rows: int) -> pa.Array:
            best = _column(args[0], rows)
            for arg in args[1:]:
                arg = _column(arg, rows)
                better = pc.or_kleene(test(arg, best), best.is_null()).fill_null(False)
                best = pc.if_else(better, arg, best)
            return best

        return Call(name, tuple(values), type, kernel)

    return resolve


FUNCTIONS = (
    Function(
        "case",
        "Conditions",
        "CASE WHEN a THEN x ... ELSE y END",
        "the type of the values",
        "The value of the first condition that is true; `CASE a WHEN b` compares with =.",
        _case,
    ),
    Function("if", "Conditions", "if(a, x, y)", "the type of the values", "x if a is true, else y.", _if),
    Function(
        "coalesce",
        "Conditions",
        "coalesce(x, ...)",
        "the type of the values",
        "The first value that is not NULL.",
        _coalesce("coalesce", 10_000),
    ),
    Function(
        "ifnull",
        "Conditions",
        "ifnull(x, y)",
        "the type of the values",
        "x, or y if x is NULL.",
        _coalesce("ifnull", 2),
    ),
    Function("nullif", "Conditions", "nullif(x, y)", "the type of x", "NULL if x = y, else x.", _nullif),
    Function(
        "greatest",
        "Conditions",
        "greatest(x, ...)",
        "the type of the values",
        "The greatest value that is not NULL.",
        _extreme("greatest", ">"),
    ),
    Function(
        "least",
        "Conditions",
        "least(x, ...)",
        "the type of the values",
        "The least value that is not NULL.",
        _extreme("least", "<"),
    ),
)
