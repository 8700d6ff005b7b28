"""A job and its checkpoint on the local engine: what fits, what is refused, and what remains."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.errors import EddylineError, JobError, ScriptError, SettingError
from eddyline.protocol.home import checkpoint_at
from eddyline.protocol.ledger import Moves
from eddyline.runtime.reporting.summary import Summary
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sinks.folder import JOB_DIGITS
from eddyline.settings import Settings, from_mapping
from eddyline.state.folder_lock import FolderLock
from eddyline.state.log.sealed import sealed, with_label
from lab.fuzz.simulation import leftovers

SCRIPT = """
CREATE STREAM a USING parquet OPTIONS (path 'a') TIMESTAMP BY ts;
CREATE STREAM b USING parquet OPTIONS (path 'b') TIMESTAMP BY ts;
CREATE SINK out USING parquet OPTIONS (path 'out');
INSERT INTO out SELECT a.k, a.v, b.v AS w FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k;
"""


def run(text: str = SCRIPT, checkpoint: str = "checkpoint", batches: int | None = None, **settings: Any) -> Summary:
    """Run to the end, or until there were `batches` batches."""
    chosen: Settings = from_mapping({"batch_rows": 5, "at_end": "flush", **settings})
    runner = LocalRunner(prepare(text, seed=chosen.seed, checkpoint=checkpoint), chosen, checkpoint)
    return runner.run(stop=lambda: runner.reporter.progress().batches == batches)


def results() -> list[dict[str, Any]]:
    rows = [row for file in sorted(Path("out").rglob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return sorted(rows, key=repr)


@pytest.fixture
def data(in_tmp: Path, table: Callable[..., pa.Table]) -> Path:
    for name in "ab":
        (in_tmp / name).mkdir()
        rows = [(i, i % 3, f"{name}{i}") for i in range(20)]
        pq.write_table(table("k v", *rows[:10]), in_tmp / name / "0.parquet")
        pq.write_table(table("k v", *rows[10:]), in_tmp / name / "1.parquet")
    return in_tmp


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("slots", [1, 3])
def test_a_job_that_ended_leaves_its_results_and_its_last_commit(slots: int, data: Path) -> None:
    summary = run(slots=slots)
    assert summary.rows_out == len(results()) > 20
    assert leftovers("checkpoint") == [] and len(files(data / "checkpoint" / "commits")) == 1
    assert not list(data.rglob("_staged"))


def test_staged_files_have_one_folder_while_a_run_lasts(data: Path) -> None:
    """It is not made anew for each batch; a run that is refused does not remove it, and a run that stops does."""
    chosen, seen = from_mapping({"batch_rows": 5, "at_end": "flush"}), set[int]()
    runner = LocalRunner(prepare(SCRIPT), chosen, "checkpoint")

    def stop() -> bool:
        batches = runner.reporter.progress().batches
        if batches > 1:
            with pytest.raises(EddylineError, match="checkpoint"):
                run()
            (folder,) = Path("out/_staged").iterdir()
            seen.add(folder.stat().st_ino)
        return batches == 4

    runner.run(stop)
    assert len(seen) == 1 and not Path("out/_staged").exists()
    run()
    found = results()
    shutil.rmtree("out")
    run(checkpoint="another")
    assert found == results()


def test_a_finished_job_that_is_run_again_does_nothing(data: Path) -> None:
    first = run()
    before = results(), files(data)
    again = run()
    assert (results(), files(data)) == before
    assert (again.rows_in, again.rows_out, again.batches) == (first.rows_in, first.rows_out, 0) and not again.stopped


def test_a_finished_job_does_not_need_its_files(data: Path, table: Callable[..., pa.Table]) -> None:
    text = SCRIPT.replace("STREAM a", "STREAM a (ts TIMESTAMP, k BIGINT, v VARCHAR)")
    run(text)
    before = results()
    for file in (data / "a").iterdir():
        file.unlink()
    assert run(text).batches == 0 and results() == before
    pq.write_table(table("k v", (30, 0, "a30")), data / "a" / "2.parquet")
    with pytest.raises(JobError, match=r"is finished: .*; a has new rows"):
        run(text)


def test_a_finished_job_refuses_new_data(data: Path, table: Callable[..., pa.Table]) -> None:
    run()
    before = results()
    pq.write_table(table("k v", (30, 0, "b30")), data / "b" / "-1.parquet")
    with pytest.raises(JobError, match=r"is finished: its streams have ended .*; b has new rows, .* new checkpoint"):
        run()
    assert results() == before


def test_rows_that_came_too_late_go_to_a_sink_that_is_no_file(
    data: Path, table: Callable[..., pa.Table], capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(table("k v", (1, 0, "late one")), data / "a" / "2.parquet")
    text = SCRIPT.replace("'a') TIMESTAMP BY ts", "'a') TIMESTAMP BY ts LATE INTO screen")
    summary = run(text + "CREATE SINK screen USING print;")
    assert summary.rows_late == 1 and "late one" in capsys.readouterr().out


def test_spilling_cannot_be_turned_off_while_rows_are_on_disk(data: Path) -> None:
    run(checkpoint="other", memory="1GB")
    expected = results()
    shutil.rmtree("out")
    run(batches=2, memory="1GB")
    checkpoint = checkpoint_at("checkpoint")
    last = checkpoint.last()
    assert last is not None and not last.finished
    checkpoint.commit(replace(last, batch=last.batch + 1, moves=Moves(leave=tuple(range(256)))))
    for settings in ({}, {"memory": "1GB", "spill": "off"}):
        with pytest.raises(SettingError, match=r"256 partition groups of this job have rows on disk; .* set memory"):
            run(**settings)
    run(memory="1GB")
    assert results() == expected and len(expected) > 20


def test_a_slot_that_needs_too_much_memory_stops_the_job_and_its_checkpoint_stays(data: Path) -> None:
    with pytest.raises(
        JobError, match=r"more than memory=1 KB, .*cannot go to disk: spill is off; set a larger memory"
    ):
        run(memory="1KB", spill="off")
    assert run().rows_in == 40


def test_state_that_cannot_go_to_disk_stops_the_job_at_memory(data: Path) -> None:
    why = "rows wait in memory for the watermark"
    with pytest.raises(JobError, match=f"more than memory=100 bytes, after [0-9]+ rows, and cannot go to disk: {why};"):
        run(SCRIPT.replace("a [RANGE 5 SECONDS]", "a [ROWS 50]"), memory="100")


def test_a_job_that_may_take_no_memory_goes_on(data: Path) -> None:
    run(checkpoint="another")
    whole = results()
    shutil.rmtree("out")
    assert run(memory=1, spill_delay=2).decisions["sweep"] > 1 and results() == whole


MORE = """
CREATE STREAM a USING parquet OPTIONS (path 'a') TIMESTAMP BY ts;
CREATE STREAM b USING parquet OPTIONS (path 'b') TIMESTAMP BY ts;
CREATE SINK out USING parquet OPTIONS (path 'out');
"""


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, a.v, b.v AS w FROM a [RANGE 100 SECONDS], b [RANGE 300 SECONDS] WHERE a.k = b.k",
        "SELECT a.k, a.v, b.v AS w FROM a, b WHERE a.k = b.k",
        "SELECT a.k % 3 AS m, count(*) AS n FROM a [RANGE 100 SECONDS SLIDE 10 SECONDS], b [RANGE 100 SECONDS]"
        " WHERE a.k = b.k GROUP BY a.k % 3",
    ],
)
@pytest.mark.parametrize(("slots", "policy"), [(1, "productivity"), (3, "random")])
def test_groups_leave_memory_and_all_results_are_made(
    query: str, slots: int, policy: str, in_tmp: Path, table: Callable[..., pa.Table]
) -> None:
    for name in "ab":
        (in_tmp / name).mkdir()
        rows = [(i, i * i % 101, f"{name}{i}") for i in range(800)]
        pq.write_table(table("k v", *rows), in_tmp / name / "0.parquet")
    text = f"{MORE} INSERT INTO out {query};"
    run(text, checkpoint="another", batch_rows=50, slots=slots)
    whole = results()
    shutil.rmtree("out")
    summary = run(text, batch_rows=50, slots=slots, memory="10KB", spill_policy=policy)
    assert results() == whole and summary.decisions["spill"] > 2
    assert ("RANGE" not in query) == ("sweep" not in summary.decisions)
    assert any("groups of" in d["what"] and d["measured"]["bytes"] > 1000 for d in summary.decisions_log)


def test_a_checkpoint_of_spark(data: Path) -> None:
    run(batches=1)
    commit = max((data / "checkpoint" / "commits").iterdir())
    label, body = with_label(commit.read_bytes())
    commit.write_bytes(sealed(json.dumps(json.loads(body) | {"offsets": ["{}"]}).encode(), label))
    with pytest.raises(SettingError, match="belongs to a job on Spark"):
        run()


def test_a_job_goes_on_with_other_settings(data: Path) -> None:
    run(checkpoint="another")
    whole = results()
    shutil.rmtree("out")
    for slots, router in ((2, "auto"), (1, "random"), (3, "fixed")):
        run(batches=1, slots=slots, router=router)
    summary = run(slots=2)
    assert results() == whole and summary.rows_out == len(whole) and summary.rows_in == 40


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        (("a.k, a.v", "a.k"), "query was .*a.v.* and is "),
        (("a [RANGE 5 SECONDS]", "a [RANGE 6 SECONDS]"), "query was .*a RANGE 5 seconds.* and is .*a RANGE 6 seconds"),
        (
            ("'a') TIMESTAMP BY ts", "'a') TIMESTAMP BY ts LATENESS 1 SECOND"),
            "stream a: lateness was 0 seconds and is 1 second",
        ),
        (("WHERE a.k = b.k", "WHERE a.k = b.k AND a.v <> b.v"), "query was .* and is .*<>"),
    ],
)
def test_a_checkpoint_of_another_script(changed: tuple[str, str], differs: str, data: Path) -> None:
    run(batches=2)
    before = files(data)
    with pytest.raises(SettingError, match=f"the checkpoint .*checkpoint does not fit: ({differs})"):
        run(SCRIPT.replace(*changed))
    assert files(data) == before
    run()


def test_a_column_that_became_something_else(data: Path, table: Callable[..., pa.Table]) -> None:
    run(batches=2)
    old = pq.read_table(data / "a" / "0.parquet")
    pq.write_table(old.set_column(2, "v", pa.array(range(10))), data / "a" / "0.parquet")
    with pytest.raises(SettingError, match="stream a: v was VARCHAR and is BIGINT"):
        run()


def test_other_groups(data: Path) -> None:
    run(batches=2)
    with pytest.raises(SettingError, match="groups was 256 and is 7"):
        run(groups=7)


def test_layout_and_unused_columns_do_not_matter(data: Path) -> None:
    run(batches=2)
    old = pq.read_table(data / "a" / "1.parquet")
    pq.write_table(old.append_column("more", pa.array(range(10))), data / "a" / "1.parquet")
    run(SCRIPT.replace("FROM", "\n   from").replace("SELECT", "select  "))
    assert leftovers("checkpoint") == []


@pytest.mark.parametrize("columns", [["ts", "v", "k"], ["v", "k", "ts"]], ids=str)
def test_columns_in_another_order(columns: list[str], data: Path) -> None:
    run(checkpoint="another")
    whole = results()
    shutil.rmtree("out")
    run(batches=14, batch_rows=1)
    for name in "ab":
        pq.write_table(pq.read_table(data / name / "1.parquet").select(columns), data / name / "1.parquet")
    run(batch_rows=1)  # segments of rows in either order are merged
    assert results() == whole


def test_a_stream_that_had_ended_refuses_new_rows(data: Path, table: Callable[..., pa.Table]) -> None:
    (data / "a" / "1.parquet").unlink()
    run(batches=6)
    before = results()
    pq.write_table(table("k v", (30, 0, "a30")), data / "a" / "1.parquet")
    with pytest.raises(JobError, match="a has ended for this job; a has new rows, which need a new checkpoint"):
        run()
    (data / "a" / "1.parquet").unlink()
    assert results() == before
    run()


def test_files_that_were_read_may_go(data: Path, table: Callable[..., pa.Table]) -> None:
    assert run(at_end="auto").rows_in == 40
    for file in (data / "a").iterdir():
        file.unlink()
    pq.write_table(table("k v", (21, 0, "a21")), data / "a" / "-.parquet")
    assert run(at_end="auto").rows_in == 41 and "a21" in {row["v"] for row in results()}


def test_a_file_that_was_read_in_part_must_stay(data: Path) -> None:
    run(batches=1)
    before = results()
    (data / "a" / "0.parquet").unlink()
    with pytest.raises(JobError, match=r"a/0.parquet is gone, and not all of it was read"):
        run()
    assert results() == before


def test_another_run_that_was_faster(data: Path) -> None:
    """Where a folder cannot be locked, two runs may share one checkpoint: the run that is behind must not publish."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FolderLock, "take", lambda self, folder: None)
        chosen = from_mapping({"batch_rows": 5, "at_end": "flush"})
        slow = LocalRunner(prepare(SCRIPT), chosen, "checkpoint")

        def stop() -> bool:
            if slow.reporter.progress().batches == 2:
                run(batches=4, batch_rows=3)
            return False

        with pytest.raises(JobError, match="batch 3 was committed by another run of this job"):
            slow.run(stop)
    run()
    found = results()
    shutil.rmtree("out")
    run(checkpoint="another")
    assert found == results()


