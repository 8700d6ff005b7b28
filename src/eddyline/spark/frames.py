"""Streams and tables that Spark reads: any format it knows, and DataFrames that a program hands over.

Their rows come through the JVM to a split of their own, which is the same as that of files (spark/tasks.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from eddyline.cql.declarations import Declaration
from eddyline.errors import InternalError, SettingError
from eddyline.runtime.formats import open_source
from eddyline.runtime.job import Opener
from eddyline.runtime.sources.source import Chunk, Source, Wanted
from eddyline.spark.source import NATIVE

ENDLESS = ("rate", "rate-micro-batch", "socket")
"""Formats that never end by themselves."""


class FrameSource:
    """A DataFrame as a source: its columns are known here, its rows are read by Spark."""

    def __init__(self, frame: DataFrame, endless: bool = False) -> None:
        self.frame, self.endless = frame, endless
        self.schema: pa.Schema = to_arrow_schema(frame.schema)

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        raise InternalError("rows of a DataFrame are read by Spark")


def opener(spark: SparkSession, follow: bool) -> Opener:
    """How sources are opened on Spark: files by our own readers, all else by Spark."""

    def open_(declaration: Declaration, seed: int) -> Source:
        if declaration.format in NATIVE and not (declaration.format == "generate" and follow):
            return open_source(declaration, seed)
        is_table = declaration.kind == "TABLE"
        reader = (spark.read if is_table else spark.readStream).format(declaration.format)
        if declaration.columns is not None:
            reader = reader.schema(from_arrow_schema(pa.schema([pa.field(n, t) for n, t in declaration.columns])))
        try:
            frame = reader.options(**declaration.options).load()
        except PySparkException as error:
            raise SettingError(f"Spark cannot read '{declaration.format}': {str(error).splitlines()[0]}") from None
        return FrameSource(frame, declaration.format in ENDLESS and not follow)

    return open_
