"""`el.query`, `el.stream` and the run that they give."""

from __future__ import annotations

import inspect
import pydoc
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eddyline as el
from eddyline.api import Run
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


def test_print(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    el.query("SELECT k FROM s", {"s": el.stream(table("k", (1, 42)), time="ts")}).start("print").wait()
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
    assert enough.wait(300)
    assert run.wait(0.01) is None
    run.stop()
    summary = run.wait()
    assert summary is not None
    assert summary.stopped
    assert summary.rows_in == run.progress().rows_in > 0


def test_lists_and_tables_are_read_anew(table: Table) -> None:
    data = table("k", (1, 1), (2, 2))
    for batches in (data, data.to_batches()[0], data.to_batches(), tuple(data.to_batches())):
        query = el.query("SELECT k FROM s", {"s": el.stream(batches, time="ts")})
        for _ in range(3):
            summary = query.start(sink=id).wait()
            assert summary is not None
            assert summary.rows_in == 2


def test_iterators_are_read_once(table: Table) -> None:
    data = table("k", (1, 1), (2, 2))
    for batches in (iter(data.to_batches()), data.to_reader(), (b for b in data.to_batches())):
        query = el.query("SELECT k FROM s", {"s": el.stream(batches, time="ts")})
        assert "stream s" in query.explain()
        query.start(sink=id).wait()
        with pytest.raises(JobError, match="was read by a run before, and an iterator can be read once"):
            query.start(sink=id)


class _Slow:
    """Gives its batches when the test says so."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._given: queue.Queue[pa.RecordBatch | None] = queue.Queue()
        self.give = self._given.put
        self.asked = 0
        """How often it was asked for a batch. The batch given before has arrived when it is asked for the next."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            self.asked += 1
            if (batch := self._given.get()) is None:
                return
            yield batch


def _wait_for(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 300
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def test_slow_streams_are_served(table: Table) -> None:
    """Each row is processed before the next one is given, though the batch is far from full."""
    data = table("k", (1, 1), (2, 2), (3, 3)).to_batches()[0]
    slow, rows = _Slow(data.schema), list[int]()
    run = el.query("SELECT k FROM s", {"s": el.stream(slow, time="ts")}).start(
        sink=lambda b: rows.extend(b["k"].to_pylist()), settings={"batch_seconds": "0.05"}
    )
    for number in range(3):
        slow.give(data.slice(number, 1))
        assert _wait_for(lambda: len(rows) > number)  # noqa: B023
    slow.give(None)
    summary = run.wait(300)
    assert summary is not None
    assert (rows, summary.stopped) == ([1, 2, 3], False)


def test_a_silent_stream_does_not_hold_up_the_others(table: Table) -> None:
    data = table("k", (1, 1), (2, 2)).to_batches()[0]
    silent, going, rows = _Slow(data.schema), _Slow(data.schema), list[int]()
    run = el.query(
        "SELECT a.k FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k",
        {"a": el.stream(silent, time="ts"), "b": el.stream(going, time="ts")},
    ).start(sink=lambda b: rows.extend(b["k"].to_pylist()), settings={"batch_seconds": "0.05"})
    silent.give(data)
    going.give(data.slice(0, 1))
    assert _wait_for(lambda: rows == [1])
    going.give(data.slice(1, 1))
    assert _wait_for(lambda: rows == [1, 2])
    run.stop()


def test_a_number_of_batch_rows_fixes_the_cut(table: Table) -> None:
    data = table("k", (1, 1), (2, 2), (3, 3)).to_batches()[0]
    slow = _Slow(data.schema)
    run = el.query("SELECT k FROM s", {"s": el.stream(slow, time="ts")}).start(
        sink=id, settings={"batch_seconds": "0.01", "batch_rows": 2}
    )
    for number in range(3):
        slow.give(data.slice(number, 1))
        time.sleep(0.1)
    slow.give(None)
    summary = run.wait(300)
    assert summary is not None
    assert (summary.rows_in, summary.batches) == (3, 2)


@pytest.mark.parametrize("settings", [{}, {"batch_rows": 10}])
@pytest.mark.parametrize("rows", [0, 1])
def test_stop_does_not_wait_for_a_stream(table: Table, settings: dict[str, object], rows: int) -> None:
    data = table("k", (1, 1)).to_batches()[0]
    slow = _Slow(data.schema)
    run = el.query("SELECT k FROM s", {"s": el.stream(slow, time="ts")}).start(sink=id, settings=settings)
    if rows:
        slow.give(data)
    assert _wait_for(lambda: slow.asked > rows)
    assert run.wait(0.01) is None
    run.stop()
    summary = run.wait(300)
    assert summary is not None
    assert summary.stopped
    assert summary.rows_in == rows


def test_stop_does_not_wait_for_a_table(table: Table) -> None:
    data = table("k", (1, 1))
    sources = {"s": el.stream(data, time="ts")}
    run = el.query("SELECT s.k FROM s, t WHERE s.k = t.k", sources, {"t": _Slow(data.schema)}).start(sink=id)
    run.stop()
    summary = run.wait()
    assert summary is not None
    assert summary.stopped


def test_half_a_table_is_not_kept(table: Table, tmp_path: Path) -> None:
    data, slow = table("k", (1, 1), (2, 2)), _Slow(table("k", (1, 1)).schema)
    found: list[int] = []

    def start(rows: pa.Table | _Slow) -> Run:
        query = el.query("SELECT t.k FROM s, t WHERE s.k = t.k", {"s": el.stream(data, time="ts")}, {"t": rows})
        return query.start(lambda batch: found.extend(batch.column("k").to_pylist()), checkpoint=str(tmp_path / "c"))

    first = start(slow)
    slow.give(data.slice(0, 1).to_batches()[0])
    assert _wait_for(lambda: slow.asked == 2)
    first.stop()
    assert start(data).wait() is not None and found == [1, 2]


def test_an_iterator_with_a_checkpoint(table: Table, tmp_path: Path) -> None:
    data = table("k", (1, 1), (2, 2))
    for batches in ((b for b in data.to_batches()), data.to_batches()):
        query = el.query("SELECT k FROM s", {"s": el.stream(batches, time="ts")})
        summary = query.start(sink=id, checkpoint=str(tmp_path)).wait()
        assert summary is not None and summary.rows_in == 2


def test_a_function_that_is_defined_anew(table: Table, tmp_path: Path) -> None:
    found: list[list[int]] = []
    for times in (10, 1000):

        @el.udf(returns="BIGINT")
        def defined_anew(k: np.ndarray, times: int = times) -> np.ndarray:
            return k * times

        rows: list[int] = []
        query = el.query("SELECT defined_anew(k) AS x FROM s", {"s": el.stream(table("k", (1, 1), (2, 2)), time="ts")})
        query.start(lambda batch, rows=rows: rows.extend(batch["x"].to_pylist()), checkpoint=str(tmp_path / "c")).wait()
        shutil.rmtree(tmp_path / "c")
        found.append(rows)
    assert found == [[10, 20], [1000, 2000]]


def test_a_sink_can_stop_the_run(table: Table) -> None:
    batches = [table("k", (second, second)).to_batches()[0] for second in range(50)]
    started = threading.Event()

    def enough(batch: pa.RecordBatch) -> None:
        started.wait(300)
        run.stop()

    run = el.query("SELECT k FROM s", {"s": el.stream(batches, time="ts")}).start(enough, settings={"batch_rows": 1})
    started.set()
    summary = run.wait()
    assert summary is not None and summary.stopped and summary.rows_in < 50


def test_streams_that_wait_do_not_keep_the_interpreter() -> None:
    code = (
        "import threading, pyarrow as pa, eddyline as el\n"
        "schema = pa.schema([('ts', pa.timestamp('us'))])\n"
        "never = iter(threading.Event().wait, None)\n"
        "run = el.query('SELECT ts FROM s', {'s': el.stream(never, 'ts', schema=schema)}).start(sink=id)\n"
        "assert run.wait(0.5) is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_generators_are_read_side_by_side(table: Table) -> None:
    """State stays near one second of both, however fast each generator is."""

    def rows(pause: float) -> Iterator[pa.RecordBatch]:
        for second in range(40):
            time.sleep(pause)
            yield table("k", *((second + i / 100, i) for i in range(100))).to_batches()[0]

    peaks = []
    for pauses in ((0.0, 0.005), (0.005, 0.0), (0.0, 0.0)):
        streams = {name: el.stream(rows(p), time="ts") for name, p in zip("ab", pauses, strict=True)}
        query = el.query("SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k", streams)
        summary = query.start(sink=id, settings={"batch_rows": 100}).wait()
        assert summary is not None
        assert summary.rows_in == 8000
        peaks.append((summary.peak_state_rows, summary.rows_out, summary.rows_late, summary.batches))
    assert peaks[0] == peaks[1] == peaks[2]
    assert peaks[0][0] < 800


def test_errors_reach_the_caller(table: Table) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield table("k", (1, 1)).to_batches()[0]
        raise ValueError("no more")

    run = el.query("SELECT k FROM s", {"s": el.stream(broken(), time="ts")}).start(sink=id)
    with pytest.raises(JobError, match="stream s raised ValueError: no more"):
        run.wait()
    assert isinstance(run.exception(), JobError)
    assert run.progress().seconds >= 0

    names = (batch for batch in [table("k", (1, 1)).to_batches()[0], 5])
    sql, streams = "SELECT s.k FROM s, t WHERE s.k = t.k", {"s": el.stream(table("k", (1, 1)), "ts")}
    query = el.query(sql, streams, {"t": names})
    with pytest.raises(JobError, match="yields pyarrow record batches, not int"):
        query.start(sink=id).wait()
    query = el.query(sql, streams, {"t": broken()})
    with pytest.raises(JobError, match="table t raised ValueError: no more"):
        query.start(sink=id).wait()


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
            lambda t: el.query("SELECT k FROM s", {"s": el.stream(t, time="ts")}).start(settings={"x": 1}),
            SettingError,
            "'x'",
        ),
        (lambda t: el.stream(t, time="ts", lateness="soon"), SettingError, "lateness is a length of time"),
        (lambda t: el.stream(t, time="ts", lateness=5), SettingError, "lateness is a timedelta or a text such as '5 s"),
        (lambda t: el.stream(t, "ts", timedelta(seconds=-1)), SettingError, "negative"),
        (lambda t: el.stream(5, time="ts"), SettingError, "a stream or a table is a pyarrow table"),
        (lambda t: el.stream(t, time=5), SettingError, "time is the name of the column"),
        (lambda t: el.stream(t, time="ts", schema={"k": int}), SettingError, "schema is a pyarrow schema, not a dict"),
        (lambda t: el.query("SELECT k FROM s", tables={"s": 5}), SettingError, "not 5"),
        (lambda t: el.stream([], time="ts"), SettingError, "needs its columns"),
    ],
)
def test_refused(table: Table, call: Any, error: type[Exception], answer: str) -> None:
    with pytest.raises(error) as refused:
        call(table("k", (1, 1)))
    assert answer in str(refused.value)


