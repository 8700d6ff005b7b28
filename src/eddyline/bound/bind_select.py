"""SELECT, GROUP BY and HAVING: the outputs of a query, and what it groups.

In an aggregate query an output may read only group keys, aggregates and window_end(). A group key occurs in an output
as an equal expression, so the evaluation of the output finds the key's value in its environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from eddyline.bound import functions
from eddyline.bound.bind_expr import Binder
from eddyline.bound.bind_hints import AGGREGATES, Clause
from eddyline.bound.bind_names import NameScope
from eddyline.bound.expr import WINDOW_END, Aggregate, Call, Expr, Literal, SourceColumn, sources_of, walk
from eddyline.bound.model import GroupBy, Output
from eddyline.bound.slide import Slide
from eddyline.cql.limits import COLUMNS
from eddyline.cql.places import Place, shown, wrong

_NO_SLIDE = "no window here has a SLIDE; write one, as in FROM s [RANGE 10 MINUTES SLIDE 1 MINUTE]"


@dataclass(frozen=True)
class Item:
    """One item of SELECT after `*` was expanded: a node to bind, or a column of a `*`."""

    name: str
    named: bool
    node: exp.Expr
    column: SourceColumn | None = None


def items_of(scope: NameScope, select: exp.Select, texts: Sequence[str]) -> list[Item]:
    """The items of SELECT; `texts` has the text of each."""
    items: list[Item] = []
    for node, text in zip(select.expressions, texts, strict=True):
        inner = node.this if isinstance(node, exp.Column) else node
        if isinstance(inner, exp.Star):
            items += _star(scope, node, inner)
        elif isinstance(node, exp.Alias):
            items.append(Item(node.alias, True, node.this))
        elif isinstance(node, exp.Aliases):
            raise scope.wrong(node, "an item of SELECT has one name; write x AS name")
        else:
            items.append(Item(_short(node) or text, False, node))
        if len(items) > COLUMNS.most:
            raise scope.wrong(node, COLUMNS.sentence)
    return items


def _short(node: exp.Expr) -> str:
    """The last name of a column or of a field; empty for anything else."""
    return node.expression.name if isinstance(node, exp.Dot) else node.name if isinstance(node, exp.Column) else ""


def _star(scope: NameScope, node: exp.Expr, star: exp.Star) -> Iterator[Item]:
    if any(star.args.values()):
        raise scope.wrong(node, "EXCLUDE, REPLACE and RENAME are not supported; name the columns that are wanted")
    qualifier = node.args.get("table") if isinstance(node, exp.Column) else None
    sources = range(len(scope.sources)) if qualifier is None else [scope.source(qualifier)]
    for number in sources:
        for column in scope.columns_of(number):
            yield Item(column.name, False, node, column)


def aliases_of(items: Sequence[Item]) -> dict[str, exp.Expr]:
    """The names that items of SELECT were given with AS."""
    return {item.name.lower(): item.node for item in reversed(items) if item.named}


def bind_items(binder: Binder, items: Sequence[Item], slide: Slide | None) -> list[Expr]:
    """The expressions of the items."""
    clause = _clause("SELECT", True, slide)
    return [item.column or binder.bind(item.node, clause) for item in items]


def _clause(name: str, aggregates: bool, slide: Slide | None) -> Clause:
    return Clause(name, aggregates, _NO_SLIDE if slide is None else "", slide is not None and slide.gap > 0)


def bind_outputs(
    binder: Binder, select: exp.Select, items: Sequence[Item], exprs: Sequence[Expr], slide: Slide | None
) -> tuple[tuple[Output, ...], GroupBy | None]:
    """The outputs, and the grouping of an aggregate query; `exprs` are the expressions of the items."""
    scope = binder.scope
    keys = _keys(binder, select, items, slide)
    having = select.args.get("having")
    condition = binder.condition(having.this, _clause("HAVING", True, slide)) if having is not None else None
    read = [*exprs, *([condition] if condition is not None else [])]
    aggregates = tuple(dict.fromkeys(e for expr in read for e in walk(expr) if isinstance(e, Aggregate)))
    outputs = tuple(map(Output, _names(scope, items), map(_with_type, exprs)))
    if keys is None and having is None and not aggregates:
        _check_no_window_end(scope, items, exprs)
        return outputs, None
    for item, expr in zip(items, exprs, strict=True):
        _check_grouped(scope, item.node, expr, keys or ())
    if condition is not None:
        _check_grouped(scope, select.args["having"].this, condition, keys or ())
    return outputs, GroupBy(keys or (), aggregates, condition, slide)


def _keys(binder: Binder, select: exp.Select, items: Sequence[Item], slide: Slide | None) -> tuple[Expr, ...] | None:
    """The keys of GROUP BY, without keys that are equal for all rows of a window; None if there is no GROUP BY."""
    group = select.args.get("group")
    if group is None:
        return None
    clause = _clause("GROUP BY", False, slide)
    keys: list[Expr] = []
    for node in group.expressions:
        item = _position(binder.scope, node, items)
        keys.append(binder.bind(node, clause) if item is None else item.column or binder.bind(item.node, clause))
        if WINDOW_END in walk(keys[-1]):
            if sources_of(keys[-1]):
                raise binder.scope.wrong(node, "a key with window_end() reads no columns; write two keys")
            keys.pop()
    return tuple(dict.fromkeys(keys))


def _position(scope: NameScope, node: exp.Expr, items: Sequence[Item]) -> Item | None:
    """The item that a number in GROUP BY stands for."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    if not node.name.isdecimal() or len(node.name) > 9 or not 1 <= int(node.name) <= len(items):
        raise scope.wrong(
            node,
            f"GROUP BY {shown(node.name)[1:-1]} is no item of SELECT; number "
            f"them from 1 to {len(items)}, or name the key",
        )
    return items[int(node.name) - 1]


