"""Results that a run keeps, how queries and runs are shown, and where they run."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.errors import JobError, SettingError
from eddyline.runtime.sinks.kept import KeptSink
from tests.conftest import at

Table = Callable[..., pa.Table]


@pytest.fixture
def rows(table: Table) -> pa.Table:
    """Five rows, a second apart."""
    return table("k", *((second, second) for second in range(5)))


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_results_as_a_table(rows: pa.Table, tmp_path: Path, with_checkpoint: bool) -> None:
    query = el.query("SELECT k, ts FROM s WHERE k > 1", {"s": el.stream(rows, time="ts")})
    run = query.start(checkpoint=tmp_path / "c" if with_checkpoint else None, settings={"batch_rows": 2})
    found = run.to_arrow()
    assert found.schema == pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    assert found["k"].to_pylist() == [2, 3, 4]
    assert run.to_arrow() == found  # it can be asked for again
    assert run.to_pandas()["k"].tolist() == [2, 3, 4]
    summary = run.wait()
    assert summary is not None and summary.rows_out == 3


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_types_that_parquet_changes(rows: pa.Table, tmp_path: Path, with_checkpoint: bool) -> None:
    types = [pa.timestamp("s"), pa.timestamp("s", "UTC"), pa.date64(), pa.time32("s")]
    names = ["seconds", "zoned", "day", "time"]
    for name, kind in zip(names, types, strict=True):
        values = pa.array([0, 1, 2, None, 4], pa.int32() if kind == pa.time32("s") else pa.int64())
        rows = rows.append_column(name, (pc.multiply(values, 86_400_000) if kind == pa.date64() else values).cast(kind))
    query = el.query(f"SELECT {', '.join(names)} FROM s", {"s": el.stream(rows, time="ts")})
    found = query.start(checkpoint=tmp_path / "c" if with_checkpoint else None, final=True).to_arrow()
    assert found == rows.select(names)


@pytest.mark.parametrize("with_checkpoint", [False, True])
@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT k, ts FROM s WHERE k > 10", ["int64", "timestamp[us]"]),
        ("SELECT AVG(k) AS a, CAST(k AS VARCHAR) AS t FROM s WHERE k > 10 GROUP BY k", ["double", "string"]),
    ],
)
def test_no_results_have_columns(
    rows: pa.Table, tmp_path: Path, with_checkpoint: bool, sql: str, types: list[str]
) -> None:
    run = el.query(sql, {"s": el.stream(rows, time="ts")}).start(checkpoint=tmp_path if with_checkpoint else None)
    found = run.to_arrow()
    assert found.num_rows == 0 and [str(field.type) for field in found.schema] == types
    assert run.to_pandas().columns.tolist() == found.column_names
    assert list(run) == []


def test_wait_keeps_what_nobody_reads(rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeptSink.__init__, "__defaults__", (1,))
    run = el.query("SELECT k FROM s", {"s": el.stream(rows, time="ts")}).start(settings={"batch_rows": 1})
    assert run.wait(300) is not None
    assert run.to_arrow()["k"].to_pylist() == [0, 1, 2, 3, 4]


def test_iteration_holds_the_run_back(rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over an endless stream pauses while its results are unread, so memory stays bounded."""
    monkeypatch.setattr(KeptSink.__init__, "__defaults__", (1 << 14,))
    batch = rows.to_batches()[0].slice(4).take([0] * 10)

    def forever() -> Iterator[pa.RecordBatch]:
        while True:
            yield batch

    query = el.query("SELECT k FROM s", {"s": el.stream(forever(), time="ts")})
    with query.start(settings={"batch_rows": 100}) as run:
        for number, found in enumerate(run):
            assert set(found["k"].to_pylist()) == {4}
            assert run._kept is not None and sum(b.nbytes for b in run._kept.unread()) < 1 << 16
            if number == 300:
                break
    assert run.state == "stopped" and run.wait(0) is not None


