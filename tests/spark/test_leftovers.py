"""The next start deletes the files of a killed job without a checkpoint. `lab/chaos/leftovers.py` tests it with many
jobs."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from lab.chaos.jobs import make_job
from lab.chaos.kill import Kill
from lab.chaos.leftovers import APPEARS, left
from lab.chaos.run import ChaosRun


def test_nothing_is_left(tmp_path: Path) -> None:
    job, kill = make_job("join", tmp_path, 1, files=2, rows_per_file=50), Kill("driver", APPEARS, 1, 0.0)
    with ChaosRun(job, "spark", {"slots": 1}, checkpoint=False) as run:
        assert run.wait_for(kill) and run.strike(kill, random.Random(1)), run.said
        run.wait()
        assert run.wait_for_all() == []
    assert [name.split("-")[2] for name in left(job)] == ["arenas", "checkpoint", "jvm"]
    shutil.rmtree(job.sink, ignore_errors=True)
    with ChaosRun(job, "spark", {"slots": 1}, checkpoint=False) as run:
        assert run.wait() == 0, run.said
    assert left(job) == []
