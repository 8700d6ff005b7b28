"""Frames are put in the order of their times, and stay in it when a job continues."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.api import Run
from eddyline.errors import JobError

Table = Callable[..., pa.Table]
START = datetime(2026, 1, 1)


def shuffled(rows: int, seed: int = 0) -> pa.Table:
    """Rows of different times, in any order."""
    numbers = random.Random(seed).sample(range(rows), rows)
    return pa.table({"ts": [START + timedelta(seconds=n) for n in numbers], "k": numbers})


def test_times_that_are_computed_or_read_from_text() -> None:
    rows = shuffled(300)
    for given, time, schema in (
        (pa.table({"s": rows["k"], "k": rows["k"]}), "to_timestamp(s)", None),
        (pa.table({"ts": [str(t) for t in rows["ts"].to_pylist()], "k": rows["k"]}), "ts", rows.schema),
    ):
        stream = el.stream(given, time=time, schema=schema)
        run = el.query("SELECT k FROM s", {"s": stream}).start(settings={"batch_rows": 40})
        found = run.to_arrow()["k"].to_pylist()
        assert found == list(range(300))


def _go_on(rows: pa.Table, checkpoint: Path, enough: int = 1 << 20) -> list[int]:
    """The results of a run that is stopped when it has `enough`."""
    found: list[int] = []
    runs: list[Run] = []

    def take(batch: pa.RecordBatch) -> None:
        found.extend(batch["k"].to_pylist())
        if len(found) >= enough:
            runs[0].stop()

    query = el.query("SELECT k FROM s", {"s": el.stream(rows, time="ts", lateness="1 DAY")})
    started = query.start(take, checkpoint, {"batch_rows": 10, "at_end": "keep"})
    runs.append(started)
    started.wait()
    return found


def test_rows_that_are_added_while_others_are_unread(tmp_path: Path) -> None:
    """The rows that were there before keep their order, although older ones come behind them."""
    first, more = shuffled(100, 1), shuffled(200, 2)
    found = _go_on(first, tmp_path, 30)
    assert 30 <= len(found) < 100
    both = pa.concat_tables([first, more])
    found += _go_on(both, tmp_path, 20)
    found += _go_on(both, tmp_path)
    assert found == [*range(100), *range(200)]
    with pytest.raises(JobError, match="s has fewer rows than the job has already read"):
        _go_on(both.slice(1), tmp_path)


def test_dictionaries_and_views_are_ordered(table: Table) -> None:
    numbers = [3, 1, 2]
    times = [START + timedelta(seconds=n) for n in numbers]
    text = [str(n) for n in numbers]
    columns: dict[str, Any] = {
        "ts": times,
        "v": pa.array(text, pa.string_view()),
        "w": text,
        "l": [[n] for n in numbers],
    }
    rows = pa.table({**columns, "d": pa.array(text).dictionary_encode()})
    found = el.query("SELECT v, w, l, d FROM s", {"s": el.stream(rows, time="ts")}).start().to_arrow().to_pylist()
    assert found == [{"v": str(n), "w": str(n), "l": [n], "d": str(n)} for n in (1, 2, 3)]
