"""Advice at the end of a run: how many rows were late or dead, why, and what would have kept them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.cli.main import main
from eddyline.cli.progress import closing
from eddyline.counts import StreamCounts
from eddyline.runtime.reporting.advice import of_streams
from eddyline.runtime.reporting.summary import Summary
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping
from tests.conftest import Ran

Run = Callable[..., Ran]
Table = Callable[..., pa.Table]
_S = "CREATE STREAM s USING parquet OPTIONS (path 's.parquet') TIMESTAMP BY ts"
TIMES = [100, 197, 98, 200, 150, 201, 99, 202, 300, 301]
"""98 is 99 s behind 197, and 99 is 102 s behind 201."""


def _write(table: Table, name: str, times: list[float]) -> None:
    pq.write_table(table("k", *[(t, i) for i, t in enumerate(times)]), f"{name}.parquet")


def _checkpointed(text: str, settings: dict[str, object], stop: Callable[[], bool] = lambda: False) -> Summary:
    job = prepare(text, sink=CallbackSink(lambda batch: None))
    return LocalRunner(job, from_mapping(settings), "ck").run(stop)


def _of_rows(summary: Summary) -> list[str]:
    """The warnings but for the one that slots of the local engine share a core."""
    return [warning for warning in summary.warnings if not warning.startswith("slots=")]


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("slots", [1, 3])
def test_the_lateness_that_keeps_all_rows_is_told(
    in_tmp: Path, run_script: Run, table: Table, checkpoint: bool, slots: int
) -> None:
    _write(table, "s", TIMES)
    text, settings = f"{_S}; SELECT k FROM s", {"batch_rows": 1, "slots": slots}
    run = _checkpointed if checkpoint else lambda text, settings: run_script(text, settings).summary
    summary = run(text, settings)
    assert summary.rows_late == 3
    assert summary.streams["s"] == {
        "rows_in": 10, "rows_late": 3, "rows_dead": 0, "out_of_order_seconds": 102.0,
        "largest_lateness_seconds": 102.0, "lateness": "2 MINUTES", "dead_share": 0.0, "first_dead": "",
    }  # fmt: skip
    assert closing(summary).endswith(", 3 late (up to 1 min 42 s; LATENESS 2 MINUTES would have kept them)")
    assert _of_rows(summary) == []


def test_that_lateness_does_keep_them_however_batches_are_cut(in_tmp: Path, run_script: Run, table: Table) -> None:
    _write(table, "s", TIMES)
    for rows in (1, 2, 3, 7):
        one_batch = run_script(f"{_S}; SELECT k FROM s", {"batch_rows": 100}).summary
        enough = one_batch.streams["s"]["lateness"]
        kept = run_script(f"{_S} LATENESS {enough}; SELECT k FROM s", {"batch_rows": rows}).summary
        assert (kept.rows_late, kept.streams["s"]["lateness"], kept.warnings) == (0, "", ())


def test_disorder_is_told_before_a_row_is_late(in_tmp: Path, run_script: Run, table: Table) -> None:
    _write(table, "s", [1, 2, 5, 2.5, 6])
    summary = run_script(f"{_S}; SELECT k FROM s").summary
    assert summary.rows_late == 0
    assert summary.warnings == (
        "rows of s come up to 2.5 s out of order;"
        " write LATENESS 3 SECONDS behind TIMESTAMP BY of s, or some may be late",
    )
    assert not run_script(f"{_S} LATENESS 3 SECONDS; SELECT k FROM s").summary.warnings


def test_of_several_streams_each_is_told(in_tmp: Path, run_script: Run, table: Table) -> None:
    _write(table, "s", [10, 1, 20, 30])
    _write(table, "r", [10, 20, 18, 30])
    text = f"{_S}; {_S.replace('s.parquet', 'r.parquet').replace('STREAM s', 'STREAM r')};"
    summary = run_script(text + "SELECT r.k FROM s [RANGE 1 HOUR], r [RANGE 1 HOUR] WHERE s.k = r.k", {"batch_rows": 2})
    told = (
        r"2 late \(r 1: up to 2 s; LATENESS 2 SECONDS would have kept them; s 1: up to 9 s; LATENESS 10 SECONDS would"
    )
    assert re.search(told, closing(summary.summary))


def test_what_was_seen_survives_a_restart(in_tmp: Path, table: Table) -> None:
    _write(table, "s", TIMES)
    asked = iter([False] * 6 + [True] * 100)
    text = f"{_S}; SELECT k FROM s"
    first = _checkpointed(text, {"batch_rows": 1}, lambda: next(asked))
    assert first.stopped and first.streams["s"]["rows_late"] < 3
    second = _checkpointed(text, {"batch_rows": 1})
    assert (second.streams["s"]["rows_in"], second.streams["s"]["rows_late"]) == (10, 3)
    assert second.streams["s"]["lateness"] == "2 MINUTES"


@pytest.mark.parametrize(
    ("value", "type_", "by"),
    [
        ("1767225601", "BIGINT", "to_timestamp(ts)"),
        ("1767225601000", "BIGINT", "epoch_ms(ts)"),
        ("1767225601000000", "BIGINT", "make_timestamp(ts)"),
        ("16.11.2026", "VARCHAR", "strptime(ts, '%d.%m.%Y')"),
        ("yesterday", "VARCHAR", "strptime(ts, FORMAT), as in '%d.%m.%Y %H:%M:%S'"),
    ],
)
def test_a_stream_that_is_all_dead_is_told_loudly(
    in_tmp: Path, capsys: pytest.CaptureFixture[str], value: str, type_: str, by: str
) -> None:
    Path("d").write_text("ts,k\n" + f"{value},1\n" * 100)
    Path("x.sql").write_text(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT k FROM s"
    )
    assert main(["run", "x.sql", "--engine", "local", "--json"]) == 0
    said = capsys.readouterr()
    hint = (
        f"declare the columns, with ts as {type_}: CREATE STREAM s (ts {type_}, k BIGINT) and write TIMESTAMP BY {by}"
    )
    reason = f"column ts: '{value}' is not a value of type TIMESTAMP"
    assert f"100 dead (100 %; first: {reason})" in said.err
    assert f"warning: all 100 rows of s are dead: {reason}; {hint}" in said.err
    summary: dict[str, Any] = json.loads(said.out.splitlines()[-1])
    assert (summary["streams"]["s"]["first_dead"], summary["streams"]["s"]["dead_share"]) == (reason, 1.0)
    assert summary["warnings"] == [f"all 100 rows of s are dead: {reason}; {hint}"]


def test_a_few_dead_rows_are_told_in_the_closing_line(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("ts,k\n2026-01-01,x\n" + "2026-01-01,1\n" * 19)
    text = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT k FROM s"
    for summary in (run_script(text).summary, _checkpointed(text, {"slots": 2})):
        assert closing(summary).endswith(
            ", 1 dead (5.0 %; first: column k: 'x' is not a value of type BIGINT;"
            " declare the columns, with k as VARCHAR: CREATE STREAM s (ts TIMESTAMP, k VARCHAR)"
            " if such values are right)"
        )
        assert _of_rows(summary) == []


@pytest.mark.parametrize("checkpoint", [False, True])
def test_rows_whose_time_is_null_have_a_reason(in_tmp: Path, run_script: Run, table: Table, checkpoint: bool) -> None:
    pq.write_table(table("k", *[(None, i) for i in range(9)], (1, 9)), "s.parquet")
    text = f"{_S}; SELECT k FROM s"
    summary = _checkpointed(text, {}) if checkpoint else run_script(text).summary
    assert summary.streams["s"]["first_dead"] == "the event time is NULL or out of range: ts is NULL"
    assert summary.warnings[0].startswith("9 of 10 rows of s are dead: the event time is NULL")


def test_a_table_that_cannot_be_read(in_tmp: Path, run_script: Run, table: Table) -> None:
    _write(table, "s", [1, 2])
    Path("t").write_text("k,name\none,x\ntwo,y\n")
    text = f"{_S}; CREATE TABLE t (k BIGINT, name VARCHAR) USING csv OPTIONS (path 't', header true);"
    for summary in (run_script(text + "SELECT name FROM s, t WHERE s.k = t.k").summary,):
        assert summary.warnings[0].startswith("all 2 rows of t are dead: column k: 'one' is not a value of type BIGINT")


def test_lookups_that_failed_are_no_share_of_the_rows(in_tmp: Path, run_script: Run, table: Table) -> None:
    """Answers are not counted as rows, so nothing is said about how many of the keys failed."""
    _write(table, "s", [1, 2])
    sqlite3.connect("shop.db").close()
    text = f"{_S}; CREATE TABLE t (k BIGINT) USING sqlite OPTIONS (path 'shop.db', table 't') INDEX ON (k);"
    summary = run_script(text + "SELECT t.k FROM s [RANGE 1 SECOND], t WHERE s.k = t.k").summary
    assert summary.rows_dead == 2
    assert summary.dead == " (t 2: unreadable rows, or keys whose lookup failed; first: no such table: t)"
    assert not summary.warnings


def test_after_a_stream_was_idle_its_own_lateness_would_not_help() -> None:
    """Its rows are late because of the watermarks of other streams: the lateness of all streams must make up for it."""
    seen = StreamCounts(used=8, late=1, behind=0, late_by=50_000_000, overtaken=50_000_000)
    (end,) = of_streams({"s": 0, "other": 60_000_000}, {"s": seen})
    assert end.late == (
        "up to 50 s, after it was idle; LATENESS 2 MINUTES for every stream, or a longer idle_timeout,"
        " would have kept them"
    )
