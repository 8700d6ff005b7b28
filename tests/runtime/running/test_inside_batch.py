"""Inside a long batch progress goes on, and a stop abandons it: nothing of it is written."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.inside_batch import GRACE, InsideBatch, Stopped
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping

LONG = (
    "CREATE STREAM a (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 60000, rate 1000000, k.domain '0..0')"
    " TIMESTAMP BY ts;"
    "CREATE STREAM b (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 60000, rate 1000000, k.domain '0..0')"
    " TIMESTAMP BY ts;"
    "SELECT COUNT(*) AS n FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k AND a.ts <> b.ts"
)
"""Each row has 60,000 partners, so the only batch would take minutes."""


@pytest.mark.parametrize(
    ("settings", "keeps"),
    [({}, False), ({"slots": 2}, False), ({"memory": "200MB"}, False), ({}, True), ({"slots": 2}, True)],
)
def test_a_stop_abandons_a_long_batch(settings: dict[str, object], keeps: bool, tmp_path: Path) -> None:
    seen, rows, asked = list[Progress](), list[pa.RecordBatch](), list[float]()
    job = prepare(LONG, sink=CallbackSink(rows.append))
    runner = LocalRunner(job, from_mapping(settings), str(tmp_path / "ck") if keeps else None)

    def watch(progress: Progress) -> None:
        seen.append(progress)
        asked.append(time.monotonic())

    summary = runner.run(lambda: bool(asked), watch)
    assert summary.stopped and summary.rows_in == summary.rows_out == 0 and rows == []
    assert time.monotonic() - asked[0] < GRACE + 2
    assert 0 <= seen[0].rows_in <= 120_000 and seen[0].batches == 0


def test_a_short_batch_is_not_abandoned() -> None:
    now, shown = [0.0], list[float]()
    inside = InsideBatch(lambda: True, shown.append, lambda: now[0])
    inside.begin()
    for moment in (0.1, 0.5, 1.0):
        now[0] = moment
        inside(0.5)
    inside.end()
    now[0] = 9.0
    inside(0.5)
    assert shown == [0.5]
    inside.begin()
    with pytest.raises(Stopped):
        inside(0.5)


def test_a_stopped_job_reads_the_abandoned_batch_again(tmp_path: Path) -> None:
    """Stopped inside its only batch, with a checkpoint; then run to its end."""
    text = LONG.replace("60000", "3000")
    rows = list[pa.RecordBatch]()

    def once(stop: bool) -> bool:
        runner = LocalRunner(
            prepare(text, sink=CallbackSink(rows.append)), from_mapping({"at_end": "flush"}), str(tmp_path)
        )
        if stop:
            runner._engine.watch = lambda pulse: None  # type: ignore[method-assign]
            here = runner._engine._here  # type: ignore[attr-defined]
            here.pulse = _stopping
        return runner.run().stopped

    assert once(stop=True) and rows == []
    assert not once(stop=False)
    assert sum(batch.column(0)[0].as_py() for batch in rows) == sum(3000 for _ in range(3000)) - 3000


def _stopping(share: float) -> None:
    raise Stopped
