"""Tables of other systems as sinks: every batch once, whatever dies; what does not fit is refused before a row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import psycopg.rows
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from eddyline import faults
from eddyline.errors import EddylineError, JobError, ScriptError, SettingError
from eddyline.runtime.reporting.summary import Summary
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sinks.table_sink import GATHERED_ROWS, TableSink
from eddyline.settings import from_mapping
from lab.fuzz.fault_points import fault_points
from lab.servers.postgres import NoPostgres, PostgresServer, postgres_server

STREAM = "CREATE STREAM {0} (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 600, rate 100, k.domain '1..40')"
STREAMS = "".join(f"{STREAM.format(name)} TIMESTAMP BY ts;" for name in "ab")
JOIN = "SELECT a.k, a.ts AS x, b.ts AS y FROM a [RANGE 2 SECONDS] AS a, b [RANGE 2 SECONDS] AS b WHERE a.k = b.k"
POINTS = (
    "before publish",
    "after commit",
    "sink: before rows are handed over",
    "sink: rows are handed over",
    *(name for name in fault_points() if name.startswith("table: ")),
)


class Dead(BaseException):
    """The process is dead: nothing after this happens."""


@dataclass(frozen=True)
class System:
    """A system with a table that a job writes to: the sink's declaration, and all rows, read by another library."""

    sink: str
    rows: Callable[[], list[dict[str, Any]]]

    @property
    def script(self) -> str:
        return f"{STREAMS} CREATE SINK out {self.sink}; INSERT INTO out {JOIN}"


def delta_rows(path: str = "out") -> list[dict[str, Any]]:
    return pl.read_delta(path).to_dicts()


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    try:
        with postgres_server() as server:
            yield server
    except NoPostgres as error:
        pytest.skip(str(error))


