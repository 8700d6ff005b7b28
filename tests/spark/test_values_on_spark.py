"""The conformance table of values through a table that Spark's tasks read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.values.test_conformance import CASES, compare
from tests.support import ways


@pytest.mark.long
def test_a_table_gives_what_the_law_says(spark: SparkSession, tmp_path: Path) -> None:
    """A job of Spark for each case: a few cases."""
    cases = [case for case in CASES if case[0] != "text"][::20]
    compare("spark table", ways.of_file("parquet", ways.write_parquet, tmp_path, table=True, engine="spark"), cases)
