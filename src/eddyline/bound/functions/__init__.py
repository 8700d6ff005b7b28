"""The closed table of functions, and the three ways to make a typed call from it.

Every call made here is well typed: arguments already have the types that their kernel takes (casts are calls of their
own), so evaluation never checks types. A function that we could not compute as DuckDB does is left out rather than
approximated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from eddyline.bound.expr import Aggregate, Expr
from eddyline.bound.functions import aggregates, casts
from eddyline.bound.functions.modules import TABLE
from eddyline.bound.functions.table import USER, Function
from eddyline.bound.types import TypeMismatch

__all__ = ["TypeMismatch", "aggregate", "call", "cast", "names", "table"]

ALIASES: Mapping[str, str] = {alias: f.name for f in TABLE.values() for alias in f.aliases}


def call(name: str, args: Sequence[Expr], variant: str = "") -> Expr:
    """The function `name` applied to `args`, with the casts DuckDB would insert; TypeMismatch when there is none.

    `-` with one argument negates. CASE is `[condition, value, condition, value, ..., else]`, the else optional; the
    caller rewrites `CASE x WHEN v` as `x = v`. The unit of date_trunc, extract and date_diff is `variant`, or the first
    argument if that is a string literal and `variant` is empty.
    """
    key = name.lower()
    function = TABLE.get(ALIASES.get(key, key)) or USER.get(key)
    if function is None:
        raise TypeMismatch(f"there is no function {name}")
    return function.resolve(tuple(args), variant or function.alias_variant(key))


def cast(expr: Expr, type: pa.DataType, try_: bool = False) -> Expr:
    """CAST (or TRY_CAST) with DuckDB's meaning; TypeMismatch when no value of the one type can become the other."""
    return casts.cast(expr, type, try_)


def aggregate(name: str, arg: Expr | None, distinct: bool, parameter: Expr | None = None) -> Aggregate:
    """An aggregate with its result type; TypeMismatch when it does not exist or does not take that argument."""
    return aggregates.aggregate(name, arg, distinct, parameter)


def names() -> tuple[str, ...]:
    """Every name that `call` knows, aliases included, user functions not."""
    return tuple(sorted({*TABLE, *ALIASES}))


def table() -> tuple[Function, ...]:
    """The closed table, in the order of the documentation."""
    return tuple(TABLE.values())