def postgres_rows(url: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        if connection.execute("SELECT to_regclass('results') IS NULL AS x").fetchone() == {"x": True}:
            return []
        return connection.execute("SELECT * FROM results").fetchall()


def iceberg_rows(folder: Path) -> list[dict[str, Any]]:
    catalog = load_catalog("default", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"{folder}/lake")
    if not catalog.table_exists("lake.out"):
        return []
    return catalog.load_table("lake.out").scan().to_arrow().to_pylist()


@pytest.fixture(params=["delta", "postgres", "iceberg"])
def system(request: pytest.FixtureRequest, in_folder: Path) -> System:
    if request.param == "delta":
        return System("USING delta OPTIONS (path 'out')", delta_rows)
    if request.param == "iceberg":
        where = f"catalog.type 'sql', catalog.uri 'sqlite:///{in_folder}/c.db'"
        where += f", catalog.warehouse '{in_folder}/lake'"
        sink = f"USING iceberg OPTIONS (table 'lake.out', create 'true', {where})"
        return System(sink, lambda: iceberg_rows(in_folder))
    url = request.getfixturevalue("database").url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS results, eddyline_batches")
    return System(f"USING postgres OPTIONS (url '{url}', table 'results', create 'true')", lambda: postgres_rows(url))


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.fixture(scope="module")
def expected() -> list[str]:
    """All results, without a sink of another system."""
    taken: list[pa.RecordBatch] = []
    LocalRunner(prepare(STREAMS + JOIN, sink=CallbackSink(taken.append)), from_mapping({})).run()
    return in_order([row for batch in taken for row in batch.to_pylist()])


def run(text: str, checkpoint: str | None = "checkpoint", **settings: Any) -> Summary:
    chosen = from_mapping({"at_end": "flush", **settings})
    return LocalRunner(prepare(text, checkpoint=checkpoint), chosen, checkpoint).run()


@pytest.fixture
def dying() -> Iterator[Callable[[str, int], None]]:
    """Makes the process die when it comes to a point for the n-th time."""

    def die(point: str, time: int) -> None:
        seen = Counter[str]()

        def reached(name: str) -> None:
            seen[name] += 1
            if name == point and seen[name] == time:
                raise Dead

        faults.inject(reached)

    yield die
    faults.inject(None)


def test_without_a_checkpoint(system: System, expected: list[str]) -> None:
    run(system.script, None)
    assert in_order(system.rows()) == expected


def test_each_batch_is_one_step(system: System, expected: list[str]) -> None:
    run(system.script, batch_rows=200)
    assert in_order(system.rows()) == expected


@pytest.mark.parametrize("point", POINTS)
def test_every_row_is_there_once_whatever_dies(
    point: str, system: System, expected: list[str], dying: Callable[[str, int], None]
) -> None:
    """The second run cuts the streams into other batches: the rows of a batch that runs again are others."""
    dying(point, 2)
    if point == "table: rows are copied" and "postgres" not in system.sink:
        pytest.skip("only a database has a moment between the rows and the end of the step")
    with pytest.raises(Dead):
        run(system.script, batch_rows=100)
    faults.inject(None)
    before = Counter(in_order(system.rows()))
    assert before.total() < len(expected) and max(before.values(), default=1) == 1
    run(system.script, batch_rows=270)
    assert in_order(system.rows()) == expected


def test_a_finished_job_delivers_its_last_batch_again(
    system: System, expected: list[str], dying: Callable[[str, int], None]
) -> None:
    slide = system.script.replace("2 SECONDS]", "2 SECONDS SLIDE 2 SECONDS]").replace(
        "a.k, a.ts AS x, b.ts AS y", "a.k, max(a.ts) AS x, count(*) AS n"
    ) + " GROUP BY a.k"  # fmt: skip
    dying("after commit", 4)
    with pytest.raises(Dead):
        run(slide, batch_rows=600)
    faults.inject(None)
    before = len(system.rows())
    run(slide, batch_rows=600)
    after = system.rows()
    run(slide, batch_rows=600)
    assert len(after) > before and system.rows() == after


@pytest.mark.long
def test_a_killed_process(in_folder: Path, expected: list[str]) -> None:
    system = System("USING delta OPTIONS (path 'out')", delta_rows)
    program = f"""
import os, signal
from eddyline import faults
from tests.runtime.sinks.test_table_sink import run
seen = []
def reached(name):
    seen.append(name)
    if seen.count("table: a step is done") == 2:
        os.kill(os.getpid(), signal.SIGKILL)
faults.inject(reached)
run({system.script!r}, batch_rows=150)
"""
    where = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": where}, check=False)
    assert ran.returncode == -signal.SIGKILL and 0 < len(system.rows()) < len(expected)
    run(system.script, batch_rows=150)
    assert in_order(system.rows()) == expected


def test_an_old_copy_of_a_checkpoint(in_folder: Path, system: System, dying: Callable[[str, int], None]) -> None:
    dying("after commit", 3)
    with pytest.raises(Dead):
        run(system.script, batch_rows=100)
    faults.inject(None)
    subprocess.run(["cp", "-r", "checkpoint", "old"], check=True)
    run(system.script, batch_rows=100)
    with pytest.raises(EddylineError, match=r"holds batch \d+ of this job, .* of batch 2: the checkpoint is an old"):
        run(system.script, "old", batch_rows=100)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_run_with_a_copy_of_the_checkpoint_at_the_same_time(
    in_folder: Path, system: System, steps: int, expected: list[str], dying: Callable[[str, int], None]
) -> None:
    """Both runs begin with the same commit; the copy writes some batches before the first one writes its first."""
    system = replace(system, sink=f"{system.sink.removesuffix(')')}, mode 'append')")  # else the table keeps it out
    dying("before decide", 3)
    with pytest.raises(Dead):
        run(system.script, batch_rows=100)
    subprocess.run(["cp", "-r", "checkpoint", "copy"], check=True)

    def begin_the_copy(name: str) -> None:
        if name == "table: before a step":
            dying("table: a step is done", steps)
            with pytest.raises(Dead):
                run(system.script, "copy", batch_rows=70)
            faults.inject(None)

    faults.inject(begin_the_copy)
    with pytest.raises(JobError, match=r"has batch \d+ of another run of this job; start it again"):
        run(system.script, batch_rows=100)
    with pytest.raises(SettingError, match=r"holds batch \d+ of this job, but|has batch \d+ of another run"):
        run(system.script, batch_rows=100)
    run(system.script, "copy", batch_rows=70)
    assert in_order(system.rows()) == expected


def test_another_sink_while_rows_wait(in_folder: Path, expected: list[str], dying: Callable[[str, int], None]) -> None:
    lake = System("USING delta OPTIONS (path 'out')", delta_rows).script
    files = System("USING parquet OPTIONS (path 'files')", list).script
    dying("after commit", 3)
    with pytest.raises(Dead):
        run(lake, batch_rows=200)
    faults.inject(None)
    with pytest.raises(SettingError, match="before the sink of results had the rows of batch 2; run the job once more"):
        run(files, batch_rows=200)
    assert not list(in_folder.glob("files/part-*"))
    dying("after commit", 2)
    with pytest.raises(Dead):
        run(System("USING delta OPTIONS (path 'other')", list).script, batch_rows=200)  # a sink of this kind gets them
    faults.inject(None)
    dying("sink: before rows are handed over", 2)
    with pytest.raises(Dead):
        run(lake, batch_rows=200)
    faults.inject(None)
    run(lake, batch_rows=200)
    assert in_order([*delta_rows(), *delta_rows("other")]) == expected


def test_another_sink_where_no_row_waits(
    in_folder: Path, expected: list[str], dying: Callable[[str, int], None]
) -> None:
    dying("before decide", 4)
    with pytest.raises(Dead):
        run(System("USING delta OPTIONS (path 'out')", delta_rows).script, batch_rows=200)
    faults.inject(None)
    run(System("USING parquet OPTIONS (path 'files')", list).script, batch_rows=200)
    assert in_order([*delta_rows(), *pl.read_parquet("files/part-*").to_dicts()]) == expected


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_a_second_run_at_the_same_time(
    in_folder: Path, system: System, shared: bool, kept: bool, expected: list[str]
) -> None:
    if shared:
        system = replace(system, sink=f"{system.sink.removesuffix(')')}, mode 'append')")
    script, first, second = system.script, "first" if kept else None, "second" if kept else None
    chosen, begun = from_mapping({"at_end": "flush", "batch_rows": 200}), list[int]()

    def begin_another(progress: object) -> None:
        if begun:
            return
        begun.append(1)
        if shared:
            run(script, second)
            return
        with pytest.raises(JobError, match=r"^another run writes to the \w+ table [a-z.]+ now \(.*process"):
            run(script, second)

    LocalRunner(prepare(script, checkpoint=first), chosen, first).run(watch=begin_another)
    assert begun and in_order(system.rows()) == sorted(expected * (2 if shared else 1))
    run(script, "third" if kept else None)
    assert in_order(system.rows()) == sorted(expected * (3 if shared else 2))


def test_two_jobs_write_to_one_table(system: System, expected: list[str]) -> None:
    run(system.script, "one", batch_rows=200)
    run(system.script, "two", batch_rows=300)
    assert in_order(system.rows()) == sorted(expected * 2)


def test_late_and_dead_rows(in_folder: Path) -> None:
    (in_folder / "data").mkdir()
    lines = [f'{{"ts": "2026-01-01 00:00:{s:02}", "k": {s}}}' for s in (1, 30, 2, 31)]
    (in_folder / "data" / "x.json").write_text("\n".join([*lines, '{"ts": "soon", "k": 5}']))
    run(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING json OPTIONS (path 'data')"
        " TIMESTAMP BY ts LATE INTO late DEAD INTO dead;"
        " CREATE SINK late USING delta OPTIONS (path 'late'); CREATE SINK dead USING delta OPTIONS (path 'dead');"
        " CREATE SINK out USING delta OPTIONS (path 'out'); INSERT INTO out SELECT k FROM s",
        batch_rows=2,
    )
    assert sorted(row["k"] for row in delta_rows("out")) == [1, 30, 31]
    assert [row["k"] for row in delta_rows("late")] == [2]
    (dead,) = delta_rows("dead")
    assert dead["k"] == "5" and dead["reason"]


class _Table:
    """A table that keeps the sizes of its steps."""

    name = "the table"

    def __init__(self) -> None:
        self.steps: list[int] = []

    def check(self) -> None: ...
    def open(self) -> None: ...
    def close(self) -> None: ...
    def newest(self, owner: object) -> None: ...

    def add(self, rows: Callable[[], Iterator[pa.RecordBatch]], delivery: object) -> None:
        self.steps.append(sum(batch.num_rows for batch in rows()))


def test_rows_without_a_checkpoint_are_gathered() -> None:
    table, now = _Table(), 0.0
    sink = TableSink(table, lambda: now)
    rows = pa.record_batch({"x": list(range(GATHERED_ROWS // 2))})
    for _ in range(3):
        sink.write(rows)
    assert table.steps == [GATHERED_ROWS]
    now = 2.0
    sink.write(rows.slice(0, 1))
    assert table.steps == [GATHERED_ROWS, GATHERED_ROWS // 2 + 1]
    sink.write(rows.slice(0, 5))
    sink.close()
    assert table.steps[2:] == [5]


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, system: System) -> None:
    format_ = system.sink.split()[1]
    monkeypatch.delitem(sys.modules, f"eddyline.runtime.sinks.{format_}", raising=False)
    for library in ("deltalake", "psycopg", "pyiceberg.catalog", "confluent_kafka"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ScriptError, match=rf"a sink in {format_} needs .*; type: .* -m pip install "):
        prepare(system.script)


def test_a_table_that_goes_away(in_folder: Path, dying: Callable[[str, int], None]) -> None:
    import shutil

    system = System("USING delta OPTIONS (path 'out')", delta_rows)

    def reached(name: str) -> None:
        if name == "table: before a step":
            shutil.rmtree("out", ignore_errors=True)

    faults.inject(reached)
    with pytest.raises(JobError, match="the Delta table out"):
        run(system.script, batch_rows=200)
