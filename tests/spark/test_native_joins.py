"""Spark's own joins as benchmarks run them give DuckDB's rows."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lab.peers.native_joins import OwnJoin, files_of, run

START = np.datetime64("2026-01-01T00:00:00", "us")


def test_three_streams_within_a_window(spark: SparkSession, tmp_path: Path) -> None:
    rng, names = np.random.default_rng(7), ("a", "b", "c")
    for name in names:
        (tmp_path / name).mkdir()
        for part in range(3):
            times = START + (part * 10_000_000 + np.sort(rng.integers(0, 10_000_000, 200))).astype("timedelta64[us]")
            rows = pa.table({"ts": times, "k": rng.integers(0, 40, 200), "v": np.arange(200) + 200 * part})
            file = tmp_path / name / f"{part}.parquet"
            pq.write_table(rows, file)
            os.utime(file, (1_700_000_000 + part, 1_700_000_000 + part))  # Spark reads the oldest first
    join = OwnJoin(files_of(str(tmp_path)), "a", [("b", "k", "a"), ("c", "k", "a")], window=2)
    seconds, rows_read = run(spark, join, str(tmp_path / "out"), 1)
    assert seconds > 0 and rows_read > 0
    tables = ", ".join(f"'{tmp_path}/{name}/*.parquet' AS {name}" for name in names)
    expected = duckdb.sql(f"""
        SELECT a.v, b.v, c.v FROM {tables} WHERE a.k = b.k AND b.k = c.k
        AND greatest(a.ts, b.ts, c.ts) - least(a.ts, b.ts, c.ts) <= INTERVAL 2 SECOND""").fetchall()
    found = duckdb.sql(f"SELECT a_v, b_v, c_v FROM '{tmp_path}/out/*.parquet'").fetchall()
    assert sorted(found) == sorted(expected) and len(expected) > 100