def names() -> list[str]:
    return sorted(file.name for file in Path("out").iterdir())


def test_a_folder_with_results_of_another_job(data: Path) -> None:
    """Jobs with and without a checkpoint have the same layout of files, and the mode applies to the whole folder."""
    run()
    whole, first = results(), names()
    job = checkpoint_at("checkpoint").history[:JOB_DIGITS]
    assert all(re.fullmatch(rf"part-\d{{8}}-\d{{5}}-{job}\.parquet", name) for name in first)
    for start in (lambda text: run(text, "another"), lambda text: LocalRunner(prepare(text), Settings()).run()):
        with pytest.raises(ScriptError, match=r"out already holds results .part-.*; add mode 'overwrite' or mode"):
            start(SCRIPT)
    assert names() == first and not Path("another").exists()
    appending, replacing = (SCRIPT.replace("(path 'out'", f"(path 'out', mode '{m}'") for m in ("append", "overwrite"))
    run(appending, "another", batches=3)
    second = names()
    assert set(first) < set(second)
    run(appending, "another")
    LocalRunner(prepare(appending), Settings()).run()
    assert len(results()) == 3 * len(whole) and set(first) | set(second) < set(names())
    run(replacing, "third", batches=4)
    part = names()
    assert 0 < len(results()) < len(whole) and not set(part) & set(second)
    run(replacing, "third")
    assert results() == whole and set(part) < set(names()), "a job that continues keeps its earlier results"
    LocalRunner(prepare(replacing), Settings()).run()
    assert results() == whole and len(names()) == 1


