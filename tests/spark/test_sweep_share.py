"""The progress of sweeps, from tasks to the driver."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping
from eddyline.spark.runner import SparkRunner
from eddyline.spark.sweep_share import looking, telling


def _wait(until: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 300
    while not until():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_shares_of_slots_are_added_up(tmp_path: Path) -> None:
    seen: list[float] = []
    telling(str(tmp_path), 0)(1.0)  # of an earlier sweep
    with looking(str(tmp_path), 2, seen.append):
        _wait(lambda: bool(seen))
        first, other = telling(str(tmp_path), 0), telling(str(tmp_path), 1)
        first(0.5)
        first(0.25)
        other(0.25)
        _wait(lambda: seen[-1] == 0.5)
        telling(str(tmp_path), 0)(0.1)  # another attempt
        _wait(lambda: seen[-1] == pytest.approx(0.175))
    assert seen[0] == 0.0
    count = len(seen)
    time.sleep(0.5)
    assert len(seen) == count, "nobody is called after the end"


def test_a_folder_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    seen: list[float] = []
    with looking(str(tmp_path / "gone"), 1, seen.append):
        telling(str(tmp_path / "gone"), 0)(0.5)
        _wait(lambda: bool(seen))
    assert set(seen) == {0.0}


def test_the_clean_up_at_the_end_of_a_job(
    spark: SparkSession, files: Callable[..., str], table: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eddyline.spark.sweep_share._EVERY", 0.001)
    parts = [table("k v", *[(i, i % 37, i) for i in range(n, n + 100)]) for n in range(0, 600, 100)]
    text = f"CREATE STREAM {files('a', *parts)}; SELECT x.v FROM a [RANGE 900 SECONDS] AS x, a AS y WHERE x.k = y.k"
    looks: list[Progress] = []
    settings = from_mapping({"slots": 2, "batch_rows": 100, "memory": "5KB"})
    SparkRunner(prepare(text, sink=CallbackSink(id)), settings, spark).run(watch=looks.append)
    told = [(look.swept, look.sweep_seconds) for look in looks if look.to_sweep]
    assert told[0][0] == 0 and 0 < told[-1][0] <= looks[-2].to_sweep
    assert told == sorted(told)
