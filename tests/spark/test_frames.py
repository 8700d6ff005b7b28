"""DataFrames as streams, tables and results, and what is refused of them."""

from __future__ import annotations

import io
import shutil
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

import eddyline as el
from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.runtime.running.job import prepare
from eddyline.spark.checks import check
from eddyline.spark.frames import opener, sink_opener
from eddyline.spark.listener import Listener


def _streaming(spark: SparkSession, folder: Path) -> DataFrame:
    rows = "timestamp_seconds(id) AS ts, id AS k"
    spark.range(0, 4, 1, 1).selectExpr(*rows.split(", ")).write.mode("overwrite").parquet(str(folder))
    return spark.readStream.schema("ts timestamp, k bigint").parquet(str(folder))


def test_what_is_a_stream_and_what_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    going = _streaming(spark, tmp_path / "a")
    with pytest.raises(SettingError, match="t needs a DataFrame that is not streaming"):
        streams = {"s": el.stream(going, time="ts")}
        el.query("SELECT s.k FROM s, t WHERE s.k = t.k", streams, {"t": going}).start(sink=id)
    with pytest.raises(SettingError, match="at_end=keep needs checkpoint="):
        el.query("SELECT k FROM s", {"s": el.stream(going, time="ts")}).start(sink=id, settings={"at_end": "keep"})


def test_a_source_that_was_checked_is_not_opened_again(tmp_path: Path) -> None:
    """Also without a session: we read the file ourselves."""
    (tmp_path / "s.csv").write_text("ts,k\n2026-01-01 00:00:00,1\n")
    text = f"CREATE STREAM s USING csv OPTIONS (path '{tmp_path}/s.csv') TIMESTAMP BY ts; SELECT k FROM s"
    checked, _ = check(text, 0, {}, follow=False)
    assert checked is not None
    (tmp_path / "s.csv").unlink()  # to open it would fail
    job = prepare(text, opener=opener(cast(SparkSession, None), False, checked))
    assert job.inputs[0].source is checked.inputs[0].source


def test_what_foreach_batch_raises(spark: SparkSession, tmp_path: Path) -> None:
    def fails(frame: DataFrame, batch: int) -> None:
        raise ValueError("no more room")

    query = el.query("SELECT k FROM s", {"s": el.stream(_streaming(spark, tmp_path / "a"), time="ts")})
    with pytest.raises(JobError, match="foreach_batch raised ValueError: no more room"):
        query.start(foreach_batch=fails, settings={"slots": 1}).wait()


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("s (k BIGINT) USING kafak", "Spark cannot read 'kafak'; did you mean 'kafka'"),
        ("s (k UINTEGER) USING orc", "'orc': .*uint32"),
    ],
)
def test_what_spark_cannot_read(source: str, answer: str, spark: SparkSession) -> None:
    text = f"CREATE STREAM {source} OPTIONS (path 'x') TIMESTAMP BY k; SELECT k FROM s"
    with pytest.raises(ScriptError, match=answer):
        prepare(text, out=io.StringIO(), opener=opener(spark, False))


@pytest.mark.parametrize(
    ("format_", "answer"), [("kafak", "cannot write 'kafak'; did you mean 'kafka'"), ("com.nobody.x", "com.nobody.x")]
)
def test_a_sink_that_spark_does_not_know_is_refused_before_the_first_row(
    format_: str, answer: str, spark: SparkSession
) -> None:
    text = f"CREATE SINK out USING `{format_}`; CREATE STREAM g (ts TIMESTAMP) USING generate OPTIONS (rows 5)"
    with pytest.raises(ScriptError, match=answer):
        prepare(f"{text} TIMESTAMP BY ts; INSERT INTO out SELECT ts FROM g", sink_opener=sink_opener(spark))


def test_listeners_look_at_their_own_query(spark: SparkSession, tmp_path: Path) -> None:
    """Other queries of the session do not change the metrics of a run."""
    other, ours = Listener("other"), Listener("ours")
    spark.streams.addListener(other)  # it is told first
    spark.streams.addListener(ours)
    try:
        query = _streaming(spark, tmp_path / "a").writeStream.format("noop").queryName("ours")
        query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
        deadline = time.monotonic() + 300
        while not ours.seconds and time.monotonic() < deadline:
            time.sleep(0.02)
        assert ours.seconds and not other.seconds
    finally:
        spark.streams.removeListener(other)
        spark.streams.removeListener(ours)


def test_a_function_that_is_defined_anew(spark: SparkSession, tmp_path: Path) -> None:
    found: list[list[Any]] = []
    for times in (10, 1000):

        @el.udf(returns="BIGINT")
        def defined_anew(k: NDArray[np.int64], times: int = times) -> NDArray[np.int64]:
            return k * times

        rows: list[int] = []
        streams = {"s": el.stream(_streaming(spark, tmp_path / "a"), time="ts")}
        el.query("SELECT defined_anew(k) AS x FROM s", streams).start(
            lambda batch, rows=rows: rows.extend(batch["x"].to_pylist()), checkpoint=str(tmp_path / "c")
        ).wait()
        shutil.rmtree(tmp_path / "c")
        found.append(sorted(rows))
    assert found == [[0, 10, 20, 30], [0, 1000, 2000, 3000]]


def test_foreach_batch_can_stop_the_run(spark: SparkSession, tmp_path: Path) -> None:
    """It holds the batch that a stop from outside waits for."""
    started, batches = threading.Event(), list[int]()

    def enough(frame: DataFrame, batch: int) -> None:
        assert started.wait(300)
        batches.append(batch)
        run.stop()

    _streaming(spark, tmp_path / "a")
    _streaming(spark, tmp_path / "b")
    frame = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/*")
    run = el.query("SELECT k FROM s", {"s": el.stream(frame, time="ts")}).start(
        foreach_batch=enough, settings={"slots": 1}, follow=True
    )
    started.set()
    summary = run.wait(120)
    assert summary is not None and summary.stopped and len(batches) == 1


def test_times_are_computed_from_columns(spark: SparkSession, tmp_path: Path) -> None:
    """On Spark too: of a DataFrame, and of files that are read here."""
    (tmp_path / "b.csv").write_text("day,k\n01.01.1970 00:00:01,1\n01.01.1970 00:00:09,2\nnever,3\n")
    sql = f"""CREATE STREAM b (day VARCHAR, k BIGINT) USING csv OPTIONS (path '{tmp_path / "b.csv"}')
        TIMESTAMP BY strptime(day, '%d.%m.%Y %H:%M:%S') AS at;
        SELECT a.k, b.at FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k"""
    frame = _streaming(spark, tmp_path / "a").selectExpr("k * 1000 AS ms", "k")
    rows: list[Any] = []
    run = el.query(sql, {"a": el.stream(frame, time="epoch_ms(ms)", lateness="9 s")}).start(
        sink=lambda batch: rows.extend(batch.to_pylist()), settings={"slots": 2}
    )
    summary = run.wait()
    assert rows == [{"k": 1, "at": datetime(1970, 1, 1, 0, 0, 1)}]
    assert summary is not None and (summary.rows_in, summary.rows_dead) == (7, 1)
