"""Calls over every combination of edge values, evaluated both by DuckDB and by us."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Call, Expr, Literal, SourceColumn
from eddyline.bound.functions import call, cast
from lab.fuzz.edge_values import EDGES


@dataclass(frozen=True)
class Case:
    """A call over columns a, b, c of the types given and constants, and how SQL writes it."""

    name: str
    args: tuple[Expr, ...]
    sql: str
    variant: str = ""

    def expr(self) -> Expr:
        if self.name in ("cast", "try_cast"):
            return cast(self.args[0], t.arrow_type(self.variant), self.name == "try_cast")
        return call(self.name, self.args, self.variant)

    def over(self, schema: pa.Schema) -> Expr:
        """The call over columns of these types."""
        return replace(self, args=tuple(_over(a, schema) for a in self.args)).expr()


def _over(expr: Expr, schema: pa.Schema) -> Expr:
    if isinstance(expr, SourceColumn):
        return replace(expr, type=schema.field(expr.name).type)
    return replace(expr, args=tuple(_over(a, schema) for a in expr.args)) if isinstance(expr, Call) else expr


def col(type: pa.DataType, at: int = 0) -> SourceColumn:
    """Column a, b or c of the grid."""
    return SourceColumn(0, "abc"[at], type)


def lit(value: object, type: pa.DataType | None = None) -> Literal:
    """A constant as the binder makes it."""
    if type is None:
        kinds = {bool: t.BOOL, int: t.INT32, str: t.STRING, float: t.DOUBLE, type_(None): t.NULL, timedelta: t.INTERVAL}
        type = kinds[type_(value)]
        if isinstance(value, int) and not isinstance(value, bool) and not -(2**31) <= value < 2**31:
            type = t.INT64
    return Literal(value // timedelta(microseconds=1) if isinstance(value, timedelta) else value, type)


type_ = type


@cache
def table(types: tuple[pa.DataType, ...]) -> pa.Table:
    """Every combination of the edge values of up to three types."""
    rows: list[tuple[Any, ...]] = [()]
    for type in types:
        rows = [(*row, value) for row in rows for value in EDGES[type]]
    return pa.table({"abc"[i]: pa.array([r[i] for r in rows], type) for i, type in enumerate(types)})


CONNECTION = duckdb.connect()


def ours(expr: Expr, data: pa.Table) -> tuple[pa.Array, int]:
    """What we make of an expression, and how many values could not be computed."""
    env = {SourceColumn(0, n, data[n].type): data[n].combine_chunks() for n in data.column_names}
    errors = ErrorCount()
    return evaluate(expr, env, data.num_rows, errors), errors.count


def theirs(sql: str, data: pa.Table) -> tuple[list[Any], str]:
    """What DuckDB makes of it, NULL where it raises, and its type."""
    CONNECTION.register("grid", data)
    rows = CONNECTION.sql(f"SELECT TRY({sql}) AS r, typeof({sql}) AS t FROM grid").to_arrow_table()
    return plain(rows["r"].combine_chunks()), rows["t"][0].as_py()


def plain(array: pa.Array) -> list[Any]:
    """Values as Python compares them: times as integers."""
    type = array.type
    if pa.types.is_interval(type):
        return [None if v is None else v.days * 86_400_000_000 + v.nanoseconds // 1000 for v in array.to_pylist()]
    if pa.types.is_temporal(type):
        wide = pa.int32() if type.bit_width == 32 else pa.int64()
        return list(array.view(wide).to_pylist())
    return list(array.to_pylist())


def same(a: Any, b: Any) -> bool:
    """Equal; NaN is equal to itself."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return bool(a == b) and (a is None) == (b is None)


def differences(expr: Expr, sql: str, data: pa.Table) -> list[str]:
    """Where the two disagree, in words."""
    mine, _ = ours(expr, data)
    other, type = theirs(sql, data)
    found = []
    if mine.type != t.logical(expr.type):
        found.append(f"{sql}: declared {expr.type}, evaluated {mine.type}")
    if t.sql_type(mine.type) != type and type != '"NULL"':
        found.append(f"{sql}: type {t.sql_type(mine.type)}, DuckDB {type}")
    for row, (a, b) in enumerate(zip(plain(mine), other, strict=True)):
        if not same(a, b):
            at = {name: plain(data[name].slice(row, 1).combine_chunks())[0] for name in data.column_names}
            found.append(f"{sql} at {at}: {a!r}, DuckDB {b!r}")
    return found
