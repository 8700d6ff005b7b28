"""Whether the rows of every table that is asked can be reached, and if not, which binding is missing (paper 001,
section 2.2).

A table that only has indexes can be reached if all columns of one index are bound by constants, or by sources that can
themselves be reached. Otherwise no order of joins can answer the query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

from eddyline.bound.expr import SourceColumn, columns_of, sources_of
from eddyline.bound.model import BoundQuery
from eddyline.cql.places import shown
from eddyline.plan.bindings import IndexBinding, bindings_of, index_bindings, unreachable
from eddyline.plan.graph import JoinGraph, join_graph


def missing_binding(query: BoundQuery) -> tuple[int, str] | None:
    """A source that cannot be reached, and a sentence about the binding that it lacks; None if all can be reached."""
    if not query.asks:
        return None
    graph = join_graph(query)
    ways = [index_bindings(query, graph, source) for source in range(len(query.sources))]
    lost = unreachable(query, ways)
    if not lost:
        return None
    unbound = next((source for source in lost if not ways[source]), None)
    if unbound is not None:
        return unbound, _not_bound(query, graph, unbound)
    return lost[0], _only_each_other(query, ways, lost)


def missing_join(query: BoundQuery) -> tuple[int, str] | None:
    """For SELECT PARTIAL: a source that only tables that are asked join with the sources before it, and a sentence
    about it; None if there is none. Without these tables all its rows would be combined with all others."""
    if not query.partial:
        return None
    everywhere, here = (_parts(query, sources) for sources in (range(len(query.sources)), query.given))
    for first, source in combinations(query.given, 2):
        if here[source] != here[first] and everywhere[source] == everywhere[first]:
            one, other = (_plain(query.sources[number].alias) for number in (source, first))
            return source, (
                f"SELECT PARTIAL joins {one} with {other} before a table has answered, and only tables that are asked "
                f"join them in WHERE; add a condition over {one} and {other}, or leave PARTIAL out"
            )
    return None


def _parts(query: BoundQuery, sources: Collection[int]) -> list[int]:
    """A number for each source, the same for sources that predicates over these sources connect, also those that follow
    from other equalities."""
    part = list(range(len(query.sources)))
    equal = (frozenset((e.left, e.right)) for e in join_graph(query).equalities)
    for joined in (*equal, *map(sources_of, query.predicates)):
        if joined and joined <= set(sources):
            old = {part[source] for source in joined}
            part = [min(old) if p in old else p for p in part]
    return part


def _not_bound(query: BoundQuery, graph: JoinGraph, source: int) -> str:
    """The sentence for a table that has an unbound column in each of its indexes."""
    stream, alias = query.sources[source].stream, _plain(query.sources[source].alias)
    lacking = [
        [name for name in method.columns if not _is_bound(query, graph, source, name)] for method in stream.methods
    ]
    nearest = min(lacking, key=len)
    unbound = list(dict.fromkeys(name for names in lacking for name in names))
    indexes = list(dict.fromkeys(f"({', '.join(map(_plain, method.columns))})" for method in stream.methods))
    how = f"its index{'es' * (len(indexes) > 1)} on {' and '.join(indexes)}"
    names = " or ".join(map(_plain, unbound))
    write = " AND ".join(f"{alias}.{_plain(name)} = ..." for name in nearest)
    used = {c.name for predicate in query.predicates for c in columns_of(predicate) if c.source == source}
    finds, with_ = f"nothing in WHERE binds {names}", ""
    if used & set(unbound):
        finds = f"no equality in WHERE binds {names}"
        with_ = " with a constant or an expression over one other source, without user functions"
    return f"table {shown(stream.name)} is reached by {how}, and {finds}; write {write}{with_}, or declare SCAN"


def _is_bound(query: BoundQuery, graph: JoinGraph, source: int, name: str) -> bool:
    type = query.sources[source].stream.schema.field(name).type
    return bool(bindings_of(graph, SourceColumn(source, name, type)))


def _only_each_other(query: BoundQuery, ways: Sequence[Iterable[IndexBinding]], lost: Sequence[int]) -> str:
    """The sentence for tables that are bound, but only by tables that cannot be reached either."""
    parts = []
    for source in lost:
        way = next(iter(ways[source]))
        others = sorted({b.source for b in way.bound_by if b.source in lost and b.source is not None})
        by = " and ".join(_plain(query.sources[other].alias) for other in others)
        parts.append(f"{_plain(query.sources[source].alias)} is bound by {by}")
    return (
        f"tables that are reached by an index bind only each other ({', '.join(parts)}); bind one of them by a stream"
        " or a constant, or declare SCAN"
    )


def _plain(name: str) -> str:
    return shown(name)[1:-1]
