"""Streams and tables that Spark reads: any format it knows, and DataFrames that a program hands over.

Their rows come through the JVM to the same split as rows of files (spark/tasks.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from eddyline.cql.declaration import Declaration
from eddyline.cql.names import did_you_mean
from eddyline.errors import InternalError, JobError, SettingError, said
from eddyline.runtime.formats import OF_SPARK, SOURCES, open_sink, open_source, writes_ourselves
from eddyline.runtime.options import Options
from eddyline.runtime.running.job import Job, Opener, SinkOpener
from eddyline.runtime.sinks.files import FILE_SINKS
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.source import Chunk, Source, Wanted
from eddyline.spark.checks import ENDLESS, is_native
from eddyline.spark.connectors import advice
from eddyline.spark.failures import first_line
from eddyline.spark.results import frame_of_files, reads_as_it_is


def as_spark_reads(path: str) -> str:
    """A path for Spark. A path without a scheme is on this machine, whatever Spark's default file system is.

    >>> as_spark_reads("/x/y"), as_spark_reads("s3a://x/y")
    ('file:/x/y', 's3a://x/y')
    """
    return path if "://" in path else f"file:{path}"


class FrameSource:
    """A DataFrame as a source: its columns are known here, and Spark reads its rows."""

    def __init__(self, frame: DataFrame, endless: bool = False) -> None:
        self.frame, self.endless = frame, endless
        self.schema: pa.Schema = to_arrow_schema(frame.schema, timezone="UTC")

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        raise InternalError("rows of a DataFrame are read by Spark")


class FrameSink:
    """A sink that gives results as DataFrames, batch by batch; after a crash the last batch may be given again."""

    def __init__(
        self,
        spark: SparkSession,
        give: Callable[[DataFrame, int], object],
        fresh: str | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        """`give` is called with each DataFrame and its batch; `fresh` is a folder that must be empty when the job
        begins. The `schema` may be set later, before the first row."""
        self._spark, self._give, self._fresh, self.schema = spark, give, fresh, schema

    def take_files(self, batch: int, files: Sequence[str]) -> None:
        """Give the results of a batch, which are in these files."""
        try:
            self._give(self._frame(files), batch)
        except (PySparkException, Py4JError):
            raise
        except Exception as error:
            raise JobError(f"foreach_batch raised {said(error)}") from error

    def _frame(self, files: Sequence[str]) -> DataFrame:
        """The rows of these files. Spark reads them, unless it lacks a type or a local file."""
        known = self.schema
        if known is None or reads_as_it_is(known) or any("://" in file for file in files):
            return self._spark.read.parquet(*map(as_spark_reads, files))
        return frame_of_files(self._spark, files, known)

    def check(self) -> None:
        if self._fresh is not None and _holds_files(self._spark, self._fresh):
            raise SettingError(f"{self._fresh} already holds results; add mode 'append', or choose another path")

    def open(self) -> None:
        pass

    def write(self, batch: pa.RecordBatch) -> None:
        raise InternalError("a DataFrame is made of files")

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass


def _holds_files(spark: SparkSession, folder: str) -> bool:
    """Whether a folder, on any file system of Spark, holds a file or folder that readers would see."""
    jvm: Any = spark.sparkContext._jvm
    place = jvm.org.apache.hadoop.fs.Path(folder)
    try:
        files = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        there = files.listStatus(place) if files.exists(place) else ()
    except Py4JError as error:
        raise SettingError(f"Spark cannot write to {folder}: {first_line(error)}") from None
    return any(not status.getPath().getName().startswith((".", "_")) for status in there)


def sink_opener(spark: SparkSession) -> SinkOpener:
    """A function that opens sinks on Spark: we write files and tables, and print; Spark's writers write all other
    formats, at least once."""

    def open_(declaration: Declaration, schema: pa.Schema, out: TextIO) -> Sink:
        if writes_ourselves(declaration):
            return open_sink(declaration, schema, out)
        _check_format(spark, declaration.format)
        options, fresh = dict(declaration.options), None
        if declaration.format in FILE_SINKS:
            mode = Options(declaration.format, options).choice("mode", ("error", "append"))
            fresh = options["path"] if mode == "error" else None
            options.pop("mode", None)
            if "rows_per_file" in options:
                options["maxRecordsPerFile"] = options.pop("rows_per_file")

        def write(frame: DataFrame, batch: int) -> None:
            writer = frame.write.format(declaration.format).options(**options).mode("append")
            writer = writer.partitionBy(*declaration.partition_by) if declaration.partition_by else writer
            writer.save()

        return FrameSink(spark, write, fresh, schema)

    return open_


def _check_format(spark: SparkSession, format_: str) -> None:
    """SettingError if Spark does not know a format, before it writes the first row."""
    jvm: Any = spark.sparkContext._jvm
    lookup = jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource
    try:
        lookup(format_, spark._jsparkSession.sessionState().conf())
    except (PySparkException, Py4JError) as error:
        why = _unknown(format_, error) or f": {first_line(error)}"
        raise SettingError(f"Spark cannot write '{format_}'{why}", "format") from None


def _unknown(format_: str, error: BaseException) -> str:
    """Advice if Spark's error says that it does not know a format; empty for other errors."""
    if "DATA_SOURCE_NOT_FOUND" not in str(error):
        return ""
    known = advice(format_)
    return f": {known}" if known else did_you_mean(format_, (*SOURCES, *OF_SPARK))


def opener(spark: SparkSession, follow: bool, checked: Job | None = None) -> Opener:
    """A function that opens sources on Spark: we read files, and Spark reads all other formats. Sources that we read
    ourselves are taken from the `checked` job, which has opened them (spark/checks.py)."""
    opened = {} if checked is None else {i.name.lower(): i.source for i in checked.inputs}

    def open_(declaration: Declaration, seed: int) -> Source:
        if is_native(declaration, follow):
            known = opened.get(declaration.name.lower())
            return open_source(declaration, seed, follow) if known is None else known
        is_table = declaration.kind == "TABLE"
        reader = (spark.read if is_table else spark.readStream).format(declaration.format)
        try:
            if declaration.columns is not None:
                reader = reader.schema(from_arrow_schema(pa.schema([pa.field(n, t) for n, t in declaration.columns])))
            frame = reader.options(**declaration.options).load()
        except (PySparkException, Py4JError) as error:
            why = _unknown(declaration.format, error) or f": {first_line(error)}"
            raise SettingError(f"Spark cannot read '{declaration.format}'{why}", "format") from None
        return FrameSource(frame, declaration.format in ENDLESS and not follow)

    return open_