def test_an_old_copy_of_the_checkpoint(data: Path) -> None:
    run(batches=2)
    shutil.copytree("checkpoint", "copy")
    run()
    before = results()
    with pytest.raises(SettingError, match=r"out holds batch \d+ of this job, but the newest commit .* is of batch 2:"):
        run(checkpoint="copy")
    assert results() == before


def test_no_file_has_more_rows_than_asked(data: Path) -> None:
    run(SCRIPT.replace("(path 'out'", "(path 'out', rows_per_file 2"))
    assert {pq.read_metadata(f"out/{name}").num_rows for name in names()} == {1, 2}
    found = results()
    run(SCRIPT.replace("'out'", "'other'"), "another")
    assert found == sorted(pq.read_table("other").to_pylist(), key=repr)


def test_a_sink_in_the_checkpoint(data: Path) -> None:
    for out in ("ck", "ck/out"):
        with pytest.raises(SettingError, match=f"the sink folder {out} lies in the checkpoint"):
            run(SCRIPT.replace("'out'", f"'{out}'"), "ck")
    assert not Path("ck").exists()


def test_a_checkpoint_folder_with_other_things(data: Path) -> None:
    (data / "ck").mkdir()
    (data / "ck" / "orders.csv").write_text("k\n1\n")
    (data / "file").write_text("")
    before = files(data)
    with pytest.raises(
        SettingError, match=r"ck is not empty and not a checkpoint \(it holds orders.csv\); choose a new"
    ):
        run(checkpoint="ck")
    with pytest.raises(SettingError, match=r"cannot use .*file for a checkpoint"):
        run(checkpoint="file")
    assert files(data) == before and not (data / "out").exists()