def test_iteration_ends_and_raises(table: Table) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield table("k", (1, 1)).to_batches()[0]
        raise ValueError("no more")

    found: list[int] = []
    query = el.query("SELECT k FROM s", {"s": el.stream(broken(), time="ts")})
    with pytest.raises(JobError, match="no more"):
        for batch in query.start(settings={"batch_rows": 1}):
            found += batch["k"].to_pylist()
    assert found == [1]


def test_what_is_read_is_not_there_again(rows: pa.Table) -> None:
    run = el.query("SELECT k FROM s", {"s": el.stream(rows, time="ts")}).start(settings={"batch_rows": 1})
    first = next(iter(run))
    assert first["k"].to_pylist() == [0]
    assert [batch["k"].to_pylist() for batch in run] == [[1], [2], [3], [4]]
    for ask in (run.to_arrow, run.to_pandas):
        with pytest.raises(SettingError, match="an iteration has taken results of this run"):
            ask()


def test_results_that_go_elsewhere(rows: pa.Table, tmp_path: Path) -> None:
    streams = {"s": el.stream(rows, time="ts")}
    into = f"CREATE SINK o USING parquet OPTIONS (path '{tmp_path / 'o'}'); INSERT INTO o SELECT k FROM s"
    for run in (el.query("SELECT k FROM s", streams).start(sink=id), el.query(into, streams).start()):
        for ask in (run.to_arrow, run.to_pandas, lambda run=run: next(iter(run))):
            with pytest.raises(SettingError, match="the results of this run go to its sink"):
                ask()
        assert run.wait() is not None


def test_the_watermark_is_a_datetime(rows: pa.Table) -> None:
    run = el.query("SELECT k FROM s", {"s": el.stream(rows, time="ts", lateness="1 s")}).start(
        settings={"batch_rows": 1}
    )
    taken = threading.Event()
    for batch in run:
        if batch["k"].to_pylist() == [3] and not taken.is_set():
            taken.set()
    assert taken.is_set()
    watermark = run.progress().watermark
    assert watermark is not None and watermark >= at(2).replace(tzinfo=UTC)


def test_how_they_are_shown(rows: pa.Table) -> None:
    stream = el.stream(rows, time="ts", lateness="2 s")
    assert repr(stream) == "<Stream ts TIMESTAMP, k BIGINT; time ts, lateness 0:00:02>"
    pages = pa.table({"id": [3], "title": ["<b>secret</b>"]})
    query = el.query("SELECT k, title\nFROM s, pages\nWHERE k = id AND k < 9", {"s": stream}, {"pages": pages})
    assert repr(query) == "<Query 'SELECT k, title FROM s, pages WHERE k = id AND k < 9' over s, pages>"
    html = query._repr_html_()
    assert "WHERE k = id AND k &lt; 9" in html and "id BIGINT, title VARCHAR" in html and "secret" not in html
    run = query.start()
    summary = run.wait()
    assert repr(run).startswith("<Run done: batches ") and "rows in 5, rows out 1>" in repr(run)
    html = run._repr_html_()
    assert "<tr><th>state</th><td>done</td></tr>" in html and "<details><summary>plan</summary><pre>" in html
    run = query.start(settings={"batch_rows": 1})  # the batches before the last one have a watermark
    run.wait()
    assert "watermark" not in repr(run) + run._repr_html_()
    assert len(repr(summary)) < 1000 and "rows_out=1" in repr(summary)

    run = el.query("SELECT k FROM s", {"s": stream}).start(sink=lambda batch: 1 / 0)
    with pytest.raises(JobError):
        run.wait()
    assert repr(run) == "<Run failed: the sink raised ZeroDivisionError: division by zero>"
    assert "<td>the sink raised ZeroDivisionError" in run._repr_html_()


