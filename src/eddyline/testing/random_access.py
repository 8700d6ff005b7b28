"""Random access methods for the tables of a case, so that they are asked in place of being loaded; and keys whose
lookups fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from zlib import crc32

import pyarrow as pa

from eddyline.bound.expr import SourceColumn
from eddyline.bound.model import AccessMethod, BoundQuery
from eddyline.engine.asked_keys import values
from eddyline.plan.bindings import bindings_of, index_bindings, unreachable
from eddyline.plan.graph import JoinGraph, join_graph

SCAN = AccessMethod()
Fails = Callable[[str, tuple[object, ...]], bool]
"""Whether the lookup of a key of a table fails, always."""


def with_access(query: BoundQuery, seed: int) -> BoundQuery:
    """The query with access methods by which all its tables can be reached."""
    random, graph = Random(f"access {seed}"), join_graph(query)
    methods = {s.stream.name: _methods(query, graph, s.stream.name, random) for s in query.sources if s.stream.is_table}
    asked = _asked(query, methods)
    lost = unreachable(asked, [index_bindings(asked, graph, number) for number in range(len(query.sources))])
    for source in lost:
        name = query.sources[source].stream.name
        methods[name] = (SCAN, *(method for method in methods[name] if not method.is_scan))
    return _asked(query, methods)


def failing(query: BoundQuery, seed: int) -> Fails:
    """Which lookups of the tables that are asked fail, in two thirds of all cases. Only tables with one index and no
    scan have keys that fail: then the result is that of the tables without the rows of these keys."""
    random = Random(f"failures {seed}")
    share, salt = random.choice((0, 15, 40)), random.random()
    only = {s.stream.name for s in query.sources if len(s.stream.methods) == 1 and not s.stream.methods[0].is_scan}

    def fails(table: str, key: tuple[object, ...]) -> bool:
        same = [value + 0.0 if isinstance(value, float) else value for value in key]  # -0.0 is 0.0
        return table in only and crc32(f"{salt} {table} {same}".encode()) % 100 < share

    return fails


def without_failing(query: BoundQuery, tables: Mapping[str, pa.RecordBatch], fails: Fails) -> dict[str, pa.RecordBatch]:
    """The tables without the rows of keys that fail."""
    methods, found = {s.stream.name: s.stream.methods for s in query.sources}, dict(tables)
    for name, rows in tables.items():
        if len(methods.get(name, ())) == 1 and not methods[name][0].is_scan:
            keys = values(rows.select(list(methods[name][0].columns)))
            found[name] = rows.filter(pa.array([not fails(name, key) for key in keys], pa.bool_()))
    return found


def _methods(query: BoundQuery, graph: JoinGraph, table: str, random: Random) -> tuple[AccessMethod, ...]:
    """Up to two indexes over columns that something binds, and perhaps a scan."""
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
    return tuple(dict.fromkeys(found))


def _asked(query: BoundQuery, methods: dict[str, tuple[AccessMethod, ...]]) -> BoundQuery:
    sources = [
        replace(source, stream=replace(source.stream, methods=methods.get(source.stream.name, ())))
        for source in query.sources
    ]
    return replace(query, sources=tuple(sources))
