"""The same join by Spark's own stream-stream joins, for the comparison in benchmarks.

Spark allows one event-time column after a join. So before the next join, the times of all streams but the last become
numbers, with the window as a condition on them: the results and the kept state are the same.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from eddyline.spark.failures import told_by_spark

ReadStream = Callable[[SparkSession, str, int], DataFrame]
"""A stream by its name, and how much of it a batch takes: files, or whatever its source counts."""


@dataclass(frozen=True)
class OwnJoin:
    """Streams with a time `ts`, joined one after the other: (stream, its key, key of which stream before it), within a
    window in seconds. `files_of` are streams of files."""

    read: ReadStream
    first: str
    joined: Sequence[tuple[str, str, str]]
    window: int
    payload: str = "v"


def files_of(folder: str, format_: str = "parquet") -> ReadStream:
    """Streams of files, each in a folder of its name."""

    def read(spark: SparkSession, name: str, files: int) -> DataFrame:
        path = f"{folder}/{name}"
        schema = spark.read.format(format_).load(path).schema
        return spark.readStream.format(format_).schema(schema).option("maxFilesPerTrigger", files).load(path)

    return read


def topics_of(servers: str, topics: Mapping[str, tuple[str, str]]) -> ReadStream:
    """Streams of JSON messages, by Spark's own Kafka connector: the topic and the columns of each."""

    def read(spark: SparkSession, name: str, messages: int) -> DataFrame:
        topic, columns = topics[name]
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
        frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=messages).load()
        return frame.select(F.from_json(F.col("value").cast("string"), columns).alias("row")).select("row.*")

    return read


def run(spark: SparkSession, join: OwnJoin, out: str, each_batch: int) -> tuple[float, int]:
    """Run the join over all rows; returns the seconds after the warm-up batches, and the rows read in them."""
    checkpoint = tempfile.mkdtemp(prefix="eddyline-own-joins-")
    spark.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)  # the default is 200
    try:
        query = (
            _frame(spark, join, each_batch)
            .writeStream.format("parquet")
            .option("path", out)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"]]
        warm = progress[1:] if len(progress) > 2 else progress
        return sum(p["batchDuration"] for p in warm) / 1000, sum(p["numInputRows"] for p in warm)
    except (PySparkException, Py4JError, OSError) as error:
        raise told_by_spark(error) from error
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)


def _frame(spark: SparkSession, join: OwnJoin, each_batch: int) -> DataFrame:
    def stream(name: str) -> DataFrame:
        frame = join.read(spark, name, each_batch)
        frame = frame.withColumn("ts", F.col("ts").cast("timestamp")).withWatermark("ts", "0 seconds")
        return frame.select([F.col(column).alias(f"{name}_{column}") for column in frame.columns])

    result, last = stream(join.first), join.first
    names = [join.first]
    for name, key, partner in join.joined:
        other = stream(name)
        near = F.expr(
            f"{name}_ts >= {last}_ts - interval {join.window} seconds and "
            f"{name}_ts <= {last}_ts + interval {join.window} seconds"
        )
        within = [F.abs(F.col(f"{name}_ts").cast("double") - F.col(f"{n}_time")) <= join.window for n in names[:-1]]
        condition = (F.col(f"{partner}_{key}") == F.col(f"{name}_{key}")) & near
        for more in within:
            condition = condition & more
        result = result.join(other, condition)
        result = result.withColumn(f"{last}_time", F.col(f"{last}_ts").cast("double")).drop(f"{last}_ts")
        names.append(name)
        last = name
    return result.select([F.col(f"{name}_{join.payload}") for name in names])
