from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from eddyline.balance.tuning import BalanceTuning
from eddyline.errors import EddylineError, JobError, ScriptError, SettingError
from eddyline.optimizer.pressure import Pressure
from eddyline.protocol.balancer import Balancer
from eddyline.protocol.coordinator import Coordinator
from eddyline.runtime.running import job_driver
from eddyline.runtime.running.memory_share import FOLDER_SHARE, SHARE, usable_memory
from eddyline.setting_kinds import size_text
from eddyline.spark.runner import STARTS, SparkRunner
from eddyline.state.own_folder import host_memory
from lab.fuzz.spark_cases import MODULES
from tests.conftest import Ran, at
from tests.support.spilling import group_of

Files = Callable[..., str]
Tables = Callable[..., pa.Table]
Runs = Callable[..., Ran]


def _sorted(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("slots", [1, pytest.param(3, marks=pytest.mark.gate)])
def test_a_join(run_on_spark: Runs, files: Files, table: Tables, slots: int) -> None:
    a = [table("k v", *[(i, i % 3, i) for i in part]) for part in (range(20), range(20, 40))]
    b = [table("k w", *[(i + 0.5, i % 3, 100 + i) for i in part]) for part in (range(20), range(20, 40))]
    text = f"CREATE STREAM {files('a', *a)}; CREATE STREAM {files('b', *b)};"
    text += "SELECT a.v AS v, b.w AS w FROM a [RANGE 4 SECONDS] AS a, b [RANGE 4 SECONDS] AS b WHERE a.k = b.k"
    ran = run_on_spark(text, slots=slots, batch_rows=40)
    pairs = [(v, 100 + w) for v in range(40) for w in range(40) if v % 3 == w % 3 and abs(v - w - 0.5) <= 4]
    assert _sorted(ran.rows) == sorted(pairs)
    assert (ran.summary.rows_in, ran.summary.rows_used, ran.summary.rows_out) == (80, 80, len(pairs))
    assert not ran.summary.stopped


@pytest.mark.gate
def test_groups_leave_memory(run_on_spark: Runs, files: Files, table: Tables) -> None:
    parts = [table("k v", *[(i, i % 37, i) for i in range(n, n + 100)]) for n in range(0, 600, 100)]
    text = f"CREATE STREAM {files('a', *parts)};"
    text += "SELECT x.v AS v, y.v AS w FROM a [RANGE 200 SECONDS] AS x, a [RANGE 200 SECONDS] AS y WHERE x.k = y.k"
    ran = run_on_spark(text, batch_rows=100, memory="5KB")
    pairs = [(v, w) for v in range(600) for w in range(v % 37, 600, 37) if abs(v - w) <= 200]
    assert _sorted(ran.rows) == sorted(pairs)
    assert ran.summary.decisions["spill"] > 0 and ran.summary.decisions["sweep"] > 0


def test_slots_learn_how_many_rows_wait(
    run_on_spark: Runs, files: Files, table: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressures: list[Pressure] = []
    original = Coordinator.begin

    def spy(self: Coordinator, *args: Any, **named: Any) -> Any:
        pressures.extend(value for value in named.values() if isinstance(value, Pressure))
        return original(self, *args, **named)

    monkeypatch.setattr(Coordinator, "begin", spy)
    parts = [table("k", *((number, k) for k in range(100))) for number in range(4)]
    run_on_spark(f"CREATE STREAM {files('s', *parts)}; SELECT k FROM s", batch_rows=100, trigger=0.001)
    assert [pressure.backlog for pressure in pressures] == [150, 100, 50, 0]
    assert pressures[0].busy == 0 and all(pressure.busy > 1 for pressure in pressures[1:])


@pytest.mark.gate
def test_groups_move_between_slots(
    run_on_spark: Runs, files: Files, table: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most keys are in groups of one of three slots, which gives some of them away."""
    keys = [key for key in range(9999) if group_of(key, 256) < 85][:1600] + list(range(800))
    time = {key: n / 10 for n, key in enumerate(dict.fromkeys(keys))}
    rows = [(time[key] + turn * 200, key, turn) for turn in range(5) for key in time]
    parts = [table("k v", *rows[n : n + 2000]) for n in range(0, len(rows), 2000)]
    text = f"CREATE STREAM {files('a', *parts)};"
    text += "SELECT x.k, x.v, y.v AS w FROM a [RANGE 400 SECONDS] AS x, a [RANGE 400 SECONDS] AS y WHERE x.k = y.k"
    eager = BalanceTuning(interval=0.0, floor_bytes=1, cpu_max=1e6, patience=1)
    monkeypatch.setattr(job_driver, "Balancer", partial(Balancer, tuning=eager))
    ran = run_on_spark(text, slots=3, batch_rows=2000, balance="auto")
    assert _sorted(ran.rows) == sorted((k, v, w) for k in time for v in range(5) for w in range(5) if abs(v - w) < 3)
    assert ran.summary.decisions["move"] > 0


def test_slots_share_a_hot_key(
    run_on_spark: Runs, files: Files, table: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every third row has the same key; in the second half none has."""
    rows = [(n, 7 if n % 3 == 0 and n < 600 else n, n) for n in range(1200)]
    parts = [table("k v", *rows[n : n + 150]) for n in range(0, len(rows), 150)]
    text = f"CREATE STREAM {files('a', *parts)};"
    text += "SELECT x.v, y.v AS w FROM a [RANGE 90 SECONDS] AS x, a [RANGE 90 SECONDS] AS y WHERE x.k = y.k"
    quick = BalanceTuning(interval=0.0, patience=1, cpu_max=0.0, cool_patience=2)
    monkeypatch.setattr(job_driver, "Balancer", partial(Balancer, tuning=quick))
    ran = run_on_spark(text, slots=3, batch_rows=150, balance="auto")
    near = [(v, w) for _, k, v in rows for _, j, w in rows[max(0, v - 90) : v + 91] if k == j]
    assert _sorted(ran.rows) == sorted(near)
    assert ran.summary.decisions["share"] and ran.summary.decisions["unshare"]


AGGREGATED = """SELECT x.k, COUNT(*) AS n, window_end() AS w FROM a [RANGE 200 SECONDS SLIDE 50 SECONDS] AS x,
a [RANGE 200 SECONDS SLIDE 50 SECONDS] AS y WHERE x.k = y.k GROUP BY x.k"""
JOINED = "SELECT x.v, y.v AS w FROM a [RANGE 200 SECONDS] AS x, a [RANGE 200 SECONDS] AS y WHERE x.k = y.k"


@pytest.mark.parametrize("query", [JOINED, AGGREGATED])
def test_slots_follow_the_cores_of_executors(run_on_spark: Runs, files: Files, table: Tables, query: str) -> None:
    """No batch knows of a restart: slots come and go in the run."""
    parts = [table("k v", *[(i, i % 37, i) for i in range(n, n + 50)]) for n in range(0, 500, 50)]
    text = f"CREATE STREAM {files('a', *parts)}; {query}"
    batches: list[int] = []

    def cores() -> int:
        batches.append(len(batches))
        return 5 if batches[-1] < 5 else 3

    ran = run_on_spark(text, batch_rows=50, slots="auto", balance="auto", cores=cores)
    assert ran.summary.decisions["slots"] == 2 and ran.summary.batches >= 10
    assert _sorted(ran.rows) == _sorted(run_on_spark(text, batch_rows=300, slots=1).rows)
    assert "5 slots in place of" in ran.summary.plan and "3 slots in place of 5" in ran.summary.plan


def test_a_number_of_slots_that_is_told_stays(run_on_spark: Runs, files: Files, table: Tables) -> None:
    parts = [table("k v", *[(i, i % 37, i) for i in range(n, n + 50)]) for n in range(0, 300, 50)]
    text = f"CREATE STREAM {files('a', *parts)}; {JOINED}"
    for balance, slots in (("auto", 2), ("off", "auto")):
        summary = run_on_spark(text, batch_rows=50, slots=slots, balance=balance, cores=lambda: 5).summary
        assert "slots" not in summary.decisions and summary.batches >= 6


def test_no_batch_is_too_large_for_memory(run_on_spark: Runs, files: Files, table: Tables) -> None:
    parts = [table("k v", *[(i / 100, i % 997, i) for i in range(n, n + 500)]) for n in range(0, 20_000, 500)]
    stream = files("a", *parts, lateness="LATENESS 1 HOUR")
    text = f"CREATE STREAM {stream}; SELECT x.v FROM a AS x, a AS y WHERE x.k = y.k AND x.v = y.v"
    summary = run_on_spark(text, memory="800KB").summary
    assert summary.rows_out == 20_000 and summary.batches > 3 and summary.groups_left > 0
    assert summary.peak_memory_bytes < 2 * 800_000


@pytest.mark.parametrize("slots", [1, 2])
def test_a_share_of_the_host_for_each_slot(run_on_spark: Runs, files: Files, table: Tables, slots: int) -> None:
    text = f"CREATE STREAM {files('a', table('k', (0, 1)))}; SELECT x.k FROM a AS x, a AS y WHERE x.k = y.k"
    summary = run_on_spark(text, slots=slots, memory="auto").summary
    shared = os.statvfs(host_memory())
    most = min(SHARE * usable_memory(), FOLDER_SHARE * shared.f_frsize * shared.f_blocks)
    assert summary.memory_limit == int(most / slots)
    assert f"where it is full ({size_text(summary.memory_limit)} for each slot)" in summary.plan


@pytest.mark.gate
def test_an_aggregate_whose_groups_cross_slots(run_on_spark: Runs, files: Files, table: Tables) -> None:
    a = table("k g v", *[(i, i % 5, i % 2, i) for i in range(20)])
    b = table("k w", *[(i, i % 5, 1) for i in range(20)])
    text = f"CREATE STREAM {files('a', a)}; CREATE STREAM {files('b', b)};"
    text += """SELECT g, COUNT(*) AS n, SUM(a.v) AS s FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS] AS a,
               b [RANGE 10 SECONDS SLIDE 10 SECONDS] AS b WHERE a.k = b.k GROUP BY g"""
    ran = run_on_spark(text, slots=3)
    wanted: dict[tuple[int, int], list[int]] = {}
    for v in range(20):
        for w in range(20):
            if v % 5 == w % 5 and -(-v // 10) == -(-w // 10):
                wanted.setdefault((-(-v // 10), v % 2), []).append(v)
    assert _sorted(ran.rows) == sorted((g, len(vs), sum(vs)) for (_, g), vs in wanted.items())


def test_rows_windows_count_over_all_slots(run_on_spark: Runs, files: Files, table: Tables) -> None:
    a = table("k v", *[(i, i % 2, i) for i in range(12)])
    b = table("k w", (11.5, 0, 1), (11.6, 1, 2))
    text = f"CREATE STREAM {files('a', a)}; CREATE STREAM {files('b', b)};"
    text += "SELECT a.v AS v, b.w AS w FROM a [ROWS 4] AS a, b [ROWS 1] AS b WHERE a.k = b.k"
    assert _sorted(run_on_spark(text, slots=2).rows) == [(8, 1), (9, 2), (10, 1), (11, 2)]


def test_a_table_is_in_every_window(run_on_spark: Runs, files: Files, table: Tables) -> None:
    names = pa.table({"k": [0, 1], "name": ["even", "odd"]})
    text = f"CREATE STREAM {files('a', table('k v', *[(i, i % 2, i) for i in range(6)]))}; CREATE TABLE "
    text += f"{files('t', names)}; SELECT v, name FROM a [RANGE 1 SECOND] AS a, t WHERE a.k = t.k"
    assert _sorted(run_on_spark(text).rows) == [(i, "odd" if i % 2 else "even") for i in range(6)]


def test_late_and_dead_rows_go_to_their_sinks(run_on_spark: Runs, files: Files, table: Tables, tmp_path: Path) -> None:
    a = [table("v", (10, 1), (None, 2)), table("v", (3, 3), (11, 4))]
    text = f"CREATE STREAM {files('a', *a, lateness='LATENESS 2 SECONDS LATE INTO late DEAD INTO dead')};"
    for name, format_ in (("late", "json"), ("dead", "csv"), ("out", "parquet")):
        text += f"CREATE SINK {name} USING {format_} OPTIONS (path '{tmp_path / name}');"
    ran = run_on_spark(text + "INSERT INTO out SELECT v FROM a", batch_rows=1)
    assert (ran.summary.rows_in, ran.summary.rows_used, ran.summary.rows_late, ran.summary.rows_dead) == (4, 2, 1, 1)
    with duckdb.connect() as db:
        assert db.sql(f"SELECT v FROM '{tmp_path}/out/*.parquet' ORDER BY v").fetchall() == [(1,), (4,)]
        assert db.sql(f"SELECT v FROM '{tmp_path}/late/*.json'").fetchall() == [(3,)]
        dead = db.sql(f"SELECT v, reason FROM '{tmp_path}/dead/*.csv'").fetchall()
    assert [(v, "NULL" in reason) for v, reason in dead] == [(2, True)]
    seen = ran.summary.streams["a"]
    assert (seen["lateness"], seen["largest_lateness_seconds"], seen["dead_share"]) == ("10 SECONDS", 7.0, 0.25)
    assert seen["first_dead"] == "the event time is NULL or out of range: ts is NULL"
    assert not list(tmp_path.glob("*/_staged"))


def _long_job(files: Files, table: Tables, out: Path) -> str:
    parts = [table("k v", *[(i, i % 4, i) for i in range(n, n + 10)]) for n in range(0, 80, 10)]
    text = f"CREATE STREAM {files('a', *parts)}; CREATE SINK out USING parquet OPTIONS (path '{out}');"
    return (
        text
        + """INSERT INTO out SELECT x.v AS v, y.v AS w FROM a [RANGE 8 SECONDS] AS x, a [RANGE 8 SECONDS] AS y
                     WHERE x.k = y.k"""
    )


@pytest.mark.gate
def test_stopped_in_the_middle_it_goes_on_with_other_slots_and_files_elsewhere(
    run_on_spark: Runs, files: Files, table: Tables, tmp_path: Path
) -> None:
    text, checkpoint, out = _long_job(files, table, tmp_path / "out"), tmp_path / "checkpoint", tmp_path / "out"

    def two_batches() -> bool:
        return len({file.name.split("-")[1] for file in out.glob("part-*")}) >= 2

    first = run_on_spark(text, checkpoint, two_batches, slots=2, batch_rows=10)
    assert first.summary.stopped and 20 <= first.summary.rows_in < 80
    (tmp_path / "a").rename(tmp_path / "moved")
    text = text.replace(f"'{tmp_path / 'a'}'", f"'{tmp_path}/moved/*.parquet'")
    second = run_on_spark(text, checkpoint, slots=3, batch_rows=30, router="random")
    pairs = sorted((v, w) for v in range(80) for w in range(80) if v % 4 == w % 4 and abs(v - w) <= 8)
    with duckdb.connect() as db:
        assert sorted(db.sql(f"SELECT v, w FROM '{out}/*.parquet'").fetchall()) == pairs
    assert not second.summary.stopped
    assert (second.summary.rows_in, second.summary.rows_out) == (80, len(pairs)), "counts are the whole job's"
    again = run_on_spark(text, checkpoint)
    assert (again.summary.rows_out, again.summary.batches, again.summary.stopped) == (len(pairs), 0, False)
    more = table("k v", *[(i, i % 4, i) for i in range(80, 90)])
    pq.write_table(more, tmp_path / "moved" / "8.parquet")
    with pytest.raises(JobError, match=r"is finished: .* new rows, which need a new checkpoint"):
        run_on_spark(text, checkpoint)
    other = text.replace("8 SECONDS", "9 SECONDS")
    with pytest.raises(SettingError, match=r"does not fit: query was .*new checkpoint folder"):
        run_on_spark(other, checkpoint)


def test_one_folder_and_two_engines(
    spark: SparkSession, run_on_spark: Runs, run_script: Runs, files: Files, table: Tables, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    text = f"CREATE STREAM {files('a', table('v', *[(i, i) for i in range(10)]))};"
    text += (
        f"CREATE SINK out USING parquet OPTIONS (path '{out}', MODE rows_per_file 3); INSERT INTO out SELECT v FROM a"
    )
    error, append, replace = (text.replace("MODE", f"mode '{mode}',") for mode in ("error", "append", "overwrite"))
    run_on_spark(error)
    first = {file.name for file in out.iterdir()}
    assert all(re.fullmatch(r"part-\d{8}-\d{5}-[0-9a-f]{12}.parquet", name) for name in first)
    assert sorted(row.v for row in spark.read.parquet(str(out)).collect()) == list(range(10))
    for run in (run_on_spark, run_script):
        with pytest.raises(ScriptError, match="already holds results"):
            run(error)
    run_script(append)
    run_on_spark(append)
    (out / "batch-00000001").mkdir()
    (out / "batch-00000001" / "part-00000.parquet").write_text("of a former layout")
    assert sorted(row.v for row in spark.read.parquet(str(out)).collect()) == sorted([*range(10)] * 3)
    with pytest.raises(JobError, match="more than memory"):
        run_on_spark(replace, memory=1, spill="off")
    assert first < {file.name for file in out.iterdir()}, "it failed: the old results stay"
    run_on_spark(replace)
    assert pq.read_table(out).num_rows == 10
    assert max(pq.read_metadata(file).num_rows for file in out.iterdir()) == 3
    run_script(replace)
    assert pq.read_table(out).num_rows == 10 and not (out / "_staged").exists()


def test_folders_of_a_partition_are_written_and_read_back(
    spark: SparkSession, run_on_spark: Runs, files: Files, table: Tables, tmp_path: Path
) -> None:
    out, countries = tmp_path / "out", ["de", "a/b: %", None]
    text = f"CREATE STREAM {files('a', table('country v', *[(i, countries[i % 3], i) for i in range(12)]))};"
    text += f"CREATE SINK out USING parquet OPTIONS (path '{out}') PARTITION BY (country, m);"
    run_on_spark(text + "INSERT INTO out SELECT ts, country, v, v % 2 AS m FROM a", tmp_path / "ck", batch_rows=5)
    expected = sorted(((countries[i % 3], i, i % 2) for i in range(12)), key=repr)
    read = spark.read.parquet(str(out)).select("country", "v", "m").collect()
    assert sorted((tuple(row) for row in read), key=repr) == expected
    back = f"CREATE STREAM b USING parquet OPTIONS (path '{out}') TIMESTAMP BY ts LATENESS 1 HOUR;"
    ran = run_on_spark(back + "SELECT country, v, m FROM b")
    assert sorted((tuple(row.values()) for row in ran.rows), key=repr) == expected


def test_a_sink_on_another_file_system_is_written_by_spark(
    spark: SparkSession, run_on_spark: Runs, files: Files, table: Tables, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    text = f"CREATE STREAM {files('a', table('v', *[(i, i) for i in range(10)]))};"
    text += f"CREATE SINK out USING json OPTIONS (path '{out.as_uri()}'); INSERT INTO out SELECT v FROM a"
    run_on_spark(text)
    assert sorted(row.v for row in spark.read.json(str(out)).collect()) == list(range(10))
    assert (out / "_SUCCESS").exists()
    with pytest.raises(ScriptError, match="already holds results; add mode 'append', or choose another path"):
        run_on_spark(text)


def test_what_a_user_function_raises_is_null_and_counted(run_on_spark: Runs, files: Files, table: Tables) -> None:
    text = f"CREATE STREAM {files('a', table('v', *[(i, i) for i in range(10)]))}; SELECT fuzz_picky(v) AS p FROM a"
    ran = run_on_spark(text, modules=MODULES)
    assert sorted((row["p"] is None, row["p"] or 0) for row in ran.rows) == sorted(
        (i % 5 == 0, 0 if i % 5 == 0 else i + 1) for i in range(10)
    )
    assert ran.summary.expression_errors == 2 and "a multiple of 5" in ran.summary.first_error


def test_what_is_kept_at_the_end_goes_on(run_on_spark: Runs, files: Files, table: Tables, tmp_path: Path) -> None:
    text = f"CREATE STREAM {files('a', table('v', *[(i, i) for i in range(10)]))};"
    text += "SELECT COUNT(*) AS n FROM a [RANGE 10 SECONDS SLIDE 10 SECONDS]"
    checkpoint = tmp_path / "checkpoint"
    for given in ([{"n": 1}], []):  # the second time there is nothing new, and no batch says that it is the last
        kept = run_on_spark(text, checkpoint, at_end="keep")
        assert (kept.rows, kept.summary.rows_in, kept.summary.stopped) == (given, 10, False)
        assert kept.summary.waiting > 0
    final = run_on_spark(text, checkpoint)
    assert (final.rows, final.summary.waiting) == ([{"n": 9}], 0)


def test_a_stream_whose_rows_others_are_read_before_is_not_idle(
    run_on_spark: Runs, files: Files, table: Tables
) -> None:
    a = [table("k", *[(i, 0) for i in range(n - 5, n + 5)]) for n in range(10, 80, 10)]
    other = [table("k", *[(i, 0) for i in range(n, n + 40)]) for n in (0, 40)]
    text = f"CREATE STREAM {files('a', *a)}; CREATE STREAM {files('ended', *other)};"
    text += "SELECT a.ts FROM a [RANGE 2 SECONDS], ended [RANGE 2 SECONDS] WHERE a.k = ended.k"
    ran = run_on_spark(text, batch_rows=1, idle_timeout=0.0001)
    assert ran.summary.batches > len(a + other) and ran.summary.rows_in == 150
    assert (ran.summary.rows_late, ran.summary.rows_out) == (0, 5 * 70)


def test_an_empty_stream(run_on_spark: Runs, files: Files, table: Tables) -> None:
    empty = table("k v", (0, 0, 0)).slice(0, 0)
    text = f"CREATE STREAM {files('a', empty)}; SELECT k, COUNT(*) AS n FROM a GROUP BY k"
    ran = run_on_spark(text)
    assert ran.rows == [] and ran.summary.rows_in == 0 and not ran.summary.stopped


def test_a_wrong_path_is_refused_before_anything_runs(run_on_spark: Runs, tmp_path: Path) -> None:
    text = (
        f"CREATE STREAM a (ts TIMESTAMP) USING parquet OPTIONS (path '{tmp_path}/no') TIMESTAMP BY ts; SELECT ts FROM a"
    )
    with pytest.raises(ScriptError, match="no"):
        run_on_spark(text, tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_a_file_that_is_damaged_later_fails_the_job_with_its_name(
    run_on_spark: Runs, files: Files, table: Tables, tmp_path: Path
) -> None:
    text = f"CREATE STREAM {files('a', table('v', (1, 1)), table('v', (2, 2)))}; SELECT v FROM a"
    (tmp_path / "a" / "1.parquet").write_bytes(b"PAR1 not any more PAR1")
    with pytest.raises(EddylineError, match=r"1\.parquet"):
        run_on_spark(text)


def test_nothing_is_left_of_the_arenas(run_on_spark: Runs, files: Files, table: Tables, tmp_path: Path) -> None:
    text = f"CREATE STREAM {files('a', table('v', (1, 1)))}; SELECT v, ts FROM a"
    assert run_on_spark(text, arena_dir=tmp_path / "arenas").rows == [{"v": 1, "ts": at(1)}]
    assert list((tmp_path / "arenas").iterdir()) == []


@pytest.mark.parametrize("late", [2, STARTS])
def test_a_query_that_waited_in_vain_for_a_process_is_started_again(
    run_on_spark: Runs, files: Files, table: Tables, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first query fails at once, as Spark's queries do on a busy machine after ten seconds; the next query is
    real."""
    real, left = SparkRunner._query, [late]

    def query(self: SparkRunner, query: StreamingQuery, stop: Callable[[], bool]) -> Exception | None:
        if not left[0]:
            return real(self, query, stop)
        left[0] -= 1
        self._stopping = True  # as the real one says when a query has ended
        query.stop()
        return PySparkException("[STREAM_FAILED] Query terminated: Python worker failed to connect back.")

    monkeypatch.setattr(SparkRunner, "_query", query)
    text = f"CREATE STREAM {files('a', table('v', (1, 1), (2, 2)))}; SELECT v FROM a"
    if late < STARTS:
        assert _sorted(run_on_spark(text).rows) == [(1,), (2,)]
    else:
        with pytest.raises(JobError, match="failed to connect back"):
            run_on_spark(text)


def test_files_are_read_once_each_whatever_their_names(
    run_on_spark: Callable[..., Ran], tmp_path: Path, table: Callable[..., pa.Table]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    text = f"CREATE STREAM s USING parquet OPTIONS (path '{folder}') TIMESTAMP BY ts LATENESS 1 HOUR; SELECT v FROM s"

    def run(name: str, *values: int) -> list[int]:
        pq.write_table(table("v", *((v, v) for v in values)), folder / name, row_group_size=2)
        return sorted(row["v"] for row in run_on_spark(text, tmp_path / "checkpoint", at_end="keep").rows)

    assert run("5.parquet", 1, 2, 3) == [1, 2, 3]
    for commit in (tmp_path / "checkpoint" / "spark" / "commits").iterdir():
        commit.unlink()  # Spark is stopped before it notes that it is done, now and then: it asks for the batch again
    assert run("2.parquet", 4, 5) == [4, 5]
    (folder / "5.parquet").unlink()
    assert run("3.parquet", 6) == [6]
    with pytest.raises(JobError, match=r"in/2.parquet changed after it was read: it had \d+ bytes"):
        run("2.parquet", 4, 5, 7)
