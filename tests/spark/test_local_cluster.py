"""Executors that share no arenas, as if on several hosts, one of which is killed.

In the first test Spark gives a slot's task to either executor. If the slot finds no state there, or an old one, it
rebuilds its state from the log; so does a slot of the executor that died. In the second test slots stay where their
state is.
"""

from __future__ import annotations

import random
from pathlib import Path

from lab.chaos.jobs import ChaosJob, make_job, verify
from lab.chaos.kill import Kill
from lab.chaos.run import ChaosRun, processes


def _arenas(job: ChaosJob) -> list[Path]:
    """Folders of arenas, by executor."""
    return sorted(job.folder.glob("tmp/*/executor-*/eddyline-*"))


def _in_both(job: ChaosJob) -> set[str]:
    """The slots that have arenas in both executors: these slots have moved."""
    slots = [{arena.name for arena in folder.iterdir()} for folder in _arenas(job)]
    return set.intersection(*slots) if len(slots) == 2 else set()


def test_an_executor_is_killed(tmp_path: Path) -> None:
    job = make_job("aggregate", tmp_path, seed=1, files=16)
    kill = Kill("executor", "a commit", 1, 0.0)
    with ChaosRun(job, "cluster", {"slots": 3, "batch_rows": 600}) as run:
        while not (moved := _in_both(job)) and run.wait_for(kill):
            pass
        assert moved, f"no slot was ever in both executors: {run.said}"
        assert run.strike(kill, random.Random(1))
        assert run.wait() == 0, run.said
        assert run.wait_for_all() == []
        assert processes(run.session) == []
    assert list(verify(job, on_spark=True)) == []
    assert _arenas(job) == []


THREE = {
    "spark.master": "local-cluster[3,2,1024]",
    "spark.cores.max": "6",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.locality.wait": "30s",
}
"""Three executors, which are all there before the first batch. A turn waits for its own executor."""


def test_slots_stay_where_their_state_is(tmp_path: Path) -> None:
    """Slots of the killed executor come up on another one, and stay there: with slots that run anywhere, two of three
    turns would rebuild their state."""
    job = make_job("join", tmp_path, seed=2)
    kill = Kill("executor", "a commit", 3, 0.0)
    with ChaosRun(job, "cluster", {"slots": 3, "batch_rows": 1200}, conf=THREE) as run:
        assert run.wait_for(kill) and run.strike(kill, random.Random(2)), run.said
        assert run.wait() == 0, run.said
        summary = run.summary
        assert run.wait_for_all() == []
    assert list(verify(job, on_spark=True)) == []
    assert summary["batches"] >= 8
    assert 1 <= summary["slots_rebuilt"] <= 2, "once, and once more if the retry in the same batch ran elsewhere"