def test_a_script_on_the_local_engine(rows: pa.Table) -> None:
    script = """CREATE STREAM g (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 5) TIMESTAMP BY ts;
                SELECT COUNT(*) AS n FROM g"""
    assert el.query(script).start(engine="local").to_arrow().to_pylist() == [{"n": 5}]
    assert "what the script declares" in repr(el.query(script))
    with pytest.raises(SettingError, match="engine is 'spark' or 'local', not 'flink'"):
        el.query(script).start(engine="flink")
    with pytest.raises(SettingError, match="foreach_batch is for streams of Spark"):
        el.query(script).start(engine="local", foreach_batch=print)


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_preference_changes_the_order_and_can_be_changed(table: Table, tmp_path: Path, with_checkpoint: bool) -> None:
    changed, first = threading.Event(), threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table("k", (0, 1), (1, 2), (2, 3)).to_batches()
        assert changed.wait(300)
        yield from table("k", (3, 4), (4, 5), (5, 6)).to_batches()

    found: list[int] = []

    def take(batch: pa.RecordBatch) -> None:
        found.extend(batch.column("k").to_pylist())
        first.set()

    query = el.query("SELECT k FROM s", {"s": el.stream(batches(), time="ts")}, prefer="k = 3")
    assert "preferred rows come first: s with s.k = 3" in query.explain()
    run = query.start(
        take, checkpoint=tmp_path / "c" if with_checkpoint else None, settings={"batch_rows": 3, "input_batch": 1}
    )
    assert first.wait(300)
    with pytest.raises(SettingError, match="prefer: 'x = 1': there is no column 'x'"):
        run.prefer("x = 1")
    run.prefer("k = 5")
    changed.set()
    summary = run.wait()
    assert found == [3, 1, 2, 5, 4, 6]
    assert summary is not None and summary.prefer == "k = 5" and summary.decisions["preference"] == 2
    assert "preferred rows come first: s with s.k = 5" in summary.plan


def test_a_wrong_preference_is_refused_at_the_start(rows: pa.Table) -> None:
    query = el.query("SELECT k FROM s", {"s": el.stream(rows, time="ts")})
    with pytest.raises(SettingError, match=r"prefer: the query does not keep s\.ts"):
        query.start(settings={"prefer": "ts > TIMESTAMP '2026-01-01'"})
    with pytest.raises(SettingError, match="a preference is a text of SQL, or None, not 5"):
        query.start().prefer(5)  # type: ignore[arg-type]


def test_results_of_a_run_without_an_end(table: Table, tmp_path: Path) -> None:
    """They are never complete, unless the run is stopped."""
    pq.write_table(table("k", (1, 1), (2, 2)), tmp_path / "0.parquet")
    script = f"CREATE STREAM s USING parquet OPTIONS (path '{tmp_path}') TIMESTAMP BY ts; SELECT k FROM s"
    with el.query(script).start(follow=True) as run:
        with pytest.raises(SettingError, match=r"this run has no end, .* stop it first with run\.stop\(\)"):
            run.to_pandas()
        while run.progress().rows_out < 2:
            time.sleep(0.01)
        run.stop()
        assert run.to_arrow()["k"].to_pylist() == [1, 2] and run.state == "stopped"


def test_polars(table: Table) -> None:
    streams = {"s": el.stream(table("k", (1, 1), (2, 2)), time="ts")}
    assert el.query("SELECT k FROM s", streams).start().to_polars()["k"].to_list() == [1, 2]
    with pytest.raises(SettingError, match=r"polars cannot hold these results: .*interval.*; use to_arrow"):
        el.query("SELECT INTERVAL '1' MONTH AS m FROM s", streams).start().to_polars()


def test_a_dashboard_while_it_runs(rows: pa.Table) -> None:
    query = el.query("SELECT k FROM s", {"s": el.stream(rows, time="ts")})
    assert query.start(dashboard=True).wait() is not None
    query = el.query("SELECT k FROM s", {"s": el.stream(rows, time="ts")})
    assert query.start().dashboard is None
    go = threading.Event()
    run = query.start(sink=lambda batch: go.wait(20), dashboard=0)
    assert run.dashboard is not None
    with urllib.request.urlopen(run.dashboard, timeout=300) as page:
        assert b"Eddyline" in page.read()
    go.set()
    run.wait()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(run.dashboard, timeout=20)
    with pytest.raises(SettingError, match=r"characters too \(dashboard_token=\)$"):
        query.start(dashboard="0.0.0.0:0")
