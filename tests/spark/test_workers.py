"""A session whose Python workers cannot work for us is refused in a line, before a job begins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import eddyline as el
from eddyline.errors import SettingError
from eddyline.spark.failures import told_by_spark


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("exit 1", "cannot be run"),
        (f"echo {sys.version_info[0]} {sys.version_info[1]} False", "cannot import eddyline"),
        ("echo 3 9 True", "is Python 3.9"),
    ],
)
def test_another_python(
    says: str, why: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\n{says}\n")
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    frame = spark.readStream.format("rate").load()
    with pytest.raises(SettingError, match=f"run {python}, which {why}; .* PYSPARK_PYTHON={sys.executable}"):
        el.query("SELECT value FROM s", {"s": el.stream(frame, time="timestamp")}).start(sink=id)


def test_workers_elsewhere() -> None:
    said = "Traceback (most recent call last):\n  File\nModuleNotFoundError: No module named 'eddyline'\n"
    told = told_by_spark(PySparkException(said))
    assert isinstance(told, SettingError)
    assert "PYSPARK_PYTHON" in str(told)
