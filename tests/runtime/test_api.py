"""`el.query`, `el.stream` and the run that they give."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.testing.sources import ABORT, END, PAUSE, Abort, MarkedSource

Table = Callable[..., pa.Table]


def test_join_with_a_table(table: Table) -> None:
    rows: list[dict[str, Any]] = []
    clicks = el.stream(table("page", (1, 7), (2, 8), (3, 7)), time="ts", lateness=timedelta(seconds=1))
    pages = pa.table({"id": [7, 9], "title": ["home", "about"]})
    query = el.query("SELECT title, ts FROM clicks, pages WHERE page = id", {"clicks": clicks}, {"pages": pages})
    assert "pages" in query.explain()
    run = query.start(sink=lambda batch: rows.extend(batch.to_pylist()))
    summary = run.wait()
    assert summary is not None
    assert (summary.rows_in, summary.rows_out, [row["title"] for row in rows]) == (3, 2, ["home", "home"])
    assert run.exception() is None
    assert run.explain() == summary.plan
    assert run.progress().rows_out == 2
    assert run.decisions() == summary.decisions


def test_print_is_the_default(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    el.query("SELECT k FROM s", {"s": el.stream(table("k", (1, 42)), time="ts")}).start().wait()
    assert capsys.readouterr().out == " k\n--\n42\n"


def test_stop_and_progress(table: Table) -> None:
    batch = table("k", (1, 1)).to_batches()[0]
    enough = threading.Event()

    def forever() -> Iterator[pa.RecordBatch]:
        while True:
            yield batch

    def sink(rows: pa.RecordBatch) -> None:
        enough.set()

    run = el.query("SELECT k FROM s", {"s": el.stream(forever(), time="ts")}).start(sink, settings={"batch_rows": 10})
    assert enough.wait(30)
    assert run.wait(0.01) is None
    run.stop()
    summary = run.wait()
    assert summary is not None
    assert summary.stopped
    assert summary.rows_in == run.progress().rows_in > 0


def test_errors_reach_the_caller(table: Table) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield table("k", (1, 1)).to_batches()[0]
        raise ValueError("no more")

    run = el.query("SELECT k FROM s", {"s": el.stream(broken(), time="ts")}).start(sink=id)
    with pytest.raises(JobError, match="stream s raised ValueError: no more"):
        run.wait()
    assert isinstance(run.exception(), JobError)


def test_marked_sources(table: Table) -> None:
    batch = table("k", (1, 1)).to_batches()[0]
    source = MarkedSource([batch, PAUSE, batch, ABORT, batch, END, batch])
    with pytest.raises(Abort):
        el.query("SELECT k FROM s", {"s": el.stream(source, time="ts")}).start(sink=id).wait()
    summary = el.query("SELECT k FROM s", {"s": el.stream(source, time="ts")}).start(sink=id).wait()
    assert summary is not None
    assert summary.rows_in == 1


@pytest.mark.parametrize(
    ("call", "error", "answer"),
    [
        (lambda t: el.query("SELECT z FROM s", {"s": el.stream(t, time="ts")}).start(), ScriptError, "z"),
        (lambda t: el.query("SELECT k FROM s", {"s": el.stream(t, time="when")}).start(), ScriptError, "'when'"),
        (lambda t: el.query("SELECT k FROM s", {"s": t}), SettingError, "el.stream"),
        (
            lambda t: el.query("SELECT k FROM s", {"s": el.stream(t, time="ts")}).start(sink=5),
            SettingError,
            "a sink is",
        ),
        (
            lambda t: el.query("SELECT k FROM s", {"s": el.stream(t, time="ts")}).start(checkpoint="c"),
            SettingError,
            "not built",
        ),
        (
            lambda t: el.query("SELECT k FROM s", {"s": el.stream(t, time="ts")}).start(settings={"x": 1}),
            SettingError,
            "'x'",
        ),
        (lambda t: el.stream(t, time="ts", lateness="soon"), SettingError, "lateness is a length of time"),
        (lambda t: el.stream([], time="ts"), JobError, "needs a schema"),
    ],
)
def test_refused(table: Table, call: Any, error: type[Exception], answer: str) -> None:
    with pytest.raises(error) as refused:
        call(table("k", (1, 1)))
    assert answer in str(refused.value)


def test_import_is_quick_and_light() -> None:
    heavy = "{'pyarrow', 'numba', 'numpy', 'sqlglot'}"
    code = f"import sys, eddyline as el; assert callable(el.query); print(sorted({heavy} & set(sys.modules)))"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert time.perf_counter() - began < 5


def test_the_package_and_the_function_share_a_name() -> None:
    from eddyline.query import model

    assert callable(el.query)
    assert el.query.model is model  # type: ignore[attr-defined]
    assert {"query", "stream", "udf", "errors"} <= set(dir(el))
    with pytest.raises(AttributeError):
        _ = el.nothing  # type: ignore[attr-defined]
