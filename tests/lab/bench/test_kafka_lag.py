"""`bench kafka-lag`: what is made of samples, and that the writer's rows have exactly one partner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import Settings
from lab.bench import kafka_lag
from lab.bench.kafka import JOIN, PARTITIONS, script
from lab.bench.kafka_lag import Sample
from lab.servers.kafka_broker import KafkaBroker


def test_every_row_has_one_partner(kafka: KafkaBroker, tmp_path: Path) -> None:
    for topic in JOIN.columns:
        kafka.create(topic, PARTITIONS)
    command = [sys.executable, "-m", "lab.bench.kafka_load", kafka.servers, "3000", "0.5"]
    done = subprocess.run(command, input="3000\n", capture_output=True, text=True, check=True)
    filled, written = done.stdout.split()
    assert filled == "filled" and int(written) >= 1500
    summary = LocalRunner(prepare(script(kafka.servers, str(tmp_path))), Settings()).run()
    assert (summary.rows_in, summary.rows_late) == (int(written), 0) and summary.rows_out * 3 == int(written)


@pytest.mark.parametrize(("read", "grown"), [(0.8, True), (1.0, False)])
def test_a_job_that_falls_behind_misses_the_bar(read: float, grown: bool) -> None:
    """100 rows a second, then 500 for ten seconds, of which the job reads 200 a second; or it is too slow before."""
    samples, written, done = [], 0.0, 0.0
    for second in range(460):
        phase = "steady" if second < 400 else "burst" if second < 410 else "after"
        written += 500 if phase == "burst" else 100
        done = min(written, done + (100 * read if phase == "steady" else 200))
        samples.append(Sample(second, phase, int(written), int(done), 1.0, 50.0))
    results = {result.metric: result for result in kafka_lag._results("spark", 100.0, samples)}
    assert results["largest lag"].ok is not grown and results["smallest lag in the last quarter"].ok is not grown
    assert results["memory, last quarter / first"].ok and results["burst worked off after"].ok
    if not grown:
        assert results["burst worked off after"].value == 29.0
        assert results["largest lag after the burst"].value == 30.0
