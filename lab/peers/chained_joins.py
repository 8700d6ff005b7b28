"""Streams of parquet files joined one after the other by Spark's own stream-stream joins, for `bench peers`.

As in own_joins.py the times of all streams but the last become numbers before the next join, because Spark allows one
event-time column there. Here keys may have different names in two streams, and rows are filtered before the joins.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


@dataclass(frozen=True)
class ChainedJoins:
    """Streams in folders of `folder`. `joins` are (stream, its key, a stream before it, that one's key); columns in
    `conditions` and in `outputs` are written STREAM_COLUMN; `window` is in seconds."""

    folder: str
    first: str
    joins: Sequence[tuple[str, str, str, str]]
    window: int
    filters: Mapping[str, str]
    conditions: Sequence[str]
    outputs: Sequence[str]


def run(
    spark: SparkSession, join: ChainedJoins, out: str, files: int, watch: Callable[[int], None]
) -> tuple[float, int]:
    """Run the join, with so many files of each stream a batch; returns the seconds and the rows of the batches after
    the first. `watch` is told how many rows were read."""
    checkpoint = tempfile.mkdtemp(prefix="eddyline-chained-joins-")
    spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)  # the default is 200
    try:
        writer = _frame(spark, join, files).writeStream.format("parquet").option("path", out)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        while not query.awaitTermination(1):
            watch(sum(p["numInputRows"] for p in query.recentProgress))
        progress = [p for p in query.recentProgress if p["numInputRows"]]
        warm = progress[1:] if len(progress) > 1 else progress
        return sum(p["batchDuration"] for p in warm) / 1000, sum(p["numInputRows"] for p in warm)
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def _frame(spark: SparkSession, join: ChainedJoins, files: int) -> DataFrame:
    def stream(name: str) -> DataFrame:
        path = f"{join.folder}/{name}"
        reader = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", files)
        frame = reader.parquet(path)
        if name in join.filters:
            frame = frame.where(join.filters[name])
        frame = frame.withColumn("ts", F.col("ts").cast("timestamp")).withWatermark("ts", "0 seconds")
        return frame.select([F.col(column).alias(f"{name}_{column}") for column in frame.columns])

    result, names = stream(join.first), [join.first]
    for name, key, partner, partner_key in join.joins:
        last = names[-1]
        near = F.expr(
            f"{name}_ts >= {last}_ts - interval {join.window} seconds and "
            f"{name}_ts <= {last}_ts + interval {join.window} seconds"
        )
        condition = (F.col(f"{partner}_{partner_key}") == F.col(f"{name}_{key}")) & near
        for other in names[:-1]:
            condition &= F.abs(F.col(f"{name}_ts").cast("double") - F.col(f"{other}_time")) <= join.window
        result = result.join(stream(name), condition)
        result = result.withColumn(f"{last}_time", F.col(f"{last}_ts").cast("double")).drop(f"{last}_ts")
        names.append(name)
    for text in join.conditions:
        result = result.where(text)
    return result.select(list(join.outputs))