def _with_type(expr: Expr) -> Expr:
    """An output; a bare NULL is an INTEGER, as in DuckDB."""
    return functions.cast(expr, pa.int32()) if isinstance(expr, Literal) and pa.types.is_null(expr.type) else expr


def _check_no_window_end(scope: NameScope, items: Sequence[Item], exprs: Sequence[Expr]) -> None:
    for item, expr in zip(items, exprs, strict=True):
        if WINDOW_END in walk(expr):
            raise scope.wrong(
                item.node,
                "window_end() is the time of an aggregate's row; write GROUP "
                "BY or an aggregate, or use the time column",
            )


def _check_grouped(scope: NameScope, node: exp.Expr, expr: Expr, keys: Sequence[Expr]) -> None:
    column = _ungrouped(expr, keys)
    if column is None:
        return
    name = shown(column.name)[1:-1]
    place = _place_of_column(scope, node, column)
    message = (
        f"{shown(column.name)} is neither in GROUP BY nor in an aggregate; add it "
        f"to GROUP BY, or write MIN({name}) or MAX({name})"
    )
    raise wrong(scope.text, place, message)


def _ungrouped(expr: Expr, keys: Sequence[Expr]) -> SourceColumn | None:
    """A column that an output reads although it has no single value per group; None if there is none."""
    if expr in keys or isinstance(expr, Aggregate | Literal) or expr == WINDOW_END:
        return None
    if isinstance(expr, Call):
        return next((found for arg in expr.args if (found := _ungrouped(arg, keys)) is not None), None)
    return expr


def _place_of_column(scope: NameScope, node: exp.Expr, column: SourceColumn) -> Place:
    """The place where a node first mentions a column, outside aggregates if possible; the place of the node if it does
    not."""
    named = [n for n in node.find_all(exp.Column) if scope.column(n)[0] == column]
    calls = [n.find_ancestor(exp.Anonymous) for n in named]
    outside = [n for n, call in zip(named, calls, strict=True) if call is None or call.name.lower() not in AGGREGATES]
    return min((scope.place(n) for n in outside or named), default=scope.place(node))


def _names(scope: NameScope, items: Sequence[Item]) -> list[str]:
    """The names of the outputs. Two names given with AS must differ; other names that clash get a number."""
    given: set[str] = set()
    for item in items:
        if item.named and item.name.lower() in given:
            raise scope.wrong(
                item.node, f"two items of SELECT are called {shown(item.name)}; give one another name with AS"
            )
        if item.named:
            given.add(item.name.lower())
    names: list[str] = []
    taken = set(given)
    for item in items:
        name, count = item.name, 0
        while not item.named and name.lower() in taken:
            count += 1
            name = f"{item.name}_{count}"
        taken.add(name.lower())
        names.append(name)
    return names
