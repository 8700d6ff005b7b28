"""Calls: functions of the table and of the user, aggregates, window_end(), window_start() and window_time()."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from eddyline.bound import functions
from eddyline.bound.bind_hints import (
    AGGREGATES,
    FORMS,
    OTHER_AGGREGATES,
    UNSTEADY,
    WINDOW_CALLS,
    WINDOW_ENDS,
    Clause,
    no_aggregate,
)
from eddyline.bound.bind_names import NameScope
from eddyline.bound.expr import WINDOW_END, Aggregate, Expr, Literal
from eddyline.bound.functions.table import USER
from eddyline.bound.model import WindowKind
from eddyline.cql.names import did_you_mean
from eddyline.cql.places import shown

_IGNORED = ("safe", "typed", "coalesce")
"""Flags that sqlglot sets for its own translations; they change nothing in DuckDB's dialect."""
_BUCKETS = 946_857_600_000_000
"""An instant at which buckets of time_bucket begin, 2000-01-03."""


class Binds(Protocol):
    """The part of the binder that calls need: it binds their arguments."""

    scope: NameScope

    def bind(self, node: exp.Expr, clause: Clause) -> Expr:
        """The typed expression of a node."""


def bind_function(binder: Binds, node: exp.Expr, clause: Clause) -> Expr:
    """A call: an aggregate, window_end(), or a function of the table or of the user."""
    only(binder.scope, node, "this", "expressions")
    name = node.name.lower()
    if name in WINDOW_ENDS:
        if node.expressions and not (name == "window_time" and _is_window(node.expressions)):  # Spark's
            raise binder.scope.wrong(node, f"{name} takes no argument; write {name}()")
        return window_end(binder.scope, node, name, clause)
    if name in AGGREGATES and name not in USER:
        return _aggregate(binder, node, name, clause)
    if name not in USER and name not in _names():
        if name in UNSTEADY:
            raise binder.scope.wrong(node, UNSTEADY[name])
        if name in WINDOW_CALLS:
            raise binder.scope.wrong(node, f"{name} is no function here; {WINDOW_CALLS[name]}")
        if name in OTHER_AGGREGATES:
            raise binder.scope.wrong(node, f"there is no aggregate {shown(name)}; {OTHER_AGGREGATES[name]}")
        hint = did_you_mean(name, [*_names(), *USER, *AGGREGATES, *WINDOW_ENDS])
        hint = hint if "did you mean" in hint else "; see docs/functions.md, or register one with el.udf"
        raise binder.scope.wrong(node, f"there is no function {shown(name)}{hint}")
    return functions.call(name, [binder.bind(arg, clause) for arg in node.expressions])


def window_end(scope: NameScope, node: exp.Expr, name: str, clause: Clause) -> Expr:
    """window_end(), window_start() or window_time(), or a name that means it."""
    if clause.window_end:
        raise scope.wrong(node, f"{name}() cannot be used here, {clause.window_end}")
    if name == "window_end":
        return WINDOW_END
    if name == "window_time":
        if not clause.window_time:
            message = (
                "window_time() is the last moment of a TUMBLE, HOP or CUMULATE; with SLIDE the time of a row is "
                "window_end()"
            )
            raise scope.wrong(node, message)
        return _minus(WINDOW_END, 1)
    windows = {source.window for source in scope.sources if not source.stream.is_table}
    window = windows.pop()
    if windows or window.kind is not WindowKind.RANGE:
        message = (
            "window_start() needs windows of one length, a RANGE behind every stream; write window_end(), "
            "and what is to be taken off, as in window_end() - INTERVAL '1' MINUTE"
        )
        raise scope.wrong(node, message)
    if window.pieces is None:
        return _minus(WINDOW_END, window.size)
    since = (window.pieces.end_of(window.pieces.origin) - _BUCKETS) % window.size
    length = Literal(window.size, pa.duration("us"))
    return _minus(functions.call("time_bucket", [length, _minus(WINDOW_END, 1 + since)]), -since)


def window_name(node: exp.Column) -> str | None:
    """`window_end`, `window_start` or `window_time` if a name means it: Spark's window.end and window.start do."""
    names = [part.name.lower() for part in node.parts]
    name = "_".join(names) if names in (["window", "start"], ["window", "end"]) else names[0]
    return name if name in WINDOW_ENDS and len(names) == 1 + (names[0] == "window") else None


def _is_window(nodes: list[exp.Expr]) -> bool:
    return len(nodes) == 1 and isinstance(nodes[0], exp.Column) and nodes[0].sql().lower() == "window"


def _minus(moment: Expr, micros: int) -> Expr:
    return functions.call("-", [moment, Literal(micros, pa.duration("us"))])


def _aggregate(binder: Binds, node: exp.Expr, name: str, clause: Clause) -> Aggregate:
    written = node.name.upper()
    if not clause.aggregates:
        raise binder.scope.wrong(node, no_aggregate(written, clause.name))
    args = node.expressions
    if name == "count" and (not args or (len(args) == 1 and type(args[0]) is exp.Star and not _filled(args[0]))):
        return functions.aggregate(name, None, False)
    distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
    if distinct:
        args = args[0].expressions
    form = FORMS.get(AGGREGATES[name], "{}(x)").format(written)
    if not 1 <= len(args) <= (2 if AGGREGATES[name] in FORMS and name != "median" else 1):
        raise binder.scope.wrong(node, f"{written} takes {'one argument' if ', ' not in form else 'two'}; write {form}")
    if distinct and name not in ("count", "min", "max"):
        raise binder.scope.wrong(
            node,
            f"{written}(DISTINCT x) is not supported yet, only COUNT(DISTINCT x); no other query gives the same values",
        )
    inside = Clause(written, False, "it is the same for the whole group; write it outside the aggregate")
    rest = [binder.bind(arg, inside) for arg in args]
    return functions.aggregate(name, rest[0], distinct and name == "count", rest[1] if len(rest) > 1 else None)


def within_group(binder: Binds, node: exp.Expr, clause: Clause) -> Expr:
    """percentile_cont(p) WITHIN GROUP (ORDER BY x)."""
    call, order = node.this, node.expression
    keys = order.expressions if isinstance(order, exp.Order) else []
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    if name not in ("percentile_cont", "percentile_disc") or len(call.expressions) != 1 or len(keys) != 1:
        message = "WITHIN GROUP belongs to a percentile; write percentile_cont(0.95) WITHIN GROUP (ORDER BY x)"
        raise binder.scope.wrong(node, message)
    if keys[0].args.get("desc"):
        other = "; write the share from the other end, as in 0.05"
        if name == "percentile_disc":  # which rounds towards the first value
            other = " yet, and no other query gives the same values"
        raise binder.scope.wrong(node, f"DESC is not supported here{other}")
    turned = exp.Anonymous(this=call.name, expressions=[keys[0].this, call.expressions[0]])
    turned.parent = node.parent
    return bind_function(binder, turned, clause)


def _names() -> list[str]:
    return [name for name in functions.names() if name.isidentifier()]


def _filled(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def only(scope: NameScope, node: exp.Expr, *known: str) -> None:
    """Refuse a node with an argument that is not one of the allowed ones."""
    for key in _filled(node):
        if key not in known and key not in _IGNORED:
            raise scope.wrong(
                node, f"{shown(node.key.upper())} with {shown(key)} is not supported; see docs/language.md"
            )
