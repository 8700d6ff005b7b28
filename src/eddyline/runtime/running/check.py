"""Whether settings and a checkpoint fit a query: known before an engine is there, without reading a row.

A checkpoint says what it is of (`about`); a job that is something else is refused. Nothing here imports the engine or a
compiled kernel: mistakes are told at once.
"""

from __future__ import annotations

import json
import os
from typing import Any

from eddyline.bound.model import BoundQuery
from eddyline.cql.script import Script, WindowClause, parse
from eddyline.errors import SettingError
from eddyline.plan.tree import shape
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.settings import Settings
from eddyline.state.log.store import Store


def flushes(settings: Settings, keeps: bool) -> bool:
    """Whether results that wait are given when all sources are read. By default they are not where a later run can go
    on with them (`keeps`)."""
    if settings.at_end == "keep" and not keeps:
        raise SettingError("at_end=keep needs --checkpoint: what is kept must be kept somewhere")
    return settings.at_end == "flush" or (settings.at_end is None and not keeps)


def check_settings(query: BoundQuery, settings: Settings, checkpoint: str | None) -> None:
    """Refuses (SettingError) settings that cannot work for this query."""
    shape(settings.plan, [source.alias for source in query.sources])
    flushes(settings, checkpoint is not None)


def check_checkpoint(text: str, query: BoundQuery, settings: Settings, checkpoint: str) -> None:
    """Refuses (SettingError) a checkpoint of another job; writes nothing."""
    _at(checkpoint).check(about(parse(text), query, settings.groups))


def is_finished(checkpoint: str) -> bool:
    """Whether the streams of the job of a checkpoint have ended, and all its results were given."""
    commit = _at(checkpoint).last()
    return commit is not None and commit.finished


def _at(checkpoint: str) -> Checkpoint:
    return Checkpoint(Store(checkpoint if "://" in checkpoint else os.path.abspath(checkpoint)))


def about(script: Script, query: BoundQuery, groups: int) -> dict[str, Any]:
    """What a checkpoint is of: the streams with the columns that are read, the query with its windows, the groups."""
    streams: dict[str, dict[str, Any]] = {}
    for number, source in enumerate(query.sources):
        columns = {name: str(source.stream.schema.field(name).type) for name in query.columns_of_source(number)}
        known = streams.setdefault(source.stream.name, {})
        computed = source.stream.computed
        time = source.stream.time if computed is None else computed.written
        known |= columns | {"time": time, "lateness": source.stream.lateness}
    return {
        "stream": {name: json.dumps(columns, sort_keys=True) for name, columns in streams.items()},
        "query": _query_text(script),
        "groups": groups,
    }


def _query_text(script: Script) -> str:
    """The query, however it is laid out."""
    windows = ", ".join(f"{s.alias} {_window(s.window)}" for s in script.sources)
    return f"{script.select.sql()} over {windows}"


def _window(window: WindowClause | None) -> str:
    return "" if window is None else f"{window.kind} {window.size} {window.slide or ''}".strip()
