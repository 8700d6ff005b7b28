"""Chaos on the local engine, and that it would notice: the check fails when a row or a file is not as it should be."""

from __future__ import annotations

import io
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eddyline.errors import JobError
from eddyline.protocol.home import checkpoint_at
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.folder import JOB_DIGITS
from eddyline.settings import from_mapping
from lab.chaos.interrupt import Interrupts
from lab.chaos.jobs import QUERIES, ChaosJob, make_job, verify
from lab.chaos.kill import COUNTS, DELIVERING, MOMENTS, VICTIMS, WITH_FILES, Kill, draw_kill
from lab.chaos.main import MOVES, Chaos, draw_settings
from lab.chaos.run import ChaosRun
from lab.servers.postgres import NoPostgres, binaries


def _finished(name: str, folder: Path) -> ChaosJob:
    job = make_job(name, folder, seed=1, files=3, rows_per_file=100)
    _run(job)
    return job


def _run(job: ChaosJob) -> None:
    settings = from_mapping({"batch_rows": 150, "at_end": "flush"})
    checkpoint = str(job.checkpoint)
    prepared = prepare(job.script, out=io.StringIO(), checkpoint=checkpoint)
    LocalRunner(prepared, settings, checkpoint).run()


@pytest.mark.parametrize("name", QUERIES)
def test_a_job_that_nobody_killed_is_right(name: str, tmp_path: Path) -> None:
    assert list(verify(_finished(name, tmp_path), on_spark=False)) == []


def _twice(job: ChaosJob) -> None:
    file = max(job.sink.iterdir())
    shutil.copy(file, file.with_stem("part-00009999-00000-0123456789ab"))


def _lost(job: ChaosJob) -> None:
    file = max(job.sink.iterdir())
    pq.write_table(pq.read_table(file).slice(1), file)


def _late_lost(job: ChaosJob) -> None:
    file = next((job.folder / "late").glob("*.json"))
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))


def _staged(job: ChaosJob) -> None:
    (job.sink / "_staged").mkdir()


def _orphan(job: ChaosJob) -> None:
    (job.checkpoint / "log" / "00000001-0-orphan").write_text("")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_twice, "the sink differs"),
        (_lost, "the sink differs"),
        (_late_lost, "the sink differs"),
        (_staged, "should not be there"),
        (_orphan, "no commit names"),
    ],
)
def test_it_notices(spoil: Callable[[ChaosJob], None], said: str, tmp_path: Path) -> None:
    job = _finished("join", tmp_path)
    spoil(job)
    assert any(said in wrong for wrong in verify(job, on_spark=False))


def test_what_a_run_left_that_died_after_the_last_commit_goes_with_the_next_start(tmp_path: Path) -> None:
    job = _finished("join", tmp_path)
    staged = job.sink / "_staged" / checkpoint_at(str(job.checkpoint)).history[:JOB_DIGITS]
    staged.mkdir(parents=True)
    (staged / "00000003-0-lost.parquet").write_text("")
    _run(job)
    assert list(verify(job, on_spark=False)) == []


def test_a_second_driver_is_refused_at_its_start(tmp_path: Path) -> None:
    """The lock of one that was killed is gone with it: see the kills below."""
    job = make_job("join", tmp_path, seed=1, files=3, rows_per_file=100)
    other = checkpoint_at(str(job.checkpoint)).store
    other.hold()
    with pytest.raises(JobError, match="is in use: only one run may go on with it"):
        _run(job)
    assert list(job.checkpoint.iterdir()) == []
    other.let_go()
    _run(job)
    assert list(verify(job, on_spark=False)) == []


