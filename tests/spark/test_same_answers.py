"""A share of `./run fuzz --spark`: random queries on Spark with 1, 2 and 3 slots, on the local engine, by DuckDB."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lab.fuzz.spark_cases import Everywhere

SEED = 11


@pytest.mark.parametrize("cases", [range(4), range(4, 10)])
def test_the_same_rows_everywhere(cases: range, spark: SparkSession) -> None:
    report = Everywhere(SEED, spark).run(cases, len(cases))
    assert report.differences == []
    assert report.cases == len(cases) and report.jobs == 3 * len(cases) and report.rows > 0
