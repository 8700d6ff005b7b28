"""A query over streams and tables from Python; `start` gives a run.

It runs on Spark if a stream or table is a Spark DataFrame, in the session of that DataFrame; else in this process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eddyline.api import notebook
from eddyline.api.inside import Inside
from eddyline.api.run import Recording, Run
from eddyline.api.streams import Stream, collected, described, source_of
from eddyline.api.words import python_words
from eddyline.cql.script import parse
from eddyline.dashboard.place import DashboardPlace, place_of
from eddyline.dashboard.server import serve
from eddyline.errors import SettingError, shown
from eddyline.extras import install
from eddyline.plan.explain import explain
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.plan.tree import shape
from eddyline.runtime.formats import open_source
from eddyline.runtime.recording.feed import EventFeed
from eddyline.runtime.recording.recorded import recorder_of
from eddyline.runtime.recording.recorder import SAMPLE
from eddyline.runtime.running.job import GivenInput, prepare
from eddyline.runtime.running.job import explain as bind_only
from eddyline.runtime.running.memory_share import with_memory
from eddyline.runtime.running.runner import LocalRunner, Runner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sinks.kept import KeptSink
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.batches import Batches
from eddyline.runtime.sources.source import Framed
from eddyline.settings import Settings, from_mapping

if TYPE_CHECKING:
    from eddyline.spark.runner import SparkRunner

_EVENTS, _SAMPLE = 512, 0.25
"""The most samples, and the most other events, that a run keeps, and the seconds between two samples."""
ResultSink = Callable[[pa.RecordBatch], object] | str | None


class Query:
    """A query; made by `el.query`, checked when it is started."""

    def __init__(
        self, sql: str, streams: Mapping[str, Stream], tables: Mapping[str, Batches], prefer: str | None = None
    ) -> None:
        if not isinstance(sql, str):
            raise SettingError(f"a query is a text of SQL, not {shown(sql)}")
        for what, mapping in (("streams", streams), ("tables", tables)):
            if not isinstance(mapping, Mapping):
                raise SettingError(f"{what} are a dictionary by name, not {shown(mapping)}")
        for name, given in streams.items():
            if not isinstance(given, Stream):
                raise SettingError(f"stream {name} is made with el.stream(batches, time=...), not of {shown(given)}")
        self._sql, self._prefer = sql, {} if prefer is None else {"prefer": prefer}
        self._given = {name: given.given for name, given in streams.items()}
        self._given |= {name: GivenInput(source_of(batches)) for name, batches in tables.items()}

    def __repr__(self) -> str:
        over = ", ".join(self._given) or "what the script declares"
        return f"<Query {notebook.one_line(self._sql)!r} over {over}>"

    def _repr_html_(self) -> str:
        known = {name: described(given) for name, given in self._given.items()}
        return f"<pre>{escape(self._sql)}</pre>{notebook.table(known)}"

    @python_words()
    def explain(self, settings: Mapping[str, object] | None = None) -> str:
        """The plan as text; with the setting `slots` also which rows go to which slot."""
        query, parsed = bind_only(self._sql, self._given), self._settings(settings)
        tree = shape(parsed.plan, [source.alias for source in query.sources])
        slots = parsed.slots or 1
        return explain(query, partition(Plan(query), slots, parsed.groups), tree, with_memory(parsed, slots))

    @python_words()
    def start(
        self,
        sink: ResultSink = None,
        checkpoint: str | os.PathLike[str] | None = None,
        settings: Mapping[str, object] | None = None,
        foreach_batch: Callable[[Any, int], object] | None = None,
        follow: bool = False,
        engine: str | None = None,
        final: bool = False,
        record: str | os.PathLike[str] | None = None,
        dashboard: bool | int | str = False,
        dashboard_token: str | None = None,
    ) -> Run:
        """Starts the query in a thread of its own.

        `sink` is a function that is called with each record batch of results, or "print". Without a sink the run keeps
        its results for you (`run.to_arrow()`, `.to_pandas()`, `.to_polars()`, `.to_spark()`, `for batch in run`),
        unless the query says INSERT INTO. The run pauses while about 64 MB of results are unread and no call waits for
        its end, so a loop that only looks at `run.state` may never end: use `run.wait()`. A query over an iterator,
        such as a generator, can be started once. With a `checkpoint`, a folder, a query that is started again continues
        where it ended; rows that were given to `sink` after the last commit are given again. `engine` is "spark" or
        "local": by default Spark if a stream or table is a Spark DataFrame, in the session of that DataFrame, else this
        process. On Spark, `foreach_batch(df, batch)` gets the results of each batch as a DataFrame.

        The run ends when all rows that the sources have now are processed; with `follow` it waits for more until it is
        stopped. With a checkpoint, results that wait for a watermark are kept for the next run. `final` says that the
        streams have ended: the run gives those results, and finishes the job.

        `record` is a file to which the run writes its decisions and counters; `eddyline why FILE` and `eddyline replay
        FILE` read it.

        With `dashboard`, True or a port, the run is shown in the browser until it ends; `run.dashboard` is where. An
        address of the network ("0.0.0.0:8080") needs a `dashboard_token`.
        """
        began = time.perf_counter()
        if not (sink is None or callable(sink) or (isinstance(sink, str) and sink == "print")):
            raise SettingError(f"a sink is a function of a record batch, or 'print', not {shown(sink)}")
        if not (checkpoint is None or isinstance(checkpoint, str | os.PathLike)):
            raise SettingError(f"a checkpoint is the path of a folder, not {shown(checkpoint)}")
        checkpoint = None if checkpoint is None else os.fspath(checkpoint)
        if not (record is None or isinstance(record, str | os.PathLike)):
            raise SettingError(f"a record is the path of a file, not {shown(record)}")
        parsed = self._settings(settings)
        if final and follow:
            raise SettingError("follow waits for more rows, final says that there are none: leave one out")
        if final:
            parsed = replace(parsed, at_end="flush")
        spark = self._on_spark(engine)
        if not spark and foreach_batch is not None:
            raise SettingError('foreach_batch is for streams of Spark, or engine="spark"')
        place = None if dashboard is False else place_of(dashboard, dashboard_token)
        inside, kept = Inside(), None
        target: Sink | None = CallbackSink(inside.calling(sink)) if callable(sink) else None
        if sink is None and foreach_batch is None and parse(self._sql).insert_into is None:
            target = kept = KeptSink()
        if spark:
            runner_of = _of_spark()
            each = None if foreach_batch is None else inside.calling(foreach_batch)
            on_spark = runner_of(self._sql, self._given, target, each, parsed, checkpoint, follow, began)
            recording = self._recording(on_spark, parsed, "spark", record, place)
            return Run(on_spark, parsed, inside, kept, follow, on_spark.frame, recording)
        opener = partial(open_source, follow=follow)
        given = {name: collected(one) for name, one in self._given.items()}
        job = prepare(self._sql, given, target, parsed.seed, sys.stdout, opener, checkpoint=checkpoint)
        endless = follow or any(i.source.endless for i in job.inputs)
        runner = LocalRunner(job, parsed, checkpoint, began=began, follow=follow)
        recording = self._recording(runner, parsed, "local", record, place)
        return Run(runner, parsed, inside, kept, endless, _frame_of, recording)

    def _recording(
        self,
        runner: Runner,
        settings: Settings,
        engine: str,
        path: str | os.PathLike[str] | None,
        place: DashboardPlace | None,
    ) -> Recording:
        """The recording of a run. With a file or a dashboard it has as many samples as any record."""
        feed = EventFeed(samples=_EVENTS, others=_EVENTS) if place is None else EventFeed()
        sample = _SAMPLE if path is None and place is None else SAMPLE
        recorder = recorder_of(runner, self._sql, settings, engine, path, feed, sample=sample)
        return Recording(feed, recorder, None if place is None else serve(feed, place))

    def _settings(self, given: object) -> Settings:
        if not (given is None or isinstance(given, Mapping)):
            raise SettingError(f"settings are a dictionary, not {shown(given)}")
        return from_mapping({**self._prefer, **(given or {})})

    def _on_spark(self, engine: object) -> bool:
        frames = {n: g.source.frame for n, g in self._given.items() if isinstance(g.source, Framed)}
        if engine is None:
            return bool(frames)
        if not isinstance(engine, str) or engine not in ("spark", "local"):
            raise SettingError(f"engine is 'spark' or 'local', not {shown(engine)}")
        for name, frame in frames.items() if engine == "local" else ():
            if frame.isStreaming:
                raise SettingError(f"{name} is a streaming DataFrame of Spark, which engine='local' does not read")
        return engine == "spark"


def _of_spark() -> Callable[..., SparkRunner]:
    with _needs_pyspark():
        from eddyline.spark.start import runner_of
    return runner_of


def _frame_of(table: pa.Table) -> Any:
    with _needs_pyspark():
        from eddyline.spark.start import frame_of_table
    return frame_of_table(table)


@contextmanager
def _needs_pyspark() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(f"Spark needs PySpark ({error}); type: {install('spark')}") from None
