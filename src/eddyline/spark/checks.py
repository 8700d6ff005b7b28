"""Checks of a script for Spark before a JVM is started: most mistakes are reported in a second or two.

Sources that we read ourselves are opened. The columns of a source that Spark reads are known if the script declares
them, or if the format has fixed columns; then the query is bound. Otherwise only Spark knows the columns, and the query
is checked after Spark has started. Nothing here imports pyspark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TextIO

import pyarrow as pa

from eddyline.cql.declaration import Declaration
from eddyline.errors import InternalError, SettingError
from eddyline.runtime.formats import SOURCES, open_sink, open_source, writes_ourselves
from eddyline.runtime.running.job import ColumnsUnknown, GivenInput, Job, Opener, check_without_columns, prepare
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.paths import is_elsewhere
from eddyline.runtime.sources.source import Chunk, Source, Wanted
from eddyline.settings import AUTO_MEMORY, Settings
from eddyline.spark.connectors import check_connector

ENDLESS = ("rate", "rate-micro-batch", "socket")
"""Formats that never end by themselves."""

_MOMENT = pa.timestamp("us", "UTC")
_FIXED = {
    "rate": pa.schema([("timestamp", _MOMENT), ("value", pa.int64())]),
    "rate-micro-batch": pa.schema([("timestamp", _MOMENT), ("value", pa.int64())]),
}
"""Formats with fixed columns."""


def slots_here(master: str) -> int | None:
    """The number of slots that a job has by default; None if they run on other hosts.

    >>> slots_here("local[3]"), slots_here("local"), slots_here("yarn")
    (3, 1, None)
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:, *\d+)?\])?", master)
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def check_memory(settings: Settings, master: str) -> None:
    """SettingError for `memory=auto` where slots run on other hosts: it is a share of this one."""
    if settings.memory == AUTO_MEMORY and slots_here(master) is None:
        raise SettingError(f"memory=auto is a share of this host's memory; set a size, as {master} has other hosts")


class SparkReads:
    """A stream or table that Spark will read: only its columns are known here."""

    def __init__(self, schema: pa.Schema, endless: bool) -> None:
        self.schema, self.endless = schema, endless

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        raise InternalError("Spark reads these rows")


class SparkWrites:
    """A sink that Spark will write to."""

    def check(self) -> None:
        """Nothing to check here: Spark checks it later."""

    def open(self) -> None:
        raise InternalError("Spark writes these rows")

    def write(self, batch: pa.RecordBatch) -> None:
        raise InternalError("Spark writes these rows")

    def close(self) -> None:
        """Nothing is open."""

    def abandon(self) -> None:
        """Nothing is open."""


def is_native(declaration: Declaration, follow: bool) -> bool:
    """Whether we read the source ourselves, without Spark."""
    if declaration.format == "generate" and follow and declaration.kind == "STREAM":
        raise SettingError("generate cannot be followed: it makes all its rows at once; leave out --follow")
    return declaration.format in SOURCES and not is_elsewhere(declaration.options.get("path", ""))


def opener(conf: Mapping[str, str], follow: bool) -> Opener:
    """A function that opens sources as far as possible without Spark; it raises ColumnsUnknown if only Spark knows the
    columns."""

    def open_(declaration: Declaration, seed: int) -> Source:
        format_ = declaration.format
        if is_native(declaration, follow):
            return open_source(declaration, seed, follow)
        check_connector(format_, conf)
        endless = format_ in ENDLESS and not follow
        fixed = _FIXED.get(format_)
        if fixed is not None and declaration.columns is not None:
            raise SettingError(f"{format_} has columns of its own ({', '.join(fixed.names)}): leave out the list")
        if declaration.columns is not None:
            return SparkReads(pa.schema([pa.field(name, type_) for name, type_ in declaration.columns]), endless)
        if fixed is None:
            raise ColumnsUnknown(f"only Spark knows the columns of {declaration.name}")
        return SparkReads(fixed, endless)

    return open_


def open_spark_sink(conf: Mapping[str, str], declaration: Declaration, schema: pa.Schema, out: TextIO) -> Sink:
    """Open a sink as far as possible without Spark."""
    if writes_ourselves(declaration):
        return open_sink(declaration, schema, out)
    check_connector(declaration.format, conf)
    return SparkWrites()


def check(
    text: str,
    seed: int,
    conf: Mapping[str, str],
    follow: bool,
    out: TextIO | None = None,
    checkpoint: str | None = None,
    given: Mapping[str, GivenInput] | None = None,
) -> tuple[Job | None, tuple[str, ...]]:
    """Check a script for Spark; ScriptError if it is wrong. Returns the job, some of whose sources only Spark can read;
    or None and the names of the sources whose columns only Spark knows. `given` are streams and tables from Python."""

    def write(declaration: Declaration, schema: pa.Schema, out: TextIO) -> Sink:
        return open_spark_sink(conf, declaration, schema, out)

    try:
        return prepare(text, given, None, seed, out, opener(conf, follow), write, checkpoint), ()
    except ColumnsUnknown:
        if given:  # the query is checked after Spark has started
            return None, ()
        return None, check_without_columns(text, seed, opener(conf, follow), write, checkpoint)
