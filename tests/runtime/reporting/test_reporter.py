"""The reports of a run: the same on both engines, and separate from the runs before it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.cli.progress import closing, line
from eddyline.errors import JobError
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping

Table = Callable[..., pa.Table]
SCRIPT = """
CREATE STREAM s USING parquet OPTIONS (path 's') TIMESTAMP BY ts;
CREATE TABLE t (k BIGINT) USING csv OPTIONS (path 't.csv');
SELECT s.k FROM s, t WHERE s.k = t.k
"""


def _write(table: Table, name: str, times: list[int]) -> None:
    Path("s").mkdir(exist_ok=True)
    pq.write_table(table("k", *[(t, t % 3) for t in times]), f"s/{name}.parquet")


def _run(checkpoint: str | None, text: str = SCRIPT, **settings: object) -> tuple[Summary, list[Progress]]:
    looks: list[Progress] = []
    job = prepare(text, sink=CallbackSink(lambda batch: None), checkpoint=checkpoint)
    chosen = from_mapping({"batch_rows": 2, **settings})
    return LocalRunner(job, chosen, checkpoint).run(watch=looks.append), looks


@pytest.fixture
def data(in_tmp: Path, table: Table) -> Path:
    Path("t.csv").write_text("k\n1\n2\nx\n")
    _write(table, "0", [1, 2, 3, 5, 6, 1, 7])
    return in_tmp


@pytest.mark.parametrize("slots", [1, 3])
def test_both_engines_tell_the_same(data: Path, slots: int) -> None:
    (memory, in_memory), (durable, in_steps) = (_run(c, at_end="flush", slots=slots) for c in (None, "ck"))
    for name in ("rows_in", "rows_out", "rows_used", "run_rows_in", "streams", "late", "dead"):
        assert getattr(memory, name) == getattr(durable, name), name
    assert (memory.rows_in, memory.rows_late, memory.rows_dead) == (8, 1, 1)  # a dead row of a table is counted
    assert memory.streams["t"]["rows_in"] == 3 and memory.finished and durable.finished
    assert [p.rows_by_stream for p in in_memory] == [p.rows_by_stream for p in in_steps]


def test_rates_are_of_this_run(data: Path, table: Table) -> None:
    first, _ = _run("ck")
    assert closing(first).startswith("done: 8 rows in, 4 rows out in ")
    _write(table, "1", [8, 10, 11])
    second, looks = _run("ck")
    assert (second.rows_in, second.run_rows_in, second.run_rows_out) == (11, 3, 3)
    assert second.rows_per_second == pytest.approx(3 / second.seconds)
    assert closing(second).startswith(f"done: 3 new rows in, 3 rows out in {second.seconds:.2f} s (")
    assert "; over all runs 11 rows in, 7 rows out, 1 late (" in closing(second)
    assert looks[-1].rows_in == 11 and looks[-1].rows_by_stream == {"s": 3}
    assert f"11 rows in | {3 / looks[-1].seconds:,.0f} rows/s | 7 out" in line(looks[-1])


def test_a_run_without_new_rows(data: Path) -> None:
    _run("ck")
    again, looks = _run("ck")
    assert looks == [] and again.rows_per_second == 0 and not again.finished
    assert closing(again).startswith("done: no new rows since the last run; over all runs 8 rows in, 4 rows out, 1 l")


def test_a_finished_job(data: Path) -> None:
    finished, _ = _run("ck", at_end="flush")
    assert finished.finished and closing(finished).startswith("done: 8 rows in")
    again, looks = _run("ck")
    assert looks == [] and again.finished and again.seconds < again.start_seconds
    told = "finished: an earlier run ended this job and gave all its results; over all runs 8 rows in, 4 rows out"
    assert closing(again).startswith(told)


def test_results_that_only_the_end_gives(data: Path) -> None:
    text = SCRIPT.replace("SELECT s.k", "SELECT count(*) AS n")
    _run("ck", text)
    final, _ = _run("ck", text, at_end="flush")
    assert closing(final).startswith("done: no new rows since the last run, 1 rows out; over all runs 8 rows in, 1")


def test_the_first_error_of_a_job_is_told_by_later_runs(data: Path, table: Table) -> None:
    @el.udf(returns="BIGINT")
    def fails_in_reporter(x: int) -> int:
        raise ValueError("no such number")

    text = SCRIPT.replace("SELECT s.k", "SELECT fails_in_reporter(s.k) AS n")
    first, _ = _run("ck", text)
    again, _ = _run("ck", text)
    assert first.expression_errors == again.expression_errors == 4
    assert first.first_error == again.first_error and "no such number" in again.first_error


@pytest.mark.parametrize(("checkpoint", "whose"), [(None, "the state takes"), ("ck", "the state of a slot takes")])
def test_both_engines_check_the_memory(data: Path, checkpoint: str | None, whose: str) -> None:
    with pytest.raises(JobError, match=rf"^{whose} .*, more than memory=1 KB, after 3 rows[;,] "):
        _run(checkpoint, memory="1KB", spill="off")
