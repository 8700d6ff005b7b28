"""Prepare a script to run on Spark: the session, the sources, the runner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TextIO

import pyarrow as pa
from pyspark.sql import DataFrame

from eddyline.errors import SettingError
from eddyline.runtime.running.job import GivenInput, Job, prepare
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.settings import Settings
from eddyline.spark.checks import check
from eddyline.spark.frames import FrameSink, FrameSource, opener, sink_opener
from eddyline.spark.functions import carried
from eddyline.spark.results import frame_of
from eddyline.spark.runner import SparkRunner
from eddyline.spark.session import session
from eddyline.spark.still_frames import StillFrame
from eddyline.spark.workers import check_workers


def runner_of(
    text: str,
    given: Mapping[str, GivenInput],
    sink: Sink | None,
    foreach_batch: Callable[[DataFrame, int], object] | None,
    settings: Settings,
    checkpoint: str | None,
    follow: bool,
    began: float,
) -> SparkRunner:
    """A runner for a query over DataFrames, in their session. Without DataFrames it uses the existing session, or makes
    one that stays for later queries."""
    for name, one in given.items():
        _check_handed_over(name, one, checkpoint)
    frames = [g.source.frame for g in given.values() if isinstance(g.source, FrameSource)]
    given = {name: _as_stream(one) for name, one in given.items()}
    checked = None
    if not frames:
        checked, _ = check(text, settings.seed, {}, follow, None, checkpoint, given)  # before a JVM is started
    spark = frames[0].sparkSession if frames else session({})[0]
    check_workers(spark)
    if foreach_batch is not None:
        if sink is not None:
            raise SettingError("results go to a sink or to foreach_batch; leave one out")
        sink = FrameSink(spark, foreach_batch)
    for name, one in given.items():
        if isinstance(one.source, FrameSource) and one.time is None and one.source.frame.isStreaming:
            raise SettingError(
                f"{name} needs a DataFrame that is not streaming; a streaming one is given in streams=, as"
                " el.stream(df, time='ts')"
            )
    opened = opener(spark, follow, checked), sink_opener(spark)
    job = prepare(text, given, sink, settings.seed, None, *opened, checkpoint)
    if isinstance(sink, FrameSink):
        sink.schema = job.query.schema
    modules, functions = carried(text)
    return SparkRunner(job, settings, spark, checkpoint, modules, began, follow, functions=functions)


def frame_of_table(table: pa.Table) -> DataFrame:
    """A table as a DataFrame of the existing session, or of one that is made and stays."""
    return frame_of(session({})[0], table)


def _as_stream(given: GivenInput) -> GivenInput:
    """A DataFrame that is not streaming as a stream, if it is given as one."""
    if isinstance(given.source, FrameSource) and given.time is not None and not given.source.frame.isStreaming:
        return replace(given, source=StillFrame(given.source.frame))
    return given


def _check_handed_over(name: str, given: GivenInput, checkpoint: str | None) -> None:
    """SettingError for rows that may never end, or cannot be written to the checkpoint: all of them are written there
    before the job begins."""
    source = given.source
    if isinstance(source, PythonSource) and not source.ends:
        raise SettingError(
            f"{name} is {source.kind}, which may never end; on Spark, rows of Python are a pyarrow table, a list of"
            " record batches or a DataFrame (all of the rows: pa.Table.from_batches(...))"
        )
    still = isinstance(_as_stream(given).source, StillFrame)
    if checkpoint is not None and "://" in checkpoint and (isinstance(source, PythonSource) or still):
        what, other = ("comes from Python", "make a DataFrame of Spark of it")
        if still:
            what, other = "is a DataFrame that is not streaming", "read it with spark.readStream"
        raise SettingError(
            f"{name} {what}, so the checkpoint must be a folder that is mounted, not {checkpoint}; or {other}"
        )


@contextmanager
def on_spark(
    text: str,
    settings: Settings,
    conf: Mapping[str, str],
    checkpoint: str | None,
    modules: Sequence[str],
    out: TextIO,
    began: float,
    follow: bool = False,
    checked: Job | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[SparkRunner]:
    """A runner with a session, which is stopped at the end of the context unless it existed before. Sources of a
    `checked` job are not opened again."""
    spark, ours = session(conf)
    try:
        check_workers(spark)
        opened = opener(spark, follow, checked), sink_opener(spark)
        job = prepare(text, None, None, settings.seed, out, *opened, checkpoint)
        yield SparkRunner(job, settings, spark, checkpoint, modules, began, follow, clock=clock)
    finally:
        if ours:
            spark.stop()
