"""CI's share of `./run fuzz --spark`: random queries on Spark with 1, 2 and 3 slots, on the local engine, by DuckDB."""

from __future__ import annotations

from pyspark.sql import SparkSession

from eddyline.testing.spark_cases import Everywhere

CASES, SEED = 25, 11


def test_the_same_rows_everywhere(spark: SparkSession) -> None:
    report = Everywhere(SEED, spark).run(range(10 * CASES), CASES)
    assert report.differences == []
    assert report.cases == CASES and report.jobs == 3 * CASES and report.rows > 0
