"""The first event of a record: what runs, over which sources, with which settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from eddyline.bound.expr import Expr, sources_of
from eddyline.bound.model import BoundQuery, BoundSource
from eddyline.cql.script import parse
from eddyline.plan.explain import text, window_text
from eddyline.plan.graph import join_graph
from eddyline.runtime.recording.feed import Event
from eddyline.runtime.recording.files import VERSION
from eddyline.settings import TABLE, Settings
from eddyline.version import __version__


def run_event(script: str, query: BoundQuery, settings: Settings, engine: str, plan: str, slots: int) -> Event:
    """The event. `plan` is the text of explain. Of the script only the query is shown: declarations may hold what is
    nobody's business."""
    return {
        "type": "run",
        "version": VERSION,
        "t": 0.0,
        "began": datetime.now(UTC).isoformat(),
        "eddyline": __version__,
        "engine": engine,
        "query": _query_text(script),
        "plan": plan,
        "settings": {setting.key: setting.kind.text(getattr(settings, setting.key)) for setting in TABLE},
        "sources": [_source(query, source) for source in query.sources],
        "edges": list(_edges(query)),
        "slots": slots,
        "groups": settings.groups,
        "pid": os.getpid(),
    }


def _query_text(script: str) -> str:
    parsed = parse(script)
    at = parsed.insert_place
    lines = script.splitlines(keepends=True)
    begin = sum(map(len, lines[: at.line - 1])) + at.column - 1
    if parsed.insert_into is not None:
        begin = script.upper().rfind("INSERT", 0, begin)
    return script[begin:].strip().rstrip(";").rstrip()


def _source(query: BoundQuery, source: BoundSource) -> dict[str, Any]:
    stream = source.stream
    kind = "asked" if stream.is_asked else "table" if stream.is_table else "stream"
    return {
        "alias": source.alias,
        "name": stream.name,
        "kind": kind,
        "window": "" if stream.is_table else window_text(query, source.window),
    }


def _edges(query: BoundQuery) -> Iterator[dict[str, Any]]:
    """The predicates over several sources; a time bound is one of those."""
    graph = join_graph(query)
    kinds: list[tuple[str, Expr]] = [("range", r.predicate) for r in graph.ranges]
    kinds += [("other", e) for e in (*graph.residuals, *graph.selections)]
    for e in graph.equalities:
        if not e.derived:
            words = f"{text(e.left_expr, query)} = {text(e.right_expr, query)}"
            yield {"between": [e.left, e.right], "text": words, "kind": "equality"}
    known = {predicate for _, predicate in kinds}
    for kind, predicate in kinds:
        if len(sources_of(predicate)) > 1:
            yield {"between": sorted(sources_of(predicate)), "text": text(predicate, query), "kind": kind}
    equal = {(e.left, e.right) for e in graph.equalities}
    for predicate in query.predicates:
        between = sorted(sources_of(predicate))
        if (
            len(between) == 2
            and frozenset(between) in graph.time_pairs
            and predicate not in known
            and tuple(between) not in equal
        ):
            yield {"between": between, "text": text(predicate, query), "kind": "bound"}
