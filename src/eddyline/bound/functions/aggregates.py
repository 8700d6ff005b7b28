"""The aggregates and their result types. bound/aggregates.py computes them."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from eddyline.bound import types as t
from eddyline.bound.expr import Aggregate, Expr, Literal
from eddyline.bound.functions.casts import cast
from eddyline.bound.types import TypeMismatch, sql_type

NAMES = {
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "avg",
    "mean": "avg",
    "stddev_samp": "stddev_samp",
    "stddev": "stddev_samp",
    "var_samp": "var_samp",
    "variance": "var_samp",
    "approx_count_distinct": "count",
    "quantile_cont": "quantile_cont",
    "percentile_cont": "quantile_cont",
    "median": "quantile_cont",
    "quantile_disc": "quantile_disc",
    "percentile_disc": "quantile_disc",
    "quantile": "quantile_disc",
    "list": "list",
    "array_agg": "list",
    "string_agg": "string_agg",
    "group_concat": "string_agg",
    "listagg": "string_agg",
}


def aggregate(name: str, arg: Expr | None, distinct: bool, parameter: Expr | None = None) -> Aggregate:
    """The aggregate over `arg` (None for COUNT(*)), decoded to its logical type; `parameter` is its second argument."""
    known = NAMES.get(name.lower())
    if known is None:
        raise TypeMismatch(f"there is no aggregate {name}: there are {', '.join(n.upper() for n in NAMES)}")
    if name.lower() == "approx_count_distinct":
        distinct = True
    if arg is None:
        if known != "count" or distinct:
            raise TypeMismatch(f"{name.upper()} needs an argument")
        return Aggregate(known, None, False, t.INT64)
    if distinct and known != "count":
        if known not in ("min", "max"):
            raise TypeMismatch(f"DISTINCT is for COUNT only, not for {name.upper()}")
        distinct = False
    if t.is_opaque(arg.type):
        if known == "count" and not distinct:
            return Aggregate(known, arg, False, t.INT64)
        raise TypeMismatch(f"{name.upper()} does not take {sql_type(arg.type)}")
    type = _type(known, t.logical(arg.type))
    if type is None:
        takes = _quantile_takes(t.logical(arg.type)) if known == "quantile_cont" else _TAKES.get(known)
        raise TypeMismatch(
            f"{name.upper()} does not take {sql_type(arg.type)}: it takes {takes or 'numbers'}",
            from_text=takes is None and t.logical(arg.type) == t.STRING,
        )
    return Aggregate(known, cast(arg, t.logical(arg.type)), distinct, type, _parameter(name.lower(), known, parameter))


_TAKES = {
    "string_agg": "strings: write a CAST",
    "list": "values of the SQL types",
}


def _quantile_takes(type: pa.DataType) -> str:
    """What an interpolated quantile takes, and what to write for values of a type that it does not take."""
    if type == t.MONTHS:
        return "integers and floats; there is no quantile of intervals with months yet"
    if pa.types.is_decimal(type):
        instead = "; write CAST(x AS DOUBLE)"
    elif type == t.INTERVAL:
        instead = "; write epoch(x), its seconds"
    elif type == t.DATE or t.is_moment(type):
        instead = "; write epoch(x), its seconds since 1970"
    else:
        return "integers and floats; quantile_disc(x, 0.5) takes values of any type"
    return f"integers and floats{instead}, or quantile_disc(x, 0.5), which is one of the values"


def _parameter(name: str, known: str, expr: Expr | None) -> Decimal | str | None:
    """The second argument of an aggregate, a constant."""
    if known == "string_agg":
        if expr is None:
            return ","
        if not isinstance(expr, Literal) or not isinstance(expr.value, str):
            raise TypeMismatch(f"the separator of {name} must be a string written in the text")
        return expr.value
    if known not in ("quantile_cont", "quantile_disc"):
        if expr is not None:
            raise TypeMismatch(f"{name.upper()} takes one argument")
        return None
    if name == "median":
        if expr is not None:
            raise TypeMismatch("median takes one argument; write quantile_cont(x, 0.9) for another share")
        return Decimal("0.5")
    value = expr.value if isinstance(expr, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value <= 1:
        raise TypeMismatch(f"the share of {name} must be a number from 0 to 1 written in the text, as in 0.95")
    return Decimal(str(value))


def _type(name: str, type: pa.DataType) -> pa.DataType | None:
    if name == "count":
        return t.INT64
    if name in ("min", "max"):
        return type
    if name == "quantile_cont":
        return type if type in t.FLOATS else t.DOUBLE if t.is_integer(type) else None
    if type in (t.NULL, t.MONTHS) and name in ("quantile_disc", "list", "string_agg"):
        return None
    if name in ("quantile_disc", "list"):
        return type if name == "quantile_disc" else pa.list_(type)
    if name == "string_agg":
        return type if type == t.STRING else None
    if not t.is_number(type):
        return None
    if name != "sum" or type in t.FLOATS:
        return t.DOUBLE
    return pa.decimal128(38, type.scale if pa.types.is_decimal128(type) else 0)
