"""Streams that a Python program hands over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from eddyline.bound.types import sql_type
from eddyline.errors import SettingError, shown
from eddyline.runtime.options import duration
from eddyline.runtime.running.job import GivenInput
from eddyline.runtime.sources.batches import Batches
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.runtime.sources.source import Framed, Source


@dataclass(frozen=True)
class Stream:
    """Record batches with a time column; made by `el.stream`."""

    given: GivenInput

    def __repr__(self) -> str:
        return f"<Stream {described(self.given)}>"


def described(given: GivenInput) -> str:
    """A line about a stream or table: its columns, its time column and its lateness."""
    columns = ", ".join(f"{field.name} {sql_type(field.type)}" for field in given.source.schema)
    if given.time is None:
        return columns
    late = f", lateness {timedelta(microseconds=given.lateness)}" if given.lateness else ""
    return f"{columns}; time {given.time}{late}"


def source_of(batches: Any, schema: pa.Schema | None = None) -> Source:
    """The source that reads a stream or table given by a program."""
    if type(batches).__module__.startswith("pyspark.sql."):  # a test that does not import Spark
        from eddyline.spark.frames import FrameSource

        return FrameSource(batches)
    return PythonSource(batches, schema)


def collected(given: GivenInput) -> GivenInput:
    """A stream or table for the local engine: the rows of a DataFrame of Spark are brought here."""
    if not isinstance(given.source, Framed):
        return given
    return replace(given, source=PythonSource(given.source.frame.toArrow()))


def stream(
    batches: Batches | Any, time: str, lateness: str | timedelta = "0 s", schema: pa.Schema | None = None
) -> Stream:
    """A stream of a frame or of record batches.

    A frame is a pyarrow table, a DataFrame of pandas, polars or Spark, a relation of DuckDB, or anything else with
    `__arrow_c_stream__`: its rows are read in the order of their times, so none is late. Record batches (a list, an
    iterator, a reader) and streaming DataFrames of Spark keep their order.

    `time` names the column of event times; `lateness` says how far rows may come out of order, a timedelta or a text
    such as '5 seconds'. Without `schema` the first batch is read at once and its schema is used. Frames and lists can
    be read by many runs; an iterator (a generator, a reader) by one run only.

    >>> import datetime, pyarrow as pa, eddyline as el
    >>> batch = pa.record_batch({"ts": [datetime.datetime(2026, 1, 1)], "x": [1]})
    >>> clicks = el.stream([batch], time="ts", lateness="2 s")
    """
    if not isinstance(time, str):
        raise SettingError(f"time is the name of the column of event times, not {shown(time)}")
    if not (schema is None or isinstance(schema, pa.Schema)):
        raise SettingError(f"schema is a pyarrow schema, not {shown(schema)}")
    return Stream(GivenInput(source_of(batches, schema), time, _lateness(lateness)))


def _lateness(value: object) -> int:
    """A lateness in microseconds; SettingError if it is not a length of time."""
    if isinstance(value, str):
        return duration(value, "lateness")
    if not isinstance(value, timedelta):
        raise SettingError(f"lateness is a timedelta or a text such as '5 seconds', not {shown(value)}")
    if value < timedelta(0):
        raise SettingError("lateness cannot be negative")
    return value // timedelta(microseconds=1)
