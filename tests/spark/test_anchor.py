"""Rows that are united with an anchor: Spark is told where their turns should run, and the rows stay the same."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from eddyline.spark.anchor import Anchor
from eddyline.spark.placement import ExecutorPlace

SLOTS = 3
PLACES = [ExecutorPlace(str(number), "nowhere", 1) for number in range(SLOTS)]


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    """Five parcels, in the partitions of their slots."""
    parcels = [(0, b"a"), (2, b"b"), (2, b"c"), (0, b"d"), (2, b"e")]
    return spark.createDataFrame(parcels, "slot int, blob binary").repartitionById(SLOTS, "slot")


def _found(frame: DataFrame) -> list[tuple[int, int | None, bytes | None]]:
    """The partition, slot and parcel of each row."""
    found = frame.select(spark_partition_id().alias("at"), "slot", "blob").collect()
    return sorted((row.at, row.slot, row.blob and bytes(row.blob)) for row in found if row.blob is not None)


def _preferred(spark: SparkSession, frame: DataFrame) -> list[str]:
    context: Any = spark.sparkContext._jsc.sc()
    rdd: Any = frame._jdf.queryExecution().toRdd()
    return [context.getPreferredLocs(rdd, number).mkString(" ") for number in range(rdd.getNumPartitions())]


def test_every_slot_has_its_executor_and_its_rows(spark: SparkSession, rows: DataFrame) -> None:
    anchor = Anchor(spark)
    anchor.collection = anchor.make(PLACES)
    held = anchor.hold(rows, SLOTS)
    assert _found(held) == _found(rows) and held.schema == rows.schema
    assert held.count() == rows.count() + SLOTS, "a row without a parcel for each slot"
    assert _preferred(spark, held) == [f"executor_nowhere_{number}" for number in range(SLOTS)]


def test_without_executors_nothing_is_told(spark: SparkSession, rows: DataFrame) -> None:
    assert Anchor(spark).hold(rows, SLOTS) is rows


def test_a_spark_that_cannot_be_told(spark: SparkSession, rows: DataFrame, caplog: pytest.LogCaptureFixture) -> None:
    """Turns then run anywhere, and a warning is said once."""
    anchor = Anchor(spark, union="org.apache.spark.rdd.NoSuchUnion")
    anchor.collection = anchor.make(PLACES)
    with caplog.at_level(logging.WARNING):
        assert anchor.hold(rows, SLOTS) is rows and anchor.hold(rows, SLOTS) is rows
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "Spark cannot be told where slots are, so they may run anywhere"
    ]
