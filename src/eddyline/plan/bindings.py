"""Which columns of a table that is asked are bound, and by what (paper 001, section 2.2).

An index of a table can be asked for a key as soon as a value is known for each of its columns: a constant of WHERE, or
a column of a source that the tuple has, which WHERE equates with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eddyline.bound.expr import Call, Expr, Literal, SourceColumn
from eddyline.bound.model import BoundQuery
from eddyline.plan.graph import JoinGraph


@dataclass(frozen=True)
class Binding:
    """A value for a column of a table: an expression over one other source, or a constant (`source` is None)."""

    source: int | None
    expr: Expr


@dataclass(frozen=True)
class IndexBinding:
    """A way to ask an index of a table: one binding for each of its columns."""

    table: int
    """The source of the query that reads the table."""
    method: int
    columns: tuple[SourceColumn, ...]
    bound_by: tuple[Binding, ...]

    @property
    def needs(self) -> int:
        """The sources that a tuple must have, as a bit mask."""
        return sum({1 << b.source for b in self.bound_by if b.source is not None})


def index_bindings(query: BoundQuery, graph: JoinGraph, table: int) -> tuple[IndexBinding, ...]:
    """All ways to ask the indexes of a table. Where several sources bind a column there is a way for each."""
    found: list[IndexBinding] = []
    stream = query.sources[table].stream
    for number, method in enumerate(stream.methods):
        if method.is_scan:
            continue
        columns = tuple(SourceColumn(table, name, stream.schema.field(name).type) for name in method.columns)
        ways: list[tuple[Binding, ...]] = [()]
        for column in columns:
            ways = [(*way, binding) for way in ways for binding in _bindings(graph, column)]
        found += [IndexBinding(table, number, columns, way) for way in ways]
    return tuple(found)


def _bindings(graph: JoinGraph, column: SourceColumn) -> list[Binding]:
    table = column.source
    found = {Binding(None, value): None for f in graph.filters[table] if (value := _constant(f, column)) is not None}
    for equality in graph.equalities:
        if table in (equality.left, equality.right):
            mine, other, theirs = equality.seen_from(table)
            if mine == column:
                found[Binding(other, theirs)] = None
    return list(found)


def _constant(filter: Expr, column: SourceColumn) -> Expr | None:
    """The constant that a conjunct equates with a column."""
    if not isinstance(filter, Call) or filter.name != "=" or column not in filter.args:
        return None
    one, other = filter.args
    value = other if one == column else one
    return value if isinstance(value, Literal) else None


def unreachable(query: BoundQuery, ways: Sequence[tuple[IndexBinding, ...]]) -> list[int]:
    """The sources whose rows cannot be asked for, whatever the order. `ways` has those of each source."""
    has = sum(
        1 << number
        for number, source in enumerate(query.sources)
        if not source.stream.is_asked or any(method.is_scan for method in source.stream.methods)
    )
    while True:
        more = sum(1 << n for n, some in enumerate(ways) if not has >> n & 1 and any(not w.needs & ~has for w in some))
        if not more:
            return [number for number in range(len(query.sources)) if not has >> number & 1]
        has |= more
