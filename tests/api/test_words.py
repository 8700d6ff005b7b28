"""What is wrong is told to a Python program in its own words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.api import Query
from eddyline.errors import EddylineError, ScriptError, SettingError

_ROWS = pa.record_batch({"ts": [datetime(2026, 1, 1)], "id": [1], "ms": [1767225601000], "day": ["16.11.2026"]})
_RATE = "CREATE STREAM s USING rate TIMESTAMP BY timestamp; SELECT value FROM s"
_S3 = "CREATE STREAM s (ts TIMESTAMP) USING csv OPTIONS (path 's3://b/x') TIMESTAMP BY ts; SELECT ts FROM s"


def _over(time: str) -> Query:
    return el.query("SELECT id FROM s", streams={"s": el.stream(_ROWS, time=time)})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: el.query("SELECT id FROM s"), r"give it to the query: streams={'s': el.stream\(..., time='ts'\)}$"),
        (lambda: el.query("SELECT id FROM s", tables={"s": _ROWS}), r"at least one stream, .*el.stream\(..., time="),
        (lambda: _over("ms"), r"write time='to_timestamp\(ms\)' if these are seconds"),
        (lambda: _over("day"), r"write time=\"strptime\(day, '%d.%m.%Y %H:%M:%S'\)\", with the format"),
        (lambda: el.query(_RATE), "the local engine does not read 'rate'; engine='spark' does$"),
        (lambda: el.query(_S3), "use engine='spark'$"),
    ],
)
def test_wrong_queries(make: Callable[[], Query], said: str) -> None:
    for start in (lambda: make().start(), lambda: make().explain()):
        with pytest.raises(ScriptError, match=said) as refused:
            start()
        assert "TIMESTAMP BY" not in refused.value.message and "--" not in str(refused.value)


def test_what_a_run_raises_later(tmp_path: Path) -> None:
    run = _over("ts").start(settings={"at_end": "keep"}, sink=id)
    with pytest.raises(SettingError, match=r"^at_end=keep needs checkpoint=, which keeps the rows that wait$"):
        run.wait(60)


@pytest.mark.parametrize("batches", [[], [{"ts": 1}], 5, "text"])
def test_el_stream_raises_setting_errors(batches: object) -> None:
    with pytest.raises(EddylineError) as refused:
        el.stream(batches, time="ts")
    assert type(refused.value) is SettingError
