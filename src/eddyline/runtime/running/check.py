"""Checks whether settings and a checkpoint fit a query, before an engine exists and without reading a row.

A checkpoint describes its job (`about`); a different job is refused. No file that is imported here needs the engine or
a compiled kernel, so mistakes are reported at once.
"""

from __future__ import annotations

import json
import os
from typing import Any

from eddyline.bound.model import BoundQuery
from eddyline.cql.script import Script, WindowClause, parse
from eddyline.errors import SettingError
from eddyline.plan.tree import check_asks, shape
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.commit import Commit
from eddyline.settings import Settings
from eddyline.state.log.store import Store


def flushes(settings: Settings, keeps: bool) -> bool:
    """Whether results that wait for a watermark are emitted when all sources are read. By default they are not if a
    later run can continue with them (`keeps`)."""
    if settings.at_end == "keep" and not keeps:
        raise SettingError("at_end=keep needs --checkpoint, which keeps the rows that wait")
    return settings.at_end == "flush" or (settings.at_end is None and not keeps)


def check_estimates(settings: Settings, keeps: bool, spills: bool = False, spark: bool = False) -> None:
    """Refuses (SettingError) estimates where there are none: on Spark, where rows can leave memory, and with a
    checkpoint where the state of slots is in files."""
    in_files = keeps and settings.arena_dir is not None
    if settings.estimates == "on" and (in_files or spills or spark):
        what = "on Spark" if spark else "with arena_dir" if in_files else "with memory; set spill=off too"
        raise SettingError(f"estimates=on does not work {what}: it needs the local engine, with its state in memory")


def check_settings(query: BoundQuery, settings: Settings, checkpoint: str | None) -> None:
    """Refuses (SettingError) settings that cannot work for this query."""
    check_asks(query.asks, shape(settings.plan, [source.alias for source in query.sources]))
    if settings.prefer is not None:  # a plan needs compiled kernels
        from eddyline.plan.judges import judges
        from eddyline.plan.plan import plan_of

        judges(plan_of(query), settings.prefer)
    flushes(settings, checkpoint is not None)
    check_estimates(settings, checkpoint is not None)


def check_checkpoint(text: str, query: BoundQuery | None, settings: Settings, checkpoint: str, spark: bool) -> None:
    """Refuses a checkpoint of another job, format or engine (SettingError), or one that is damaged (JobError); writes
    nothing. A job whose query is not known yet (None) is not compared. Segments are not read."""
    found = _at(checkpoint)
    found.check(None if query is None else about(parse(text), query, settings.groups))
    commit = found.last()
    if commit is not None:
        found.check_files(commit)
    found.decided(0 if commit is None else commit.batch + 1)
    if spark and commit is not None:
        check_is_of_spark(commit, checkpoint)


def check_is_of_spark(commit: Commit, checkpoint: str) -> None:
    """Refuses (SettingError) to continue a job of the local engine on Spark."""
    if isinstance(commit.offsets, dict) and "own" not in commit.offsets:
        raise SettingError(f"the checkpoint {checkpoint} is of the local engine: go on with it there")


def is_finished(checkpoint: str) -> bool:
    """Whether the streams of a checkpoint's job have ended and all its results are emitted."""
    commit = _at(checkpoint).last()
    return commit is not None and commit.finished


def _at(checkpoint: str) -> Checkpoint:
    return Checkpoint(Store(checkpoint if "://" in checkpoint else os.path.abspath(checkpoint)))


def about(script: Script, query: BoundQuery, groups: int) -> dict[str, Any]:
    """The description of a job in its checkpoint: streams with the columns that are read, the query with its windows,
    and the number of partition groups."""
    streams: dict[str, dict[str, Any]] = {}
    for number, source in enumerate(query.sources):
        columns = {name: str(source.stream.schema.field(name).type) for name in query.columns_of_source(number)}
        known = streams.setdefault(source.stream.name, {})
        computed = source.stream.computed
        time = source.stream.time if computed is None else computed.written
        known |= columns | {"time": time, "lateness": source.stream.lateness}
        known |= {"asked": True} if source.stream.is_asked else {}
    return {
        "stream": {name: json.dumps(columns, sort_keys=True) for name, columns in streams.items()},
        "query": _query_text(script),
        "groups": groups,
    }


def _query_text(script: Script) -> str:
    """The query in a form that does not depend on its layout."""
    windows = ", ".join(f"{s.alias} {_window(s.window)}" for s in script.sources)
    return f"{script.select.sql()} over {windows}"


def _window(window: WindowClause | None) -> str:
    return "" if window is None else f"{window.kind} {window.size} {window.slide or ''} {window.offset or ''}".strip()
