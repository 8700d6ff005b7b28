"""The aggregates and their result types. What they compute is the grouping's business."""

from __future__ import annotations

import pyarrow as pa

from eddyline.query import types as t
from eddyline.query.expr import Aggregate, Expr
from eddyline.query.functions.casts import cast
from eddyline.query.types import TypeMismatch, sql_type

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
}


def aggregate(name: str, arg: Expr | None, distinct: bool) -> Aggregate:
    """The aggregate over `arg` (None for COUNT(*)), decoded to its logical type."""
    known = NAMES.get(name.lower())
    if known is None:
        raise TypeMismatch(f"there is no aggregate {name}: there are {', '.join(n.upper() for n in NAMES)}")
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
        raise TypeMismatch(f"{name.upper()} does not take {sql_type(arg.type)}: it takes numbers")
    return Aggregate(known, cast(arg, t.logical(arg.type)), distinct, type)


def _type(name: str, type: pa.DataType) -> pa.DataType | None:
    if name == "count":
        return t.INT64
    if name in ("min", "max"):
        return type
    if not t.is_number(type):
        return None
    if name != "sum" or type in t.FLOATS:
        return t.DOUBLE
    return pa.decimal128(38, type.scale if pa.types.is_decimal128(type) else 0)
