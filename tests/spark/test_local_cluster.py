"""On two executors that share no arenas, as if on two hosts: slots go to and fro, and one executor is killed.

Spark gives a slot's task to either executor. It finds there no state, or an old one, and makes it again from the log;
so does the slot that was at home in the executor that died.
"""

from __future__ import annotations

import random
from pathlib import Path

from eddyline.testing.chaos import Kill, Run, processes
from eddyline.testing.chaos_jobs import ChaosJob, make_job, verify


def _arenas(job: ChaosJob) -> list[Path]:
    """Folders of arenas, by executor."""
    return sorted(job.folder.glob("tmp/*/executor-*/eddyline-*"))


def test_an_executor_is_killed(tmp_path: Path) -> None:
    job = make_job("aggregate", tmp_path, seed=1, files=6)
    kill = Kill("executor", "a commit", 4, 0.0)
    with Run(job, "cluster", {"slots": 3, "batch_rows": 600}) as run:
        assert run.wait_for(kill), run.said
        before = _arenas(job)
        slots = [{arena.name for arena in folder.iterdir()} for folder in before]
        assert run.strike(kill, random.Random(1))
        assert run.wait() == 0, run.said
        assert run.wait_for_all() == []
        assert processes(run.session) == []
    assert len(before) == 2, "each executor has arenas of its own"
    assert all(slots), "each had slots, so what the dead one had is made again by the other"
    assert list(verify(job, on_spark=True)) == []
    assert _arenas(job) == []