def test_import_is_light() -> None:
    heavy = "{'pyarrow', 'numba', 'numpy', 'sqlglot'}"
    code = f"import sys, eddyline as el; assert callable(el.query); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names() -> None:
    assert {"query", "stream", "udf", "errors"} <= set(dir(el))
    with pytest.raises(AttributeError):
        _ = el.nothing  # type: ignore[attr-defined]


def test_help() -> None:
    told = pydoc.render_doc(el.query, renderer=pydoc.plaintext)
    assert "function query in module eddyline\n\nquery(sql: 'str', streams: " in told
    assert "A query over streams and tables from Python" in told and "PACKAGE CONTENTS" not in told
    assert list(inspect.signature(el.query).parameters) == ["sql", "streams", "tables", "prefer"]
    assert inspect.getdoc(el.query) == inspect.cleandoc(el.query.__doc__ or "")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also where a shell started the tests in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_wait_and_stop_after_an_interrupt(table: Table) -> None:
    """The run is in the middle of a batch all the time; a wait that was interrupted does not make it seem over."""
    busy, go_on, main = threading.Event(), threading.Event(), threading.main_thread().ident or 0

    def sink(rows: pa.RecordBatch) -> None:
        busy.set()
        go_on.wait(300)

    def interrupt() -> None:
        busy.wait(300)
        time.sleep(0.2)
        signal.pthread_kill(main, signal.SIGINT)

    run = el.query("SELECT k FROM s", {"s": el.stream(table("k", (1, 1)), time="ts")}).start(sink)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run.wait()
    before = time.monotonic()
    assert run.wait(0.3) is None and time.monotonic() - before >= 0.3
    threading.Timer(0.3, go_on.set).start()
    run.stop()
    assert go_on.is_set() and run.wait(0) is not None


