"""The examples with Spark, on the session of the tests."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def as_it_was(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Examples create, configure and stop a session. Here they get the existing one, which must be unchanged
    afterwards."""
    monkeypatch.setattr(SparkSession, "stop", lambda session: None)
    monkeypatch.chdir(ROOT)
    yield
    spark.conf.unset("spark.sql.shuffle.partitions")
    spark.sparkContext.setLogLevel("OFF")


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize(
    ("example", "last"),
    [("spark_streams.py", "| eve|   33|\n+----+-----+\n\n"), ("spark_session.py", "the session goes on: 3\n")],
)
def test_examples(example: str, last: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(f"examples/{example}")
    printed = capsys.readouterr().out
    assert printed.endswith(last) and "found some: False" not in printed
