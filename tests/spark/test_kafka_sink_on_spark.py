"""A Kafka topic as the sink of a job on Spark: each batch once, also after the driver died in a transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline import faults
from eddyline.errors import JobError
from lab.servers.kafka_broker import KafkaBroker
from tests.conftest import Ran
from tests.support.kafka_topics import committed


def test_results_and_late_rows(
    run_on_spark: Callable[..., Ran],
    files: Callable[..., str],
    table: Callable[..., pa.Table],
    kafka: KafkaBroker,
    tmp_path: Path,
) -> None:
    parts = [table("k", *((second, second % 5) for second in (*range(n, n + 20), 1))) for n in range(0, 80, 20)]
    out, late = kafka.create(partitions=2), kafka.create()
    text = (
        f"CREATE STREAM {files('a', *parts)} LATE INTO late;"
        f" CREATE SINK late USING kafka OPTIONS (servers '{kafka.servers}', topic '{late}');"
        f" CREATE SINK out USING kafka OPTIONS (servers '{kafka.servers}', topic '{out}', key 'k', format 'raw');"
        " INSERT INTO out SELECT a.k, CAST(a.ts AS VARCHAR) AS s FROM a"
    )
    seen: list[str] = []

    def reached(name: str) -> None:
        seen.append(name)
        if name == "kafka: before a transaction is committed" and len(seen) > 1 and committed(kafka, out):
            raise JobError("the driver dies")

    faults.inject(reached)
    try:
        with pytest.raises(JobError, match="the driver dies"):
            run_on_spark(text, tmp_path / "checkpoint", batch_rows=21)
    finally:
        faults.inject(None)
    assert 0 < len(committed(kafka, out)) < 81
    summary = run_on_spark(text, tmp_path / "checkpoint", batch_rows=21).summary
    rows = committed(kafka, out)
    assert len(rows) == 81 and len(set(rows)) == 80  # second 1 comes twice in time
    assert summary.rows_late == 3 and [json.loads(value or b"")["k"] for value in committed(kafka, late)] == [1, 1, 1]
