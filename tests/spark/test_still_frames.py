"""DataFrames that are not streaming, as streams: on Spark and on the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import eddyline as el
from eddyline.api import Run
from eddyline.errors import JobError, SettingError

SQL = 'SELECT k, "a.b", "it`s" FROM s WHERE k % 500 = 0'


def _shuffled(spark: SparkSession, rows: int = 2000) -> DataFrame:
    time = f"timestamp_seconds(pmod(id * 7919, {rows})) AS ts"
    return spark.range(0, rows, 1, 3).selectExpr(time, "id AS k", "id * 2 AS `a.b`", "id AS `it``s`", "id * 1000 AS ms")


def _start(frame: DataFrame, time: str = "ts", **more: Any) -> Run:
    settings = {"slots": 1, "batch_rows": 500}
    return el.query(SQL, {"s": el.stream(frame, time=time)}).start(**{"settings": settings, **more})


def _rows(run: Run) -> list[tuple[Any, ...]]:
    summary = run.wait(300)
    assert summary is not None and summary.rows_late == summary.rows_dead == 0
    return [tuple(row.values()) for row in run.to_arrow().to_pylist()]


def test_rows_come_in_the_order_of_time(spark: SparkSession) -> None:
    """Of a column, or of an expression over columns; the local engine brings the rows here."""
    frame = _shuffled(spark)
    expected = sorted((k, 2 * k, k) for k in range(0, 2000, 500))
    run = _start(frame)
    assert sorted(_rows(run)) == expected and run.progress().rows_in == 2000
    assert _rows(_start(frame, time="epoch_ms(ms)")) == expected
    assert sorted(_rows(_start(frame, engine="local"))) == expected
    assert _rows(_start(frame.where("k < 0"))) == []
    going = spark.readStream.format("rate").load()
    with pytest.raises(SettingError, match="s is a streaming DataFrame of Spark, which engine='local' does not read"):
        el.query("SELECT value FROM s", {"s": el.stream(going, time="timestamp")}).start(engine="local")


def test_a_job_that_continues(spark: SparkSession, tmp_path: Path) -> None:
    """It has read all rows; other rows are refused, because nothing tells which of them are new."""
    frame = _shuffled(spark, 1000)
    assert len(_rows(_start(frame, checkpoint=tmp_path))) == 2
    assert _rows(_start(frame, checkpoint=tmp_path)) == []
    with pytest.raises(JobError, match=r"s has 999 rows, and had 1,000 when the job began; .* spark\.readStream"):
        _start(frame.where("k > 0"), checkpoint=tmp_path).wait()
    with pytest.raises(
        SettingError, match="s is a DataFrame that is not streaming, so the checkpoint must be a folder"
    ):
        _start(frame, checkpoint="s3a://x/y")
