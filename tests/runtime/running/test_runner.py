"""The reading loop: counts add up, late rows, streams side by side, stopping, limits."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.errors import InternalError, JobError, ScriptError
from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import GivenInput, prepare
from eddyline.runtime.running.reading import StreamReader, gather
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.running.waiting import Waiting
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sources.batches import BatchSource
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.settings import Settings, from_mapping
from tests.conftest import Ran, at

Run = Callable[..., Ran]
Table = Callable[..., pa.Table]
_TWO = (
    "CREATE STREAM a (ts TIMESTAMP, k BIGINT)"
    "  USING generate OPTIONS (rows 20000, rate 1000, k.domain '0..99') TIMESTAMP BY ts;"
    "CREATE STREAM b (ts TIMESTAMP, k BIGINT)"
    "  USING generate OPTIONS (rows {rows}, rate 100, k.domain '0..99') TIMESTAMP BY ts;"
    "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
)


def test_the_result_does_not_depend_on_the_batches(run_script: Run) -> None:
    results = [
        sorted(row["k"] for row in run_script(_TWO.format(rows=2000), {"batch_rows": rows, "router": router}).rows)
        for rows, router in ((50, "fixed"), (700, "random"), (100_000, "fixed"))
    ]
    assert results[0] == results[1] == results[2] != []


def test_streams_are_read_side_by_side(run_script: Run) -> None:
    """Stream a has ten times the rate of b; the state stays near the rows of one second of both."""
    ran = run_script(_TWO.format(rows=2000), {"batch_rows": 440})
    assert ran.summary.rows_in == 22_000
    assert ran.summary.peak_state_rows < 3 * 1100


def test_a_stream_that_is_ahead_of_the_others_is_not_idle(table: Table) -> None:
    """Batches of a alone are read while b, which was read up to a pair of rows and no further, waits for it."""
    a = BatchSource(table("k", *((i, 0) for i in range(200))))
    b = BatchSource(table("k", *((i + more, 0) for i in range(5, 200, 10) for more in (0.5, 0.6))))
    given = {"a": GivenInput(a, "ts"), "b": GivenInput(b, "ts")}
    text = "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    settings = from_mapping({"batch_rows": 7, "idle_timeout": 0.0001})
    summary = LocalRunner(prepare(text, given, CallbackSink(id)), settings).run()
    assert (summary.rows_in, summary.rows_late, summary.rows_out) == (240, 0, 80)


def test_watermarks_stay_close() -> None:
    job = prepare(_TWO.format(rows=2000), sink=CallbackSink(id))
    a, b = (StreamReader(i) for i in job.inputs)
    while not (a.ended or b.ended):
        assert gather([a, b], 1100, Waiting())[0] <= 1100
        if not (a.ended or b.ended):
            assert a.watermark is not None and b.watermark is not None
            assert abs(a.watermark - b.watermark) < 1_500_000
            assert sum(batch.num_rows for batch in a.hand_over()[0] + b.hand_over()[0]) <= 1100


def test_pieces_of_a_chunk_are_handed_over_as_one(table: Table) -> None:
    source = BatchSource(table("k", *((i, i) for i in range(100))))
    job = prepare("SELECT k FROM s", {"s": GivenInput(source, "ts")}, CallbackSink(id))
    reader = StreamReader(job.inputs[0])
    assert [reader.take(30), reader.take(30)] == [30, 30]
    batches, _ = reader.hand_over()
    assert [batch.num_rows for batch in batches] == [60]
    assert [reader.take(50), reader.take(50), reader.ended] == [40, 0, True]


def test_small_chunks_are_handed_over_as_one(table: Table) -> None:
    batch = table("k", (1, 1), (2, 2)).to_batches()[0]
    job = prepare("SELECT k FROM s", {"s": GivenInput(BatchSource([batch] * 50), "ts")}, CallbackSink(id))
    reader = StreamReader(job.inputs[0])
    gather([reader], 1000, Waiting())
    batches, _ = reader.hand_over()
    assert [b["k"].to_pylist() for b in batches] == [[1, 2] * 50]


def test_late_rows_go_where_they_are_sent(in_tmp: Path, run_script: Run, table: Table) -> None:
    pq.write_table(table("k note", (10, 1, "x"), (2, 2, "late"), (11, 3, "y"), (1, 4, "late")), "d.parquet")
    declaration = "CREATE STREAM s USING parquet OPTIONS (path 'd.parquet') TIMESTAMP BY ts LATENESS 5 SECONDS"
    sink = " LATE INTO late; CREATE SINK late USING parquet OPTIONS (path 'late');"
    ran = run_script(declaration + sink + "SELECT k FROM s", {"batch_rows": 1})
    assert [row["k"] for row in ran.rows] == [1, 3]
    assert (ran.summary.rows_in, ran.summary.rows_used, ran.summary.rows_late) == (4, 2, 2)
    late = pq.read_table("late")
    assert late.column_names == ["ts", "k", "note"]
    assert late["note"].to_pylist() == ["late", "late"]
    assert run_script(declaration + "; SELECT k FROM s", {"batch_rows": 4}).summary.rows_late == 0


def test_counts_add_up(in_tmp: Path, run_script: Run) -> None:
    Path("d.csv").write_text(
        "ts,k\n" + "".join(f"2026-01-01 00:00:{s},{k}\n" for s, k in [("30", 1), ("01", 2), ("31", "x"), ("", 4)])
    )
    ran = run_script(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING csv OPTIONS (path 'd.csv') TIMESTAMP BY ts;"
        "SELECT k / 0 AS y FROM s",
        {"batch_rows": 1},
    )
    s = ran.summary
    assert s.rows_in == s.rows_used + s.rows_late + s.rows_dead == 4
    assert (s.rows_used, s.rows_late, s.rows_dead, s.rows_out, s.expression_errors) == (1, 1, 2, 1, 1)
    assert s.plan and s.seconds >= 0 and s.start_seconds >= 0 and not s.stopped


def test_group_by_is_flushed_at_the_end(run_script: Run) -> None:
    ran = run_script(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 100, rate 10) TIMESTAMP BY ts;"
        "SELECT window_end() AS t, COUNT(*) AS n FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS]"
    )
    assert [(row["t"], row["n"]) for row in ran.rows] == [(at(0), 1), (at(5), 50), (at(10), 49)]


def test_stop_between_batches(in_tmp: Path, run_script: Run) -> None:
    seen: list[Progress] = []
    script = _TWO.format(rows=2000).replace(
        "SELECT", "CREATE SINK out USING parquet OPTIONS (path 'out'); INSERT INTO out SELECT"
    )
    ran = run_script(script, {"batch_rows": 500}, stop=lambda: len(seen) >= 3, watch=seen.append)
    assert ran.summary.stopped
    assert ran.summary.batches == 3
    assert ran.summary.rows_in == seen[-1].rows_in == 1500
    assert seen[-1].watermark is not None
    assert pq.read_table("out").num_rows == ran.summary.rows_out > 0


def test_memory_limit(in_tmp: Path, run_script: Run) -> None:
    with pytest.raises(
        JobError, match=r"^the state takes [\d.]+ KB, more than memory=100 KB, after .* rows; "
    ) as stopped:
        run_script(
            _TWO.format(rows=2000).replace("1 SECOND", "1 HOUR"),
            {"memory": "100KB", "spill": "off", "batch_rows": 1000},
        )
    assert "\n" not in str(stopped.value)
    assert run_script(_TWO.format(rows=2000), {"memory": "1GB"}).summary.peak_memory_bytes > 0


def test_endless_sources(run_script: Run) -> None:
    with pytest.raises(ScriptError, match="an aggregate without SLIDE is emitted at the end, and s never ends"):
        run_script(
            "CREATE STREAM s (ts TIMESTAMP) USING generate OPTIONS (rate 5) TIMESTAMP BY ts;SELECT COUNT(*) AS n FROM s"
        )


def _run(batches: Any, sink: Any = id, sql: str = "SELECT k FROM s", settings: Settings | None = None) -> Any:
    job = prepare(sql, {"s": GivenInput(BatchSource(batches), "ts")}, CallbackSink(sink))
    return LocalRunner(job, settings or Settings()).run()


def test_failures_are_told_apart(table: Table) -> None:
    batch = table("k", (1, 1)).to_batches()[0]

    def broken() -> Any:
        yield batch
        raise OSError("the wire is cut")

    with pytest.raises(JobError, match="stream s raised OSError: the wire is cut"):
        _run(broken())
    with pytest.raises(JobError, match="a stream yields pyarrow record batches, not int"):
        _run([batch, 5])
    with pytest.raises(JobError, match="a batch has no column k; it has ts"):
        _run([batch, batch.select(["ts"])])
    with pytest.raises(JobError, match="the sink raised ZeroDivisionError"):
        _run([batch], sink=lambda rows: 1 // 0)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (OSError(28, "No space left on device"), "cannot read or write data: No space left on device"),
        (OSError(28, "No space left on device", "x.csv"), "cannot read or write x.csv: No space left on device"),
        (pa.ArrowCapacityError("array cannot contain\nmore"), "a value or a batch is too large .*cannot contain more"),
        (pa.ArrowMemoryError("malloc"), "out of memory"),
        (MemoryError(), "out of memory"),
    ],
)
def test_limits_of_the_machine_are_no_bugs(
    table: Table, monkeypatch: pytest.MonkeyPatch, error: Exception, answer: str
) -> None:
    def fail(*args: object, **named: object) -> None:
        raise error

    monkeypatch.setattr("eddyline.protocol.in_process.InProcess.run", fail)
    with pytest.raises(JobError, match=f"^{answer}") as told:
        _run(table("k", (1, 1)))
    assert "\n" not in str(told.value)


def test_state_without_an_end_is_in_the_summary(run_script: Run) -> None:
    endless = _TWO.format(rows=20).replace("[RANGE 1 SECOND]", "")
    assert [w.split(":")[0] for w in run_script(endless).summary.warnings] == [
        "rows of a never expire",
        "rows of b never expire",
    ]
    assert run_script(_TWO.format(rows=20)).summary.warnings == ()


def test_a_bug_is_called_a_bug(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddyline.protocol.in_process.InProcess.run", lambda *args, **named: 1 // 0)
    with pytest.raises(InternalError, match="ZeroDivisionError"):
        _run(table("k", (1, 1)))


def test_silent_streams(table: Table) -> None:
    """An empty batch means that the stream has no rows at present: the batch continues without that stream."""
    batch = table("k", (1, 1)).to_batches()[0]
    rows: list[Any] = []
    summary = _run([batch, batch.slice(0, 0), batch], sink=lambda b: rows.extend(b["k"].to_pylist()))
    assert (rows, summary.rows_in, summary.batches) == ([1, 1], 2, 2)


def test_a_stream_that_is_waited_for_in_vain_becomes_idle(table: Table) -> None:
    """Also if `batch_rows` is a number; progress has the watermark that the query uses."""
    over = threading.Event()

    def silent() -> Iterator[pa.RecordBatch]:
        yield from table("k", (0, 0)).to_batches()
        over.wait()

    def going() -> Iterator[pa.RecordBatch]:
        for second in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
            yield from table("k", (second, 0)).to_batches()

    def watch(progress: Progress) -> None:
        if progress.watermark is not None and progress.watermark > at(0).replace(tzinfo=UTC):
            over.set()

    given = {"a": GivenInput(PythonSource(going()), "ts"), "b": GivenInput(PythonSource(silent()), "ts")}
    text = "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    settings = from_mapping({"batch_rows": 7, "idle_timeout": 0.0001, "batch_seconds": 0.01})
    summary = LocalRunner(prepare(text, given, CallbackSink(id)), settings).run(watch=watch)
    assert over.is_set() and (summary.rows_late, summary.rows_out) == (0, 2)