@pytest.mark.parametrize("of_job", [WITH_FILES, DELIVERING], ids=["files", "delivering"])
@pytest.mark.parametrize("engine", VICTIMS)
def test_every_process_may_be_killed_at_every_moment(engine: str, of_job: tuple[str, ...]) -> None:
    rng = random.Random(1)
    drawn = {(kill.victim, kill.moment) for kill in (draw_kill(rng, engine, moments=of_job) for _ in range(3000))}
    moments = {"", *(moment for moment in of_job if engine != "local" or "Spark" not in moment)}
    assert drawn == {(victim, moment) for victim in VICTIMS[engine] for moment in moments}
    assert {"a commit", "a staged file", "a published batch"} <= set(WITH_FILES)
    assert {"a commit", "a batch to deliver"} <= set(DELIVERING) and {*WITH_FILES, *DELIVERING} == set(MOMENTS)
    assert {"driver", "jvm", "worker"} <= set(VICTIMS["spark"])


def test_a_start_may_have_other_settings() -> None:
    rng = random.Random(1)
    drawn = [draw_settings(rng) for _ in range(20)]
    assert all(len({settings[name] for settings in drawn}) > 1 for name in drawn[0])


@pytest.mark.gate(seconds=20)
def test_a_run_is_killed_and_the_next_one_goes_on(tmp_path: Path) -> None:
    job, kill = make_job("join", tmp_path, seed=1, files=6, rows_per_file=100), Kill("driver", "a commit", 1, 0.0)
    with ChaosRun(job, "local", {"slots": 2, "batch_rows": 300}) as run:
        assert run.wait_for(kill) and run.strike(kill, random.Random(1))
        assert run.wait() != 0
    with ChaosRun(job, "local", {"slots": 3, "batch_rows": 300}) as run:
        assert run.wait() == 0, run.said
        assert run.wait_for_all() == []
    assert list(verify(job, on_spark=False)) == []


def test_killed_on_the_local_engine() -> None:
    lines: list[str] = []
    chaos = Chaos("local", seed=3, told=lines.append)
    chaos.run(2)
    assert chaos.wrong == []
    assert chaos.kills == 2 and sum(line.startswith("kill ") for line in lines) == 2


def test_interrupted_at_random_moments() -> None:
    lines: list[str] = []
    interrupts = Interrupts("local", seed=5, told=lines.append)
    interrupts.run(3)
    assert interrupts.wrong == []
    assert interrupts.signals == 3
    assert any("the sink equals the oracle" in line for line in lines)


def test_kills_come_where_groups_move() -> None:
    rng = random.Random(1)
    drawn = [draw_kill(rng, "spark", COUNTS, MOVES) for _ in range(300)]
    assert {kill.point for kill in drawn} == {"", *MOVES} and len(MOVES) >= 3
    assert {kill.victim for kill in drawn if kill.point} == {"worker"}


@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.long)])
def test_killed_while_groups_move(kills: int) -> None:
    chaos = Chaos("local", seed=9, balance=True)  # the first kill is where groups move
    chaos.run(kills)
    assert chaos.wrong == []
    assert chaos.kills == kills and chaos.moving and chaos.moved


def test_kills_that_meet_no_move_are_a_failure() -> None:
    assert Chaos("local", seed=1, balance=True, kills=1, moved=9).missed() == ["no kill met a group that moves"]
    assert Chaos("local", seed=1, balance=True, kills=1, moved=9, moving=1).missed() == []


def _has_postgres() -> bool:
    try:
        return binaries().exists()
    except NoPostgres:
        return False


@pytest.mark.skipif(not _has_postgres(), reason="there is no PostgreSQL server")
@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.long)])
def test_killed_while_tables_are_asked(kills: int) -> None:
    chaos = Chaos("local", seed=5, access=True)
    chaos.run(kills)
    assert chaos.wrong == []
    assert chaos.kills == kills and chaos.asking and chaos.lookups


def test_kills_that_meet_no_lookup_are_a_failure() -> None:
    assert len(Chaos("local", seed=1, access=True, kills=10, waiting=3, asking=3).missed()) == 1
    assert Chaos("local", seed=1, access=True, kills=10, waiting=3, asking=3, kept=9).missed() == []
