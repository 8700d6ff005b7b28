"""Spark's home: links to the installation, without the archives that slow every Python process down."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.spark.spark_home import spark_home


def test_links_without_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = spark_home()
    assert home is not None and home.startswith(str(tmp_path)) and home == spark_home()
    assert list(Path(home, "jars").glob("spark-core*.jar")) and Path(home, "bin", "spark-submit").exists()
    assert not Path(home, "python").exists()


def test_a_home_that_is_named_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", "/somewhere")
    assert spark_home() is None and list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_spark_starts_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert spark_home() is None