def test_a_uri(data: Path) -> None:
    run(checkpoint=(data / "by uri").as_uri())
    assert leftovers("by uri") == [] and len(results()) > 20
    assert sorted(file.name for file in data.iterdir()) == ["a", "b", "by uri", "out"]


def test_a_uri_and_a_sink_that_is_no_file(data: Path) -> None:
    text = SCRIPT[: SCRIPT.index("CREATE SINK")] + SCRIPT[SCRIPT.index("SELECT") :]
    rows: list[Any] = []
    chosen, uri = from_mapping({"batch_rows": 5, "at_end": "flush"}), (data / "by uri").as_uri()
    for batches in (2, None):
        job = prepare(text, sink=CallbackSink(lambda batch: rows.extend(batch.to_pylist())))
        runner = LocalRunner(job, chosen, uri)
        runner.run(stop=lambda runner=runner, batches=batches: runner.reporter.progress().batches == batches)  # type: ignore[misc]
    run()
    assert sorted(rows, key=repr) == results() and leftovers("by uri") == []


@pytest.mark.parametrize("kind", ["checkpoint.json", "commits"])
def test_a_damaged_checkpoint_is_refused_before_anything_is_touched(kind: str, data: Path) -> None:
    run(batches=2)
    file = next(f for f in (data / "checkpoint").rglob("*") if f.is_file() and kind in str(f.relative_to(data)))
    file.write_bytes(file.read_bytes()[:-1])
    before = files(data)
    with pytest.raises(EddylineError, match=r"the checkpoint is damaged: .* does not match its checksum"):
        run()
    assert files(data) == before


