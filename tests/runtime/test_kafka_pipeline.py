"""The example from Kafka into a Delta table, with the broker of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lab.servers.kafka_broker import KafkaBroker

ROOT = Path(__file__).parent.parent.parent


def test_the_example(kafka: KafkaBroker) -> None:
    """Nine groups for each of the 29 minutes that are complete, once, after two runs."""
    done = subprocess.run(
        [sys.executable, "examples/pipeline.py", "local"],
        cwd=ROOT,
        env={**os.environ, "KAFKA_SERVERS": kafka.servers},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, table, *groups = done.stdout.splitlines()
    assert (first, second) == ("25,715 messages so far", "51,473 messages so far")
    assert table == "261 rows in 2 commits of the table; the newest minute:"
    assert len(groups) == 9 and groups[0].split()[:4] == ["barge", "card", "600", "orders"]
