"""Expressions of the query as typed expressions.

Every supported kind of node has an entry here; other nodes are refused, and so is an argument of a node that its entry
does not name. The function table checks types; its TypeMismatch gets the place of the node here. A chain of ANDs or ORs
is one call, and expressions have at most DEPTH levels (cql/limits.py), so later stages may recurse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from eddyline.bound import bind_literals, functions
from eddyline.bound.bind_calls import bind_function, only, window_end, window_name, within_group
from eddyline.bound.bind_hints import HINTS, Clause
from eddyline.bound.bind_mismatch import mismatch
from eddyline.bound.bind_names import NameScope
from eddyline.bound.expr import Call, Expr, Literal
from eddyline.bound.functions.casts import literal as cast_literal
from eddyline.bound.types import TypeMismatch, example, sql_type
from eddyline.cql.limits import DEPTH, PARTS, deep_enough
from eddyline.cql.places import shown
from eddyline.cql.types import arrow_type

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


@dataclass
class Binder:
    """Binds the expressions of one query; `aliases` are the named items of SELECT."""

    scope: NameScope
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _depth: int = 0
    _parts: int = 0
    _items: dict[tuple[str, Clause], tuple[Expr, int]] = field(default_factory=dict)
    """The items of SELECT that were named so far, and their parts."""

    def bind(self, node: exp.Expr, clause: Clause) -> Expr:
        """The typed expression of a node; ScriptError if it has none."""
        if self._depth:
            return self._bind(node, clause)
        with deep_enough():
            return self._bind(node, clause)

    def _bind(self, node: exp.Expr, clause: Clause) -> Expr:
        self._depth += 1
        self._parts += 1
        try:
            if self._depth > DEPTH.most:
                raise self.scope.wrong(node, DEPTH.sentence)
            if self._parts > PARTS.most:
                raise self.scope.wrong(node, PARTS.sentence)
            bound = self._typed(node, clause)
            if isinstance(bound, Call) and bound.depth > DEPTH.most:  # one function may become several calls
                raise self.scope.wrong(node, DEPTH.sentence)
            return self.scope.times.get(bound, bound)
        except TypeMismatch as error:
            raise self.scope.wrong(_culprit(node, error), mismatch(self.scope, node, error)) from error
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

    def _typed(self, node: exp.Expr, clause: Clause) -> Expr:
        kind = type(node)
        if kind in _BINARY:
            only(self.scope, node, "this", "expression")
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
        found, fields = self.scope.column(node)
        if found is None and node.parts[0].name.lower() not in self.aliases and (end := window_name(node)):
            return window_end(self.scope, node, end, clause)
        if found is None:
            return self._fields(self._item(node, clause), fields)
        return self._fields(found, fields)

    def _fields(self, struct: Expr, fields: Sequence[str]) -> Expr:
        for name in fields:
            struct = functions.call("struct_extract", [struct], name)
        return struct

    def field(self, node: exp.Expr, clause: Clause) -> Expr:
        """A field of a struct in parentheses, or a field nested very deep in a struct."""
        if not isinstance(node.expression, exp.Identifier):
            raise self.scope.wrong(node, HINTS[exp.Dot])
        return self._fields(self.bind(node.this, clause), [node.expression.name])

    def element(self, node: exp.Expr, clause: Clause) -> Expr:
        """An element of a list by its place, or a field of a struct by its name."""
        only(self.scope, node, "this", "expressions")
        whole = self.bind(node.this, clause)
        if len(node.expressions) != 1:
            raise self.scope.wrong(node, "one place in a list is named, as in x[1]; in a list of lists x[1][2]")
        place = self.bind(node.expressions[0], clause)
        if isinstance(place, Literal) and isinstance(place.value, str) and pa.types.is_struct(whole.type):
            return self._fields(whole, [place.value])
        return functions.call("list_extract", [whole, place])

    def _item(self, node: exp.Column, clause: Clause) -> Expr:
        """The expression of the item of SELECT to which AS gave this name."""
        name = node.parts[0].name.lower()
        if name not in self.aliases or name in self._open:
            raise self.scope.unknown(node)
        if (name, clause) in self._items:
            bound, parts = self._items[name, clause]
            self._parts += parts
            return bound
        before = self._parts
        self._open.append(name)
        try:
            bound = self.bind(self.aliases[name], clause)
        finally:
            self._open.pop()
        self._items[name, clause] = bound, self._parts - before
        return bound

    def literal(self, node: exp.Expr, clause: Clause) -> Expr:
        """A number or a string."""
        return Literal(node.name, pa.string()) if node.is_string else bind_literals.number(self.scope, node)

    def negation(self, node: exp.Expr, clause: Clause) -> Expr:
        """Unary minus; the minus of a constant becomes part of the constant."""
        bound = self.bind(node.this, clause)
        folded = bind_literals.negated(bound) if isinstance(bound, Literal) else None
        return folded or functions.call("-", [bound])

    def inversion(self, node: exp.Expr, clause: Clause) -> Expr:
        """NOT; IS NOT NULL is a function of its own."""
        inner = node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return functions.call("is not null", [self.bind(inner.this, clause)])
        return functions.call("not", [self.bind(inner, clause)])

    def connector(self, node: exp.Expr, clause: Clause) -> Expr:
        """AND and OR: a chain is one call."""
        parts = [self.bind(part, clause) for part in chain(node, type(node))]
        return functions.call("and", parts) if isinstance(node, exp.And) else _any_of(parts)

    def is_(self, node: exp.Expr, clause: Clause) -> Expr:
        """IS NULL, IS TRUE, IS FALSE."""
        only(self.scope, node, "this", "expression")
        this, other = self.bind(node.this, clause), node.expression
        if isinstance(other, exp.Null):
            return functions.call("is null", [this])
        if isinstance(other, exp.Boolean):
            return functions.call("is not distinct from", [this, self.bind(other, clause)])
        raise self.scope.wrong(node, "IS takes NULL, TRUE, FALSE or DISTINCT FROM; for a value write =")

    def like(self, node: exp.Expr, clause: Clause) -> Expr:
        """LIKE and ILIKE."""
        only(self.scope, node, "this", "expression", "negate")
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
        only(self.scope, node, "this", "low", "high")
        return functions.call("between", [self.bind(node.args[part], clause) for part in ("this", "low", "high")])

    def in_(self, node: exp.Expr, clause: Clause) -> Expr:
        """IN a list of values."""
        if any(value for key, value in node.args.items() if key not in ("this", "expressions")) or not node.expressions:
            raise self.scope.wrong(node, "IN takes a list of values in brackets, as in x IN (1, 2, 3)")
        return functions.call("in", [self.bind(part, clause) for part in (node.this, *node.expressions)])

    def case(self, node: exp.Expr, clause: Clause) -> Expr:
        """CASE; with a value after CASE, each WHEN is compared with it."""
        only(self.scope, node, "this", "ifs", "default")
        args: list[Expr] = []
        for branch in node.args["ifs"]:
            if node.this is None:
                args.append(self.condition(branch.this, replace(clause, name="WHEN")))
            else:
                args.append(functions.call("=", [self.bind(node.this, clause), self.bind(branch.this, clause)]))
            args.append(self.bind(branch.args["true"], clause))
        default = node.args.get("default")
        return functions.call("case", [*args, self.bind(default, clause)] if default is not None else args)

    def cast(self, node: exp.Expr, clause: Clause) -> Expr:
        """CAST, TRY_CAST, `::`, and constants such as DATE '2024-02-29', which must be right."""
        only(self.scope, node, "this", "to")
        this = self.bind(node.this, clause)
        target = arrow_type(self.scope.text, node.args["to"], self.scope.offset(node))
        if isinstance(this, Literal) and isinstance(this.value, str) and _is_moment(target) and type(node) is exp.Cast:
            return self._moment(node, this, target)
        return functions.cast(this, target, isinstance(node, exp.TryCast))

    def _moment(self, node: exp.Expr, literal: Literal, target: pa.DataType) -> Expr:
        """A constant date or time; ScriptError if its text is not one."""
        try:
            return cast_literal(literal, target)
        except TypeMismatch as error:
            form = f"write one that exists, as in {example(target)}"
            message = f"{shown(str(literal.value))} is no {sql_type(target)}; {form}"
            raise self.scope.wrong(node, message) from error

    def at_zone(self, node: exp.Expr, clause: Clause) -> Expr:
        """x AT TIME ZONE 'zone'."""
        only(self.scope, node, "this", "zone")
        return functions.call("timezone", [self.bind(node.args["zone"], clause), self.bind(node.this, clause)])

    def extract(self, node: exp.Expr, clause: Clause) -> Expr:
        """EXTRACT(unit FROM x)."""
        only(self.scope, node, "this", "expression")
        return functions.call("extract", [self.bind(node.expression, clause)], node.this.name.lower())


def _json(binder: Binder, node: exp.Expr, clause: Clause) -> Expr:
    """a -> 'path' and a ->> 'path'."""
    only(binder.scope, node, "this", "expression", "only_json_types", "scalar_only")
    name = "json_extract" if isinstance(node, exp.JSONExtract) else "json_extract_string"
    return functions.call(name, [binder.bind(node.this, clause), binder.bind(node.expression, clause)])


def _any_of(parts: Sequence[Expr]) -> Expr:
    """Conditions with OR between them; x = 1 OR x = 2 is x IN (1, 2)."""
    constants: dict[tuple[Expr, bool], list[Expr]] = {}
    for part in parts:
        sides = part.args if isinstance(part, Call) and part.name == "=" else ()
        others = [side for side in sides if not isinstance(side, Literal)]
        if len(others) == 1:
            constants.setdefault((others[0], True), []).extend(side for side in sides if isinstance(side, Literal))
        else:
            constants[part, False] = []
    found = [functions.call("in", [x, *values]) if compared else x for (x, compared), values in constants.items()]
    return functions.call("or", found) if len(found) > 1 else found[0]


def chain(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The parts of a chain of ANDs, or of ORs; only the node itself if it is not a chain."""
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


def _culprit(node: exp.Expr, error: TypeMismatch) -> exp.Expr:
    """The node at fault: the constant that the error names, or the whole call."""
    return next((n for n in node.find_all(exp.Literal) if n.is_string and n.name == error.culprit), node)


def _is_moment(type: pa.DataType) -> bool:
    return bool(pa.types.is_date(type) or pa.types.is_time(type) or pa.types.is_timestamp(type))


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
    exp.AtTimeZone: Binder.at_zone,
    exp.Dot: Binder.field,
    exp.Bracket: Binder.element,
    exp.JSONExtract: _json,
    exp.WithinGroup: within_group,
    exp.JSONExtractScalar: _json,
    exp.Anonymous: bind_function,
}
