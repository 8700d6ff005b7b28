"""Expressions of the query as typed expressions.

Every kind of node has an entry here; a node without one is refused, and so is an argument of a node that its entry does
not name. Types are the function table's business: a TypeMismatch is given the place of its node. Long AND and OR chains
become balanced trees, and other expressions may be nested `DEEPEST` levels: nothing below need fear deep recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from eddyline.cql.names import did_you_mean
from eddyline.cql.places import shown
from eddyline.cql.types import arrow_type
from eddyline.query import bind_literals, functions
from eddyline.query.bind_hints import AGGREGATES, HINTS, OTHER_AGGREGATES, no_aggregate
from eddyline.query.bind_names import Scope
from eddyline.query.expr import WINDOW_END, Aggregate, Expr, Literal
from eddyline.query.functions.casts import literal as cast_literal
from eddyline.query.functions.table import USER
from eddyline.query.types import TypeMismatch, sql_type

DEEPEST = 100
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.Pow: "pow",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is not distinct from",
    exp.NullSafeNEQ: "is distinct from",
}
_MOMENTS = {"DATE": "'2024-02-29'", "TIMESTAMP": "'2024-02-29 23:59:59'", "TIME": "'23:59:59'"}
_IGNORED = ("safe", "typed", "coalesce")
"""Flags that sqlglot sets for its own translations; they change nothing in DuckDB's dialect."""


@dataclass(frozen=True)
class Clause:
    """Where an expression stands, and what is allowed there."""

    name: str
    aggregates: bool = False
    window_end: str = "it is known only for the rows of an aggregate with SLIDE; write the condition in HAVING"
    """Why window_end() is refused there; empty where it is allowed."""