def test_a_sink_cannot_wait_for_its_run(table: Table) -> None:
    started = threading.Event()

    def sink(rows: pa.RecordBatch) -> None:
        started.wait(300)
        run.wait()

    run = el.query("SELECT k FROM s", {"s": el.stream(table("k", (1, 1)), time="ts")}).start(sink)
    started.set()
    with pytest.raises(SettingError, match="cannot be waited for by its own sink"):
        run.wait(300)


def test_wrong_arguments_are_not_shown_whole(table: Table) -> None:
    data = table("name", (1, "a secret"), (2, "another"))
    streams = {"s": el.stream(data, time="ts")}
    calls: list[Callable[[], object]] = [
        lambda: el.query("SELECT name FROM s", streams).start(sink=data),  # type: ignore[arg-type]
        lambda: el.query("SELECT name FROM s", {"s": data}),
        lambda: el.query("SELECT name FROM s", streams).start(settings={"router": data}),
        lambda: el.query("SELECT name FROM s", streams).start(settings=data),
        lambda: el.query("SELECT name FROM s", streams).start(checkpoint=data),  # type: ignore[arg-type]
        lambda: el.query("SELECT name FROM s", data),
        lambda: el.query("SELECT name FROM s", streams, data),
        lambda: el.query(data),  # type: ignore[arg-type]
        lambda: el.stream(data, time=data),
        lambda: el.stream(data, time="ts", lateness=data),
        lambda: el.stream(data, time="ts", schema=data),
        lambda: el.udf(returns="BIGINT", arrays=data),  # type: ignore[arg-type]
        lambda: el.udf(returns=data),
    ]
    for call in calls:
        with pytest.raises(SettingError) as refused:
            call()
        assert "secret" not in str(refused.value) and "\n" not in str(refused.value)
        assert "a Table" in str(refused.value)
