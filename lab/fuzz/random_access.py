"""Random access methods for the tables of a case, so that they are asked in place of being loaded; keys whose lookups
fail; and how methods compete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from zlib import crc32

import pyarrow as pa

from eddyline.bound.expr import SourceColumn
from eddyline.bound.model import MATCH, MISSING, AccessMethod, BoundQuery
from eddyline.engine.tuning import Tuning
from eddyline.plan.bindings import bindings_of, index_bindings, unreachable
from eddyline.plan.graph import JoinGraph, join_graph
from eddyline.plan.reachable import missing_join
from eddyline.state.key_values import values

SCAN = AccessMethod()
Fails = Callable[[str, tuple[object, ...]], bool]
"""Whether the lookup of a key of a table fails, always."""
FailsWith = Callable[[str, int, tuple[object, ...]], bool]
"""Whether the lookup of a key of a table fails with an access method."""


def with_access(query: BoundQuery, seed: int) -> BoundQuery:
    """The query with access methods by which all its tables can be reached."""
    random, graph = Random(f"access {seed}"), join_graph(query)
    methods = {s.stream.name: _methods(query, graph, s.stream.name, random) for s in query.sources if s.stream.is_table}
    asked = _asked(query, methods)
    lost = unreachable(asked, [index_bindings(asked, graph, number) for number in range(len(query.sources))])
    for source in lost:
        name = query.sources[source].stream.name
        methods[name] = (SCAN, *(method for method in methods[name] if not method.is_scan))
    return _partial(_asked(query, methods), Random(f"partial {seed}"))


def _partial(query: BoundQuery, random: Random) -> BoundQuery:
    """The query; with PARTIAL in three quarters of all cases in which that means something."""
    names = {output.name.lower() for output in query.outputs}
    if query.group is not None or not query.asks or names & {MISSING, MATCH} or random.random() < 0.25:
        return query
    found = replace(query, partial=True)
    return query if missing_join(found) else found


def failing(query: BoundQuery, seed: int) -> Fails:
    """Which lookups of the tables that are asked fail, in two thirds of all cases. Only tables with one index and no
    scan have keys that fail: then the result is that of the tables without the rows of these keys."""
    random = Random(f"failures {seed}")
    share, salt = random.choice((0, 15, 40)), random.random()
    only = {s.stream.name for s in query.sources if _has_one_index(s.stream.methods)}

    def fails(table: str, key: tuple[object, ...]) -> bool:
        same = [value + 0.0 if isinstance(value, float) else value for value in key]  # -0.0 is 0.0
        return table in only and crc32(f"{salt} {table} {same}".encode()) % 100 < share

    return fails


def failing_with(query: BoundQuery, seed: int) -> FailsWith:
    """Which lookups fail with one access method alone: never with the last one of an index, so that they change
    nothing."""
    random = Random(f"failures of methods {seed}")
    share, salt = random.choice((0, 30, 80)), random.random()
    methods = {s.stream.name: s.stream.methods for s in query.sources}

    def fails(table: str, method: int, key: tuple[object, ...]) -> bool:
        is_last = methods[table][method] not in methods[table][method + 1 :]
        return not is_last and crc32(f"{salt} {table} {method} {key}".encode()) % 100 < share

    return fails


def competing(tuning: Tuning, seed: int) -> Tuning:
    """A tuning with which methods are exchanged for others often, or never, in most cases."""
    random = Random(f"competing {seed}")
    return replace(
        tuning,
        engine=replace(
            tuning.engine,
            trial_keys=random.choice((1, 64)),
            trial_every=random.choice((1, 3, 32)),
            method_margin=random.choice((0.0, 1.5)),
            overdue=random.choice((0.0, 0.5, 4.0)),
            overdue_least=random.choice((0.0, 0.05)),
            hybrid_parts=random.choice((1, 4)),
            hybrid_windows=random.choice((0, 32)),
            scan_gain=random.choice((0.0, 1.0, 1e9)),
        ),
    )


def without_failing(query: BoundQuery, tables: Mapping[str, pa.RecordBatch], fails: Fails) -> dict[str, pa.RecordBatch]:
    """The tables without the rows of keys that fail."""
    methods, found = {s.stream.name: s.stream.methods for s in query.sources}, dict(tables)
    for name, rows in tables.items():
        if _has_one_index(methods.get(name, ())):
            keys = values(rows.select(list(methods[name][0].columns)))
            found[name] = rows.filter(pa.array([not fails(name, key) for key in keys], pa.bool_()))
    return found


def _methods(query: BoundQuery, graph: JoinGraph, table: str, random: Random) -> tuple[AccessMethod, ...]:
    """Up to two indexes over columns that something binds, and perhaps a scan; some indexes in several places."""
    bound: dict[str, None] = {}
    for number, source in enumerate(query.sources):
        if source.stream.name == table:
            columns = (SourceColumn(number, field.name, field.type) for field in source.stream.schema)
            bound |= {column.name: None for column in columns if bindings_of(graph, column)}
    names = list(bound)
    found = []
    for _ in range(random.choice([0, 1, 1, 1, 2]) if names else 0):
        found.append(AccessMethod(tuple(random.sample(names, min(len(names), random.choice([1, 1, 2]))))))
    if not found or random.random() < 0.25:
        found.insert(random.randint(0, len(found)), SCAN)
    found = list(dict.fromkeys(found))
    again = [method for method in found if not method.is_scan and random.random() < 0.3]
    return (*found, *again, *again[: random.randint(0, 1)])


def _has_one_index(methods: Sequence[AccessMethod]) -> bool:
    return len(set(methods)) == 1 and not methods[0].is_scan


def _asked(query: BoundQuery, methods: dict[str, tuple[AccessMethod, ...]]) -> BoundQuery:
    sources = [
        replace(source, stream=replace(source.stream, methods=methods.get(source.stream.name, ())))
        for source in query.sources
    ]
    return replace(query, sources=tuple(sources))
