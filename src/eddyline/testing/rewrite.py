"""From our SELECT to DuckDB's: names qualified, and every node that can fail made NULL where it fails.

By SEMANTICS, an expression that cannot be evaluated is NULL at the node that fails. In DuckDB that is TRY(...) around
every node that can fail, and NULLIF around divisors (a float divided by zero is NULL in Eddyline, infinite in DuckDB).
This module works only on the tree of the text and uses none of our binder, functions and types, so that it can disagree
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from sqlglot import exp

from eddyline.bound.types import logical

CAN_FAIL = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe, exp.Bracket, exp.Func)
NEVER_FAILS = (exp.Case, exp.If, exp.And, exp.Or, exp.TryCast, exp.Predicate)
DIVIDES = ("mod", "fmod", "divide")
SORTED = ("list", "array_agg", "string_agg")
EXACT = ("count", "min", "max", "quantile_cont", "quantile_disc", "median", "approx_count_distinct", *SORTED)
AGGREGATES = (*EXACT, "sum", "avg", "stddev_samp", "stddev", "var_samp", "variance")
Replace = Callable[[exp.Expr], exp.Expr | None]


def attempt(node: exp.Expr, replace: Replace) -> exp.Expr:
    """The expression with every node replaced for which `replace` returns another, parents first, and the other nodes
    guarded. It modifies the given tree."""
    done = replace(node)
    if done is not None:
        return done
    if isinstance(node, exp.Interval | exp.DataType | exp.Literal | exp.Identifier | exp.Var):
        return node
    copy = type(node)()
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            copy.set(key, attempt(value, replace))
        elif isinstance(value, list):
            copy.set(key, [attempt(v, replace) if isinstance(v, exp.Expr) else v for v in value])
        else:
            copy.set(key, value)
    return _guard(copy)


def _guard(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return node
    if isinstance(node, exp.Bracket):
        node.set("offset", 1)  # places are written as DuckDB counts them
    if type(node) is exp.Cast:
        return exp.TryCast(**node.args, safe=True)
    divisor = node.expression if isinstance(node, exp.Div | exp.IntDiv | exp.Mod) else None
    if is_call(node, *DIVIDES) and len(node.expressions) == 2:
        divisor = node.expressions[1]
    if divisor is not None:
        number = divisor.this if isinstance(divisor, exp.Neg) else divisor
        if not isinstance(number, exp.Literal):
            divisor.replace(exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0)))
        elif not number.is_string and float(number.this) == 0:  # NULL of the type that the division would have
            return exp.Case(ifs=[exp.If(this=exp.true(), true=exp.null())], default=exp.Try(this=node))
    if isinstance(node, CAN_FAIL) and not isinstance(node, NEVER_FAILS):
        return exp.Try(this=node)
    return node


def is_call(node: exp.Expr, *names: str) -> bool:
    """Whether a node is a call of one of these functions; the parser leaves all calls as name and arguments."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in names


def window_end(node: exp.Expr) -> str | None:
    """`window_end`, `window_start` or `window_time` if a node is that, as a call or as a name that no column has;
    Spark writes window.end and window.start."""
    name = node.name if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.Column) and node.table.lower() in ("", "window"):
        name = "_".join(part.name for part in node.parts)
    return name.lower() if name.lower() in ("window_end", "window_start", "window_time") else None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate."""
    return is_call(node, *AGGREGATES)


class Names:
    """The columns of FROM: by alias, and bare where only one alias has it; spelled as in the schemas."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self.schemas = schemas

    def find(self, column: exp.Column) -> tuple[str, str] | None:
        """Alias and column as declared; None if the name is not a column of FROM, or is a field of one."""
        found = self.path(column)
        return found[:2] if found is not None and not found[2] else None

    def path(self, column: exp.Column) -> tuple[str, str, list[str]] | None:
        """Alias, column, and the names of the fields that follow it; None if the name is not a column of FROM."""
        parts = [part.name for part in column.parts]
        for skip in (1, 0) if len(parts) > 1 else (0,):
            found = [
                (alias, name, parts[skip + 1 :])
                for alias, schema in self.schemas.items()
                if not skip or parts[0].lower() == alias.lower()
                for name in schema.names
                if name.lower() == parts[skip].lower()
            ]
            if len(found) == 1:
                return found[0]
        return None

    def qualify(self, node: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr:
        """The expression with every column written alias.column; other names are those of SELECT items."""

        def one(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            found = self.path(part)
            if found is None:
                return exp.paren(named[part.name.lower()].copy()) if part.name.lower() in named else part
            alias, name, fields = found
            value: exp.Expr = exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(alias, quoted=True))
            for field in fields:
                value = exp.Dot(this=exp.paren(value), expression=exp.to_identifier(field, quoted=True))
            return value

        return node.transform(one)

    def is_instant(self, node: exp.Expr) -> bool:
        """Whether an expression is a timestamp, as far as the text tells; two of them differ by a duration."""
        if isinstance(node, exp.Paren | exp.Try):
            return self.is_instant(node.this)
        if isinstance(node, exp.Column):
            found = self.find(node)
            return found is not None and pa.types.is_timestamp(self.schemas[found[0]].field(found[1]).type)
        if isinstance(node, exp.Add | exp.Sub):
            return self.is_instant(node.this) and isinstance(node.expression, exp.Interval)
        return isinstance(node, exp.Cast) and node.to.sql("duckdb").startswith("TIMESTAMP")

    def is_blob(self, node: exp.Expr) -> bool:
        """Whether an expression gives bytes, as far as the text tells."""
        found = self.find(node) if isinstance(node, exp.Column) else None
        if found is not None:
            return bool(logical(self.schemas[found[0]].field(found[1]).type) == pa.binary())
        return self.is_blob(node.this) if isinstance(node, exp.Paren) else is_call(node, "encode")

    def decoded(self, node: exp.Expr) -> exp.Expr | None:
        """CAST(blob AS VARCHAR) as decode(blob), because DuckDB's cast does not decode; None for any other node."""
        if isinstance(node, exp.Cast) and node.to.is_type("varchar", "text") and self.is_blob(node.this):
            return exp.Anonymous(this="decode", expressions=[node.this.copy()])
        return None

    def duration_abs(self, node: exp.Expr) -> exp.Expr | None:
        """ABS(t - u) of two timestamps as a CASE, because DuckDB has no such ABS; None for any other node."""
        inner = node.expressions[0].unnest() if is_call(node, "abs") and len(node.expressions) == 1 else None
        if not isinstance(inner, exp.Sub) or not (self.is_instant(inner.this) and self.is_instant(inner.expression)):
            return None
        swapped = exp.Sub(this=inner.expression.copy(), expression=inner.this.copy())
        return exp.Case(
            ifs=[exp.If(this=exp.LT(this=inner.this.copy(), expression=inner.expression.copy()), true=swapped)],
            default=inner.copy(),
        )
