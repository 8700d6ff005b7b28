"""Which columns of a table that is asked are bound, and by what (paper 001, section 2.2).

An index of a table can be asked for a key as soon as a value is known for each of its columns: a constant of WHERE, or
an expression over a source that the tuple has, which WHERE equates with it. The table's side of the equality is the
column itself, or a cast of it that keeps different values different: then at most one value of the column is equal to
the value that is known, so asking for that one value finds every row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eddyline.bound.expr import Call, Expr, SourceColumn, sources_of
from eddyline.bound.model import BoundQuery
from eddyline.bound.types import keeps_apart
from eddyline.plan.graph import JoinGraph


@dataclass(frozen=True)
class Binding:
    """A value for a column of a table: an expression over one other source, or one without columns (`source` is
    None)."""

    source: int | None
    expr: Expr


@dataclass(frozen=True)
class IndexBinding:
    """A way to ask an index of a table: one binding for each of its columns."""

    table: int
    """The source of the query that reads the table."""
    method: int
    """The first access method with these columns. Others with the same columns answer the same keys."""
    columns: tuple[SourceColumn, ...]
    bound_by: tuple[Binding, ...]
    keys: tuple[Expr, ...]
    """The table's side of each equality: the column, or a cast of it to the type in which it is compared."""

    @property
    def needs(self) -> int:
        """The sources that a tuple must have, as a bit mask."""
        return sum({1 << b.source for b in self.bound_by if b.source is not None})


def index_bindings(query: BoundQuery, graph: JoinGraph, table: int) -> tuple[IndexBinding, ...]:
    """All ways to ask the indexes of a table: one for each list of columns, whichever access methods serve it. Where
    several sources bind a column there is a way for each."""
    found: list[IndexBinding] = []
    stream = query.sources[table].stream
    for number, method in enumerate(stream.methods):
        if method.is_scan or method.columns in [other.columns for other in stream.methods[:number]]:
            continue
        columns = tuple(SourceColumn(table, name, stream.schema.field(name).type) for name in method.columns)
        ways: list[tuple[tuple[Binding, Expr], ...]] = [()]
        for column in columns:
            ways = [(*way, bound) for way in ways for bound in bindings_of(graph, column)]
        for way in ways:
            found.append(IndexBinding(table, number, columns, tuple(b for b, _ in way), tuple(key for _, key in way)))
    return tuple(found)


def bindings_of(graph: JoinGraph, column: SourceColumn) -> list[tuple[Binding, Expr]]:
    """Each binding of a column, with the table's side of its equality."""
    table = column.source
    found: dict[tuple[Binding, Expr], None] = {}
    for filter in graph.filters[table]:
        if isinstance(filter, Call) and filter.name == "=":
            for mine, value in (filter.args, filter.args[::-1]):
                if stands_for(mine, column) and not sources_of(value):
                    found[Binding(None, value), mine] = None
    for equality in graph.equalities:
        if table in (equality.left, equality.right):
            mine, other, theirs = equality.seen_from(table)
            if stands_for(mine, column):
                found[Binding(other, theirs), mine] = None
    return list(found)


def stands_for(expr: Expr, column: SourceColumn) -> bool:
    """Whether an expression is a column, or a cast of it that keeps different values different."""
    while isinstance(expr, Call) and expr.name == "cast" and keeps_apart(expr.args[0].type, expr.type):
        expr = expr.args[0]
    return expr == column


def all_bindings(query: BoundQuery, graph: JoinGraph) -> tuple[tuple[IndexBinding, ...], ...]:
    """For each source the ways to ask its table. There are none for a table whose indexes can be asked only with values
    that a scan must bring first; its own scan is enough."""
    ways = [index_bindings(query, graph, source) for source in range(len(query.sources))]
    scanned: set[int] = set()
    while True:
        lost = unreachable(query, ways, scanned)
        first = next((source for source in lost if _is_scanned(query, source)), None)
        if first is None:
            return tuple(ways)
        scanned.add(first)
        ways[first] = ()


def unreachable(
    query: BoundQuery, ways: Sequence[tuple[IndexBinding, ...]], scanned: Collection[int] | None = None
) -> list[int]:
    """The sources whose rows cannot be asked for, whatever the order. `ways` has those of each source; `scanned` are
    the sources whose scan is used, by default all that have one."""
    has = 0
    for number, source in enumerate(query.sources):
        is_used = _is_scanned(query, number) if scanned is None else number in scanned
        has |= (not source.stream.is_asked or is_used) << number
    while True:
        more = sum(1 << n for n, some in enumerate(ways) if not has >> n & 1 and any(not w.needs & ~has for w in some))
        if not more:
            return [number for number in range(len(query.sources)) if not has >> number & 1]
        has |= more


def _is_scanned(query: BoundQuery, source: int) -> bool:
    return any(method.is_scan for method in query.sources[source].stream.methods)
