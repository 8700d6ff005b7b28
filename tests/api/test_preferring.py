"""A preference that is changed while rows wait for a slow table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import eddyline as el

SCRIPT = """
CREATE TABLE t (id BIGINT, x BIGINT) USING python
    OPTIONS (function 'tests.api.test_preferring:slow', concurrency 1, batch 1) INDEX ON (id);
SELECT s.k, t.x FROM s [RANGE 1 HOUR], t WHERE s.k = t.id
"""
asked: list[int] = []
gate = threading.Event()


def slow(keys: pa.RecordBatch) -> pa.RecordBatch:
    """Answers when the test lets it."""
    asked.extend(keys.column(0).to_pylist())
    assert gate.wait(300)
    return pa.record_batch({"id": keys.column(0), "x": keys.column(0)})


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_keys_in_line_move_forward(table: Callable[..., pa.Table], tmp_path: Path, with_checkpoint: bool) -> None:
    asked.clear()
    gate.clear()
    rows = el.stream(table("k", *((second, second) for second in range(9))), time="ts")
    run = el.query(SCRIPT, {"s": rows}).start(
        checkpoint=tmp_path / "c" if with_checkpoint else None, settings={"batch_seconds": 0.05}, final=True
    )
    end = time.monotonic() + 300
    while not asked:
        assert time.monotonic() < end and run.exception() is None
        time.sleep(0.01)
    run.prefer("t.id = 7")
    while "preference" not in run.decisions():
        assert time.monotonic() < end and run.exception() is None, "the run waits for answers, and hears of nothing"
        time.sleep(0.01)
    ends = {run.progress().seconds}
    while len(ends) < 3:  # keys move in the batch of the decision: it has ended, and so has another
        assert time.monotonic() < end and run.exception() is None
        ends.add(run.progress().seconds)
        time.sleep(0.01)
    gate.set()
    assert sorted(run.to_arrow()["x"].to_pylist()) == list(range(9))
    assert asked[1] == 7 and sorted(asked) == list(range(9))
