"""Rows of Python on Spark: Arrow and pandas as streams and tables, beside DataFrames, and after a restart."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eddyline as el
from eddyline.api import Query, Run
from eddyline.errors import JobError, ScriptError, SettingError
from tests.api.test_streams import Exported

Table = Callable[..., pa.Table]
SMALL = {"slots": 1}


def _rows(run: Run) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in run.to_arrow().to_pylist())


@pytest.mark.gate
def test_arrow_and_pandas_beside_dataframes(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """A DataFrame, an Arrow stream, and tables of pandas and of Arrow's interface give what all of it gives locally."""
    clicks = table("k", *((second, second % 3) for second in range(12)))
    views = table("k", *((second, second % 2) for second in range(12)))
    names = pa.table({"id": pa.array([0, 1], pa.uint16()), "price": [Decimal("1.50"), None]})
    titles = pa.table({"title": ["zero", "one"], "t": pa.array([0, 1], pa.int8()), "kind": ["odd", "even"]})
    sql = """SELECT c.ts, v.ts AS seen, price, title, kind FROM clicks [RANGE 2 SECONDS] c,
             views [RANGE 3 SECONDS] v, names, titles
             WHERE c.k = v.k AND c.k = id AND v.k = t"""
    spark.createDataFrame(clicks.to_pandas()).write.parquet(str(tmp_path / "clicks"))
    frame = spark.readStream.schema("ts timestamp_ntz, k bigint").parquet(str(tmp_path / "clicks"))
    tables = {"names": names, "titles": Exported(titles)}
    local = el.query(sql, {"clicks": el.stream(clicks, "ts"), "views": el.stream(views, "ts")}, tables).start()
    query = el.query(sql, {"clicks": el.stream(frame, "ts"), "views": el.stream(views.to_pandas(), "ts")}, tables)
    run = query.start(settings={"slots": 2})
    assert _rows(run) == _rows(local) != []
    assert run.to_arrow().schema == local.to_arrow().schema
    assert sum(batch.num_rows for batch in run) == len(_rows(local)) and repr(run).startswith("<Run done")


def test_no_rows_and_unreadable_rows(spark: SparkSession, table: Table) -> None:
    """An empty result has its columns; rows that do not fit the schema are dead, as they are locally."""
    texts = pa.table({"ts": table("k", (1, 1), (2, 2))["ts"], "k": ["1", "many"]})
    schema = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int32())])
    query = el.query("SELECT k FROM s WHERE k > 10", {"s": el.stream(texts, "ts", schema=schema)})
    for engine in ("local", "spark"):
        run = query.start(engine=engine, settings=SMALL)
        summary = run.wait(300)
        assert summary is not None and (summary.rows_in, summary.rows_dead, summary.rows_out) == (2, 1, 0)
        assert run.to_arrow() == pa.table({"k": pa.array([], pa.int32())})


def test_going_on(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """Rows that were read are not read again, rows behind them are; the table is that of the first run."""
    data = table("k", *((second, second) for second in range(4)))

    def query(rows: int, name: str) -> Query:
        names = pa.table({"id": range(4), "name": [name] * 4})
        return el.query(
            "SELECT k, name FROM s, t WHERE k = id", {"s": el.stream(data.slice(0, rows), "ts")}, {"t": names}
        )

    def start(rows: int, name: str) -> Run:
        return query(rows, name).start(engine="spark", checkpoint=tmp_path, settings={**SMALL, "at_end": "keep"})

    assert _rows(start(2, "old")) == [(0, "old"), (1, "old")]
    assert _rows(start(2, "new")) == []
    assert _rows(start(4, "new")) == [(2, "old"), (3, "old")]
    with pytest.raises(JobError, match="s has fewer rows than the job has already read"):
        start(3, "new").wait()


def test_rows_that_may_never_end(spark: SparkSession, table: Table) -> None:
    data = table("k", (1, 1))
    query = el.query("SELECT k FROM s", {"s": el.stream((b for b in data.to_batches()), "ts")})
    with pytest.raises(
        SettingError, match="s is a generator, which may never end; on Spark, rows of Python are a pyarrow"
    ):
        query.start(engine="spark")
    with pytest.raises(SettingError, match="the checkpoint must be a folder that is mounted, not s3a://x/y"):
        el.query("SELECT k FROM s", {"s": el.stream(data, "ts")}).start(engine="spark", checkpoint="s3a://x/y")


def test_a_script(spark: SparkSession) -> None:
    script = """CREATE STREAM g (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 5) TIMESTAMP BY ts;
                SELECT COUNT(*) AS n FROM g"""
    assert el.query(script).start(engine="spark", settings=SMALL).to_arrow().to_pylist() == [{"n": 5}]


def test_mistakes_are_told_before_spark_is_started(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(conf: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("eddyline.spark.start.session", started)
    streams = {"s": el.stream(table("k", (1, 1)), "ts")}
    with pytest.raises(ScriptError, match="there is no column 'z'"):
        el.query("SELECT z FROM s", streams).start(engine="spark")
    with pytest.raises(AssertionError):
        el.query("SELECT k FROM s", streams).start(engine="spark")