@dataclass
class Binder:
    """Binds the expressions of one query; `aliases` are the named items of SELECT."""

    scope: Scope
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _depth: int = 0

    def bind(self, node: exp.Expr, clause: Clause) -> Expr:
        """The typed expression of a node; ScriptError if it has none."""
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise self.scope.wrong(
                    node, f"this is nested more than {DEEPEST} levels deep; break it into smaller expressions"
                )
            return self._bind(node, clause)
        except TypeMismatch as error:
            raise self.scope.wrong(node, str(error)) from error
        finally:
            self._depth -= 1

    def condition(self, node: exp.Expr, clause: Clause) -> Expr:
        """An expression that is true or false."""
        bound = self.bind(node, clause)
        if pa.types.is_null(bound.type):
            return functions.cast(bound, pa.bool_())
        if not pa.types.is_boolean(bound.type):
            message = (
                f"{clause.name} needs a condition, but this is "
                f"{sql_type(bound.type)}; compare it with something, as in x > 0"
            )
            raise self.scope.wrong(node, message)
        return bound

    def _bind(self, node: exp.Expr, clause: Clause) -> Expr:
        kind = type(node)
        if kind in _BINARY:
            _only(self.scope, node, "this", "expression")
            return functions.call(_BINARY[kind], [self.bind(node.this, clause), self.bind(node.expression, clause)])
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise self.scope.wrong(
                node,
                HINTS.get(kind, f"{shown(kind.key.upper())} is not supported in expressions; see docs/language.md"),
            )
        return handler(self, node, clause)

    def column(self, node: exp.Expr, clause: Clause) -> Expr:
        """A column, or an item of SELECT by its name."""
        assert isinstance(node, exp.Column)
        if isinstance(node.this, exp.Star):
            raise self.scope.wrong(node, HINTS[exp.Star])
        found = self.scope.column(node)
        if found is not None:
            return found
        name = node.name.lower()
        if name not in self.aliases or name in self._open:
            raise self.scope.unknown(node)
        self._open.append(name)
        try:
            return self.bind(self.aliases[name], clause)
        finally:
            self._open.pop()

    def literal(self, node: exp.Expr, clause: Clause) -> Expr:
        """A number or a string."""
        return Literal(node.name, pa.string()) if node.is_string else bind_literals.number(self.scope, node)

    def negation(self, node: exp.Expr, clause: Clause) -> Expr:
        """A minus; that of a constant is part of it."""
        bound = self.bind(node.this, clause)
        folded = bind_literals.negated(bound) if isinstance(bound, Literal) else None
        return folded or functions.call("-", [bound])

    def inversion(self, node: exp.Expr, clause: Clause) -> Expr:
        """NOT, with the forms that have a name of their own."""
        inner = node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return functions.call("is not null", [self.bind(inner.this, clause)])
        return functions.call("not", [self.bind(inner, clause)])

    def connector(self, node: exp.Expr, clause: Clause) -> Expr:
        """AND and OR: a chain becomes a balanced tree."""
        name = "and" if isinstance(node, exp.And) else "or"
        return self._balanced(name, [self.bind(part, clause) for part in chain(node, type(node))])

    def _balanced(self, name: str, parts: Sequence[Expr]) -> Expr:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return functions.call(name, [self._balanced(name, parts[:half]), self._balanced(name, parts[half:])])

    def is_(self, node: exp.Expr, clause: Clause) -> Expr:
        """IS NULL, IS TRUE, IS FALSE."""
        _only(self.scope, node, "this", "expression")
        this, other = self.bind(node.this, clause), node.expression
        if isinstance(other, exp.Null):
            return functions.call("is null", [this])
        if isinstance(other, exp.Boolean):
            return functions.call("is not distinct from", [this, self.bind(other, clause)])
        raise self.scope.wrong(node, "IS takes NULL, TRUE, FALSE or DISTINCT FROM; for a value write =")

    def like(self, node: exp.Expr, clause: Clause) -> Expr:
        """LIKE and ILIKE."""
        _only(self.scope, node, "this", "expression", "negate")
        return self._like(node, [], clause)

    def escape(self, node: exp.Expr, clause: Clause) -> Expr:
        """LIKE and ILIKE with ESCAPE."""
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise self.scope.wrong(node, "ESCAPE belongs to LIKE, as in a LIKE '10!%' ESCAPE '!'")
        return self._like(node.this, [self.bind(node.expression, clause)], clause)

    def _like(self, node: exp.Expr, escape: list[Expr], clause: Clause) -> Expr:
        name = "like" if isinstance(node, exp.Like) else "ilike"
        found = functions.call(name, [self.bind(node.this, clause), self.bind(node.expression, clause), *escape])
        return functions.call("not", [found]) if node.args.get("negate") else found

    def between(self, node: exp.Expr, clause: Clause) -> Expr:
        """BETWEEN, both ends included."""
        _only(self.scope, node, "this", "low", "high")
        return functions.call("between", [self.bind(node.args[part], clause) for part in ("this", "low", "high")])

    def in_(self, node: exp.Expr, clause: Clause) -> Expr:
        """IN a list of values."""
        if any(value for key, value in node.args.items() if key not in ("this", "expressions")) or not node.expressions:
            raise self.scope.wrong(node, "IN takes a list of values in brackets, as in x IN (1, 2, 3)")
        return functions.call("in", [self.bind(part, clause) for part in (node.this, *node.expressions)])

    def case(self, node: exp.Expr, clause: Clause) -> Expr:
        """CASE; with a value after CASE, each WHEN is compared with it."""
        _only(self.scope, node, "this", "ifs", "default")
        args: list[Expr] = []
        for branch in node.args["ifs"]:
            if node.this is None:
                args.append(self.condition(branch.this, Clause("WHEN", clause.aggregates, clause.window_end)))
            else:
                args.append(functions.call("=", [self.bind(node.this, clause), self.bind(branch.this, clause)]))
            args.append(self.bind(branch.args["true"], clause))
        default = node.args.get("default")
        return functions.call("case", [*args, self.bind(default, clause)] if default is not None else args)

    def cast(self, node: exp.Expr, clause: Clause) -> Expr:
        """CAST, TRY_CAST, `::`, and constants such as DATE '2024-02-29', which must be right."""
        _only(self.scope, node, "this", "to")
        this = self.bind(node.this, clause)
        target = arrow_type(self.scope.text, node.args["to"], self.scope.offset(node))
        if isinstance(this, Literal) and isinstance(this.value, str) and _is_moment(target) and type(node) is exp.Cast:
            return self._moment(node, this, target)
        return functions.cast(this, target, isinstance(node, exp.TryCast))

    def _moment(self, node: exp.Expr, literal: Literal, target: pa.DataType) -> Expr:
        """A constant date or time, which has to be right."""
        try:
            return cast_literal(literal, target)
        except TypeMismatch as error:
            name = sql_type(target)
            example = next(e for kind, e in _MOMENTS.items() if name.startswith(kind))
            message = f"{shown(str(literal.value))} is no {name}; write one that exists, as in {example}"
            raise self.scope.wrong(node, message) from error

    def extract(self, node: exp.Expr, clause: Clause) -> Expr:
        """EXTRACT(unit FROM x)."""
        _only(self.scope, node, "this", "expression")
        return functions.call("extract", [self.bind(node.expression, clause)], node.this.name.lower())

    def function(self, node: exp.Expr, clause: Clause) -> Expr:
        """A call: an aggregate, window_end(), or a function of the table or of the user."""
        _only(self.scope, node, "this", "expressions")
        name = node.name.lower()
        if name == "window_end":
            if node.expressions:
                raise self.scope.wrong(node, "window_end takes no argument; write window_end()")
            if clause.window_end:
                raise self.scope.wrong(node, f"window_end() cannot be used here, {clause.window_end}")
            return WINDOW_END
        if name in AGGREGATES and name not in USER:
            return self._aggregate(node, AGGREGATES[name], clause)
        if name not in USER and name not in _names():
            if name in OTHER_AGGREGATES:
                raise self.scope.wrong(
                    node,
                    f"there is no aggregate {shown(name)}; there are COUNT, "
                    "SUM, MIN, MAX, AVG, STDDEV_SAMP and VAR_SAMP",
                )
            hint = did_you_mean(name, [*_names(), *USER, *AGGREGATES, "window_end"])
            hint = hint if "did you mean" in hint else "; see docs/functions.md, or register one with el.udf"
            raise self.scope.wrong(node, f"there is no function {shown(name)}{hint}")
        return functions.call(name, [self.bind(arg, clause) for arg in node.expressions])

    def _aggregate(self, node: exp.Expr, name: str, clause: Clause) -> Aggregate:
        written = node.name.upper()
        if not clause.aggregates:
            raise self.scope.wrong(node, no_aggregate(written, clause.name))
        args = node.expressions
        if name == "count" and (not args or (len(args) == 1 and type(args[0]) is exp.Star and not _filled(args[0]))):
            return functions.aggregate(name, None, False)
        distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
        if distinct:
            args = args[0].expressions
        if len(args) != 1:
            raise self.scope.wrong(node, f"{written} takes one argument; write {written}(x)")
        if distinct and name not in ("count", "min", "max"):
            raise self.scope.wrong(
                node, f"{written}(DISTINCT x) is not supported, only COUNT(DISTINCT x); leave DISTINCT out"
            )
        inside = Clause(written, False, "it is the same for the whole group; write it outside the aggregate")
        return functions.aggregate(name, self.bind(args[0], inside), distinct and name == "count")


