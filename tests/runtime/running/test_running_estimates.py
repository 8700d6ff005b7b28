"""Estimates of a run: the sources that know their rows, a run that is stopped, and where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.cli.live import LiveLines
from eddyline.engine.groups.online import RunningEstimate
from eddyline.errors import SettingError
from eddyline.runtime.running.job import GivenInput, prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.settings import from_mapping

ROWS = 4000
ON = {"estimates": "on", "batch_rows": 500, "optimizer": "off"}
SELECT = "SELECT a.g, COUNT(*) AS n, MAX(a.v) AS high FROM a GROUP BY a.g;"


def table() -> pa.Table:
    rng = np.random.default_rng(1)
    group, value = rng.integers(0, 2, ROWS), rng.normal(size=ROWS)
    return pa.table({"ts": pa.array(np.arange(ROWS), pa.timestamp("us")), "g": group, "v": value})


def after_the_third_batch(text: str, given: dict[str, GivenInput] | None = None) -> tuple[RunningEstimate, ...]:
    runner = LocalRunner(prepare(text, given, CallbackSink(lambda batch: None)), from_mapping(ON))
    runner.run(lambda: runner.reporter.progress().batches == 3)
    return runner.reporter.estimates()


@pytest.mark.parametrize("format_", ["parquet", "csv", "json", "python", "generate"])
def test_the_share_of_a_source_that_can_be_counted_is_known(format_: str, tmp_path: Path) -> None:
    rows, path, given = table(), tmp_path / "a", None
    path.mkdir()
    options = f"path '{path}'"
    if format_ == "parquet":
        pq.write_table(rows.slice(0, 1000), path / "1.parquet")
        pq.write_table(rows.slice(1000), path / "2.parquet")
    elif format_ == "csv":
        pcsv.write_csv(rows.slice(0, 1000), path / "1.csv")
        pcsv.write_csv(rows.slice(1000), path / "2.csv")
    elif format_ == "json":
        lines = [json.dumps(row, default=str) for row in rows.to_pylist()]
        (path / "1.json").write_text("\n".join(lines[:1000]) + "\n\n")
        (path / "2.json").write_text("\n".join(lines[1000:]))
    elif format_ == "generate":
        options = f"rows {ROWS}, g.domain '0..1'"
    else:
        given = {"a": GivenInput(PythonSource(rows.to_batches(300)), "ts")}
    columns = "(ts TIMESTAMP, g BIGINT, v DOUBLE)"
    text = "" if given else f"CREATE STREAM a {columns} USING {format_} OPTIONS ({options}) TIMESTAMP BY ts;"
    found = after_the_third_batch(text + SELECT, given)
    assert [(one.aggregate, one.share) for one in found] == 2 * [("n", 1500 / ROWS), ("high", 1500 / ROWS)]
    count = found[0]
    assert count.half_width is not None and abs(count.value - ROWS / 2) < 3 * count.half_width


def test_a_run_that_is_stopped_leaves_its_estimates_in_the_summary() -> None:
    given = {"a": GivenInput(PythonSource(table()), "ts")}
    runner = LocalRunner(prepare(SELECT, given, CallbackSink(lambda batch: None)), from_mapping(ON))
    summary = runner.run(lambda: runner.reporter.progress().batches == 3)
    estimates = json.loads(json.dumps(summary.as_dict()))["estimates"]
    assert [(one["group"], one["aggregate"]) for one in estimates[:2]] == [({"g": estimates[0]["group"]["g"]}, "n"),
                                                                           (estimates[0]["group"], "high")]  # fmt: skip
    assert estimates[1]["half_width"] is None and estimates[1]["why"] == "only the rows so far are known"


def test_a_run_that_has_ended_has_no_open_group() -> None:
    run = el.query(SELECT, streams={"a": el.stream(table(), time="ts")}).start(settings=ON)
    assert run.to_arrow().num_rows == 2
    assert run.estimates() == ()


def test_estimates_are_off_unless_they_are_asked_for() -> None:
    run = el.query(SELECT, streams={"a": el.stream(table(), time="ts")}).start()
    run.wait()
    with pytest.raises(SettingError, match="a run has estimates if"):
        run.estimates()


@pytest.mark.parametrize(
    ("more", "checkpoint", "why"),
    [({"arena_dir": "/dev/shm"}, "ck", "with arena_dir"), ({"memory": "100MB"}, None, "with memory")],
)
def test_estimates_are_refused_where_there_are_none(
    more: dict[str, str], checkpoint: str | None, why: str, tmp_path: Path
) -> None:
    select = "SELECT COUNT(*) FROM a, b WHERE a.g = b.g"
    query = el.query(select, streams={name: el.stream(table(), time="ts") for name in "ab"})
    with pytest.raises(SettingError, match=why):
        query.start(settings={**ON, **more}, checkpoint=None if checkpoint is None else str(tmp_path / checkpoint))


def test_a_run_continues_the_estimates_of_the_run_before(tmp_path: Path) -> None:
    """The groups, and how many rows were seen, come from the checkpoint, also if another number of slots goes on."""

    def at_the_end_of(batches: int, slots: int, checkpoint: str) -> tuple[RunningEstimate, ...]:
        given = {"a": GivenInput(PythonSource(table().to_batches(300)), "ts")}
        settings = from_mapping({**ON, "slots": slots})
        runner = LocalRunner(prepare(SELECT, given, CallbackSink(lambda batch: None)), settings, checkpoint)
        runner.run(lambda: runner.reporter.progress().batches == batches)
        return runner.reporter.estimates()

    for slots in (1, 2):
        folder = str(tmp_path / str(slots))
        at_the_end_of(2, slots, folder)
        continued = at_the_end_of(1, 3 - slots, folder)
        assert continued == at_the_end_of(3, 1, f"{folder} whole") and continued[0].half_width is not None


def test_estimates_are_not_begun_in_the_middle_of_a_job(tmp_path: Path) -> None:
    def run(estimates: str) -> None:
        given = {"a": GivenInput(PythonSource(table().to_batches(300)), "ts")}
        settings = from_mapping({**ON, "estimates": estimates})
        runner = LocalRunner(prepare(SELECT, given, CallbackSink(lambda batch: None)), settings, str(tmp_path / "ck"))
        runner.run(lambda: runner.reporter.progress().batches == 1)

    run("off")
    with pytest.raises(SettingError, match="began with estimates=off"):
        run("on")


def test_live_lines_tell_the_estimates(capsys: pytest.CaptureFixture[str]) -> None:
    given = {"a": GivenInput(PythonSource(table()), "ts")}
    runner = LocalRunner(prepare(SELECT, given, CallbackSink(lambda batch: None)), from_mapping(ON))
    clock = iter(range(100))
    with LiveLines(runner.reporter, clock=lambda: float(next(clock))) as view:
        runner.run(watch=view)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("estimate: ")]
    assert any(" n " in line and "±" in line and "seen" in line for line in told)
    assert any("high" in line and "(only the rows so far are known)" in line for line in told)
