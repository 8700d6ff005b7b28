"""Queries from Python: `el.query(...).start(...)` gives a run that goes on in a thread of its own.

It runs on Spark if a stream or table is a DataFrame of Spark, on the session of that; else in this process.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from eddyline.errors import EddylineError, SettingError
from eddyline.plan.explain import explain
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.plan.tree import shape
from eddyline.runtime.checkpointed import CheckpointedRunner
from eddyline.runtime.failures import told
from eddyline.runtime.job import Given, prepare
from eddyline.runtime.job import explain as bind_only
from eddyline.runtime.options import duration
from eddyline.runtime.python_source import PythonSource
from eddyline.runtime.runner import LocalRunner, Runner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.batches import Batches
from eddyline.runtime.sources.source import Source
from eddyline.runtime.summary import Progress, Summary
from eddyline.settings import Settings, from_mapping

ResultSink = Callable[[pa.RecordBatch], object] | str | None


@dataclass(frozen=True)
class Stream:
    """Record batches with a time column; made by `el.stream`."""

    given: Given


def _is_frame(batches: object) -> bool:
    """Whether it is a DataFrame of Spark, without importing Spark."""
    return type(batches).__module__.startswith("pyspark.sql.")


def _source(batches: Any, schema: pa.Schema | None = None) -> Source:
    if _is_frame(batches):
        from eddyline.spark.frames import FrameSource

        return FrameSource(batches)
    return PythonSource(batches, schema)


def stream(
    batches: Batches | Any, time: str, lateness: str | timedelta = "0 s", schema: pa.Schema | None = None
) -> Stream:
    """A stream of pyarrow record batches (an iterable of them, a table, a reader), or a streaming DataFrame of Spark.

    `time` names the column of event times, or is an expression over the columns, as in 'epoch_ms(ms)'. `lateness` says
    how far rows may come out of order, a timedelta or a text such as '5 seconds'. The schema is that of the first
    batch, which is asked for at once, unless it is given. Tables and lists are read anew by every run; an iterator (a
    generator, a reader) can be read by one.

    >>> import datetime, pyarrow as pa, eddyline as el
    >>> batch = pa.record_batch({"ts": [datetime.datetime(2026, 1, 1)], "x": [1]})
    >>> clicks = el.stream([batch], time="ts", lateness="2 s")
    """
    if not isinstance(time, str):
        raise SettingError(f"time is the name of the column of event times, or an expression as text, not {time!r}")
    if not (schema is None or isinstance(schema, pa.Schema)):
        raise SettingError(f"schema is a pyarrow schema, not {type(schema).__name__}")
    return Stream(Given(_source(batches, schema), time, _lateness(lateness)))


def _lateness(value: object) -> int:
    """In microseconds."""
    if isinstance(value, str):
        return duration(value, "lateness")
    if not isinstance(value, timedelta):
        raise SettingError(f"lateness is a timedelta or a text such as '5 seconds', not {value!r}")
    if value < timedelta(0):
        raise SettingError("lateness cannot be negative")
    return value // timedelta(microseconds=1)


class Query:
    """A query, checked when it is started; made by `el.query`."""

    def __init__(self, sql: str, streams: Mapping[str, Stream], tables: Mapping[str, Batches]) -> None:
        for name, given in streams.items():
            if not isinstance(given, Stream):
                raise SettingError(
                    f"stream {name} is made with el.stream(batches, time=...), not of a {type(given).__name__}"
                )
        self._sql = sql
        self._given = {name: given.given for name, given in streams.items()}
        self._given |= {name: Given(_source(batches)) for name, batches in tables.items()}

    def explain(self, settings: Mapping[str, object] | None = None) -> str:
        """The plan, in text; with `slots` among the settings also which rows go to which of them."""
        query, parsed = bind_only(self._sql, self._given), from_mapping(settings or {})
        tree = shape(parsed.plan, [source.alias for source in query.sources])
        return explain(query, partition(Plan(query), parsed.slots or 1, parsed.groups), tree)

    def start(
        self,
        sink: ResultSink = None,
        checkpoint: str | None = None,
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
        if not (sink is None or sink == "print" or callable(sink)):
            raise SettingError(f"a sink is a function of a record batch, or 'print', not {sink!r}")
        parsed = from_mapping(settings or {})
        target: Sink | None = CallbackSink(sink) if callable(sink) else None
        frames = [given.source for given in self._given.values() if hasattr(given.source, "frame")]
        if not frames and (foreach_batch is not None or follow):
            raise SettingError("foreach_batch and follow are for streams of Spark")
        if frames:
            from eddyline.spark.start import runner_of

            return Run(
                runner_of(self._sql, self._given, target, foreach_batch, parsed, checkpoint, follow, began), parsed
            )
        job = prepare(self._sql, self._given, target, parsed.seed, sys.stdout)
        runner: Runner
        if checkpoint is None:
            runner = LocalRunner(job, parsed, began=began)
        else:
            runner = CheckpointedRunner(job, self._sql, parsed, checkpoint, began=began)
        return Run(runner, parsed)


class Run:
    """A query that is running, or has ended."""

    def __init__(self, runner: Runner, settings: Settings) -> None:
        self.settings = settings
        self._runner = runner
        self._stop = threading.Event()
        self._summary: Summary | None = None
        self._error: EddylineError | None = None
        self._thread = threading.Thread(target=self._work, name="eddyline", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the run after the batch in hand, and waits for that; not for a stream whose rows have not come."""
        self._stop.set()
        if threading.current_thread() is not self._thread:  # a sink may ask for it, and cannot wait for itself
            self._thread.join()

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Waits for the end (at most `timeout` seconds); what the run did, None if it is still running. Raises its
        error."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return self._summary

    def progress(self) -> Progress:
        """Where the run is now."""
        return self._runner.progress()

    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return self._runner.decisions

    def explain(self) -> str:
        """The plan and what was measured on it so far, in text."""
        return self._runner.explain()

    def exception(self) -> EddylineError | None:
        """What the run failed with, if it did."""
        return self._error

    def _work(self) -> None:
        try:
            self._summary = self._runner.run(self._stop.is_set, lambda progress: None)
        except BaseException as error:
            self._error = told(error)
            if self._error is not error:
                self._error.__cause__ = error


def query(sql: str, streams: Mapping[str, Stream] | None = None, tables: Mapping[str, Batches] | None = None) -> Query:
    """A query over streams and tables from Python, or a whole script with declarations of its own.

    >>> import datetime, pyarrow as pa, eddyline as el
    >>> def batch(key, *seconds):
    ...     times = [datetime.datetime(2026, 1, 1, 0, 0, s) for s in seconds]
    ...     return pa.record_batch({"ts": times, key: [s % 10 for s in seconds]})
    >>> orders = el.stream([batch("id", 1, 2, 13)], time="ts")
    >>> payments = el.stream([batch("order_id", 3, 33)], time="ts")
    >>> rows = []
    >>> run = el.query(
    ...     "SELECT o.id FROM orders [RANGE 15 SECONDS] o, payments [RANGE 15 SECONDS] p WHERE o.id = p.order_id",
    ...     streams={"orders": orders, "payments": payments},
    ... ).start(sink=lambda result: rows.extend(result.to_pylist()))
    >>> run.wait().rows_out, rows
    (1, [{'id': 3}])
    """
    return Query(sql, streams or {}, tables or {})