def chain(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The parts of a chain of ANDs, or of ORs; the node itself if it is none."""
    parts: list[exp.Expr] = []
    stack = [node]
    while stack:
        part = stack.pop()
        inner = part.unnest()
        if type(inner) is kind:
            stack += [inner.expression, inner.this]
        else:
            parts.append(part)
    return parts


def _is_moment(type: pa.DataType) -> bool:
    return bool(pa.types.is_date(type) or pa.types.is_time(type) or pa.types.is_timestamp(type))


def _names() -> list[str]:
    return [name for name in functions.names() if name.isidentifier()]


def _filled(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def _only(scope: Scope, node: exp.Expr, *known: str) -> None:
    """Refuse a node that says more than its entry understands."""
    for key in _filled(node):
        if key not in known and key not in _IGNORED:
            raise scope.wrong(
                node, f"{shown(node.key.upper())} with {shown(key)} is not supported; see docs/language.md"
            )


Handler = Callable[[Binder, exp.Expr, Clause], Expr]
_HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Column: Binder.column,
    exp.Literal: Binder.literal,
    exp.RawString: lambda binder, node, clause: Literal(node.name, pa.string()),
    exp.Null: lambda binder, node, clause: Literal(None, pa.null()),
    exp.Boolean: lambda binder, node, clause: Literal(bool(node.this), pa.bool_()),
    exp.Interval: lambda binder, node, clause: bind_literals.interval(binder.scope, node),
    exp.Paren: lambda binder, node, clause: binder.bind(node.this, clause),
    exp.Neg: Binder.negation,
    exp.Not: Binder.inversion,
    exp.And: Binder.connector,
    exp.Or: Binder.connector,
    exp.Is: Binder.is_,
    exp.Like: Binder.like,
    exp.ILike: Binder.like,
    exp.Escape: Binder.escape,
    exp.Between: Binder.between,
    exp.In: Binder.in_,
    exp.Case: Binder.case,
    exp.Cast: Binder.cast,
    exp.TryCast: Binder.cast,
    exp.Extract: Binder.extract,
    exp.Anonymous: Binder.function,
}
