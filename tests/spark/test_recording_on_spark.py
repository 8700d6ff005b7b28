"""A record of a run on Spark: decisions of slots and of the driver, samples by slot, and the end."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from eddyline.runtime.recording.files import read
from eddyline.runtime.recording.recorded import recorder_of, run_recorded
from eddyline.runtime.running.job import prepare
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping
from eddyline.spark.runner import SparkRunner
from tests.runtime.recording.test_recorder import SCRIPT, Ticking


def test_a_run_on_spark_is_recorded(spark: SparkSession, tmp_path: Path) -> None:
    settings = from_mapping({"slots": 2, "batch_rows": 1500, "prefer": "a.v > 0", "at_end": "flush"})
    job = prepare(SCRIPT, sink=CallbackSink(lambda rows: None), out=io.StringIO())
    runner = SparkRunner(job, settings, spark)
    recorder = recorder_of(runner, SCRIPT, settings, "spark", tmp_path / "r", clock=Ticking())
    summary = run_recorded(runner, recorder, lambda: False, lambda progress: None)
    run, *events, end = read(tmp_path / "r")
    assert run["engine"] == "spark" and run["slots"] == 2 and end["status"] == "done"
    assert end["summary"]["rows_in"] == 6000 == summary.rows_in
    decided = [event for event in events if event["type"] == "decision"]
    assert Counter(d["kind"].replace("route", "reroute") for d in decided) == summary.decisions
    assert {d["slot"] for d in decided if d["kind"] == "preference"} == {0, 1}
    samples = [event for event in events if event["type"] == "sample"]
    assert len(samples) >= 4 and [event["t"] for event in events] == sorted(event["t"] for event in events)
    assert {slot["slot"] for sample in samples for slot in sample["slots"]} == {0, 1}
    assert sum(route["rows"] for sample in samples for route in sample["routes"]) == 6000