@pytest.mark.parametrize("slots", [1, 3])
def test_slots_in_a_folder(slots: int, data: Path) -> None:
    """With `arena_dir` the state is in files while the job runs, a later run continues without them, and nothing is
    left."""
    seen: list[str] = []
    chosen = from_mapping({"batch_rows": 5, "at_end": "flush", "slots": slots, "arena_dir": "arenas"})
    runner = LocalRunner(prepare(SCRIPT, seed=chosen.seed, checkpoint="checkpoint"), chosen, "checkpoint")
    runner.run(
        stop=lambda: runner.reporter.progress().batches == 3,
        watch=lambda progress: seen.extend(files(data / "arenas")),
    )
    assert {Path(name).parts[1] for name in seen if len(Path(name).parts) > 2} == {str(n) for n in range(slots)}
    assert list((data / "arenas").iterdir()) == []
    run(slots=slots, arena_dir="arenas")
    found = results()
    assert list((data / "arenas").iterdir()) == []
    shutil.rmtree("out")
    run(checkpoint="other")
    assert found == results()


def test_a_job_that_fails_leaves_no_slots_in_a_folder(data: Path) -> None:
    with pytest.raises(JobError, match="arena_limit"):
        run(arena_dir="arenas", arena_limit="1KB")
    assert list((data / "arenas").iterdir()) == []
