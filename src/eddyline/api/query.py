"""A query over streams and tables from Python; `start` gives a run.

It runs on Spark if a stream or table is a DataFrame of Spark, on the session of that; else in this process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from eddyline.api.inside import Inside
from eddyline.api.run import Run
from eddyline.api.streams import Stream, source_of
from eddyline.errors import SettingError, shown
from eddyline.plan.explain import explain
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.plan.tree import shape
from eddyline.runtime.checkpointed import CheckpointedRunner
from eddyline.runtime.job import Given, prepare
from eddyline.runtime.job import explain as bind_only
from eddyline.runtime.runner import LocalRunner, Runner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.batches import Batches
from eddyline.settings import Settings, from_mapping

ResultSink = Callable[[pa.RecordBatch], object] | str | None


class Query:
    """A query, checked when it is started; made by `el.query`."""

    def __init__(self, sql: str, streams: Mapping[str, Stream], tables: Mapping[str, Batches]) -> None:
        if not isinstance(sql, str):
            raise SettingError(f"a query is a text of SQL, not {shown(sql)}")
        for what, mapping in (("streams", streams), ("tables", tables)):
            if not isinstance(mapping, Mapping):
                raise SettingError(f"{what} are a dictionary by name, not {shown(mapping)}")
        for name, given in streams.items():
            if not isinstance(given, Stream):
                raise SettingError(f"stream {name} is made with el.stream(batches, time=...), not of {shown(given)}")
        self._sql = sql
        self._given = {name: given.given for name, given in streams.items()}
        self._given |= {name: Given(source_of(batches)) for name, batches in tables.items()}

    def explain(self, settings: Mapping[str, object] | None = None) -> str:
        """The plan, in text; with `slots` among the settings also which rows go to which of them."""
        query, parsed = bind_only(self._sql, self._given), _settings(settings)
        tree = shape(parsed.plan, [source.alias for source in query.sources])
        return explain(query, partition(Plan(query), parsed.slots or 1, parsed.groups), tree)

    def start(
        self,
        sink: ResultSink = None,
        checkpoint: str | os.PathLike[str] | None = None,
        settings: Mapping[str, object] | None = None,
        foreach_batch: Callable[[Any, int], object] | None = None,
        follow: bool = False,
    ) -> Run:
        """Starts the query in a thread of its own.

        `sink` is called with each record batch of results; None or "print" prints them (unless the query says INSERT
        INTO). A query over an iterator, such as a generator, can be started once. With a `checkpoint`, a folder, the
        query goes on where it was when it is started again; rows that were given to `sink` after the last commit are
        given again. On Spark, `foreach_batch(df, batch)` gets the results of each batch as a DataFrame, and `follow`
        goes on for ever; else the run ends when all that the sources have now is processed.
        """
        began = time.perf_counter()
        if not (sink is None or callable(sink) or (isinstance(sink, str) and sink == "print")):
            raise SettingError(f"a sink is a function of a record batch, or 'print', not {shown(sink)}")
        if not (checkpoint is None or isinstance(checkpoint, str | os.PathLike)):
            raise SettingError(f"a checkpoint is the path of a folder, not {shown(checkpoint)}")
        checkpoint = None if checkpoint is None else os.fspath(checkpoint)
        parsed = _settings(settings)
        inside = Inside()
        target: Sink | None = CallbackSink(inside.calling(sink)) if callable(sink) else None
        frames = [given.source for given in self._given.values() if hasattr(given.source, "frame")]
        if not frames and (foreach_batch is not None or follow):
            raise SettingError("foreach_batch and follow are for streams of Spark")
        if frames:
            from eddyline.spark.start import runner_of

            each = None if foreach_batch is None else inside.calling(foreach_batch)
            on_spark = runner_of(self._sql, self._given, target, each, parsed, checkpoint, follow, began)
            return Run(on_spark, parsed, inside)
        job = prepare(self._sql, self._given, target, parsed.seed, sys.stdout)
        runner: Runner
        if checkpoint is None:
            runner = LocalRunner(job, parsed, began=began)
        else:
            runner = CheckpointedRunner(job, self._sql, parsed, checkpoint, began=began)
        return Run(runner, parsed, inside)


def _settings(given: object) -> Settings:
    if not (given is None or isinstance(given, Mapping)):
        raise SettingError(f"settings are a dictionary, not {shown(given)}")
    return from_mapping(given or {})
