"""Results as DataFrames of Spark: the same from both engines, and in `foreach_batch`."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

import eddyline as el

NOON = datetime(2026, 1, 1, 12)
SQL = "SELECT *, ts - TIMESTAMP '2026-01-01 11:00:00' AS lasted, INTERVAL '1' MONTH AS month FROM s"


def _odd() -> pa.Table:
    return pa.table(
        {
            "ts": pa.array([NOON], pa.timestamp("ns")),
            "u": pa.array([1 << 63], pa.uint64()),
            "c": pd.Categorical([7]),
            "text": pa.array(["x"]).dictionary_encode(),
            "tags": pa.array([[1]], pa.list_(pa.uint8())),
            "t": [time(1)],
            "a.b": pa.array([1], pa.int16()),
            "it`s": pa.array([(14, 1, 0)], pa.month_day_nano_interval()),
        }
    )


def test_odd_types(spark: SparkSession) -> None:
    expected = Row("ts", "u", "c", "text", "tags", "t", "a.b", "it`s", "lasted", "month")(
        *(NOON, Decimal(1 << 63), 7, "x", [1], time(1), 1, "1 year 2 months 1 day", timedelta(hours=1), "1 month")
    )
    query = el.query(SQL, {"s": el.stream(_odd(), time="ts")})
    frames = [query.start(engine=engine, settings={"slots": 1}).to_spark() for engine in ("local", "spark")]
    assert [frame.collect() for frame in frames] == [[expected]] * 2 and frames[0].schema == frames[1].schema
    given: list[Any] = []

    def each(frame: DataFrame, batch: int) -> None:
        given.extend([frame.schema, frame.collect()])

    query.start(engine="spark", settings={"slots": 1}, foreach_batch=each).wait()
    assert given == [frames[0].schema, [expected]]
    assert frames[0].schema["lasted"].dataType.simpleString() == "interval day to second"


def test_arrow_is_the_same_from_both_engines(spark: SparkSession) -> None:
    query = el.query(SQL, {"s": el.stream(_odd(), time="ts")})
    local, on_spark = (query.start(engine=engine, settings={"slots": 1}).to_arrow() for engine in ("local", "spark"))
    assert local == on_spark and local.num_rows == 1
    assert local["it`s"].to_pylist() == [pa.MonthDayNano([14, 1, 0])]
