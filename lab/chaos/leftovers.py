"""Jobs without a checkpoint on Spark, some of which are killed: after the next start, none of their files may be left.

    python -m lab.chaos.leftovers --runs 50 --seed 7

All runs share one folder for arenas and one for temporary checkpoints. Two in three runs are killed with SIGKILL
(driver, JVM or worker), soon after a new folder appears in one of them; some killed runs are still dying when the next
run begins. The last run is not killed: after it both folders must be empty.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from lab.chaos.jobs import ChaosJob, make_job
from lab.chaos.kill import Kill
from lab.chaos.run import ChaosRun

APPEARS = "a folder of arenas, of Spark's run"
VICTIMS = ("driver", "driver", "driver", "jvm", "worker")


def left(job: ChaosJob) -> list[str]:
    """The folders of arenas and temporary checkpoints that are left."""
    return sorted(path.name for folder in (job.arenas, job.folder / "tmp") for path in folder.glob("eddyline-*"))


def leave(folder: Path, runs: int, seed: int) -> tuple[int, list[str]]:
    """Run and kill jobs; returns the most folders that were left after any run, and those that are left in the end."""
    rng, most, dying = random.Random(seed), 0, list[ChaosRun]()
    job = make_job("join", folder, seed, files=6, rows_per_file=100)
    for number in range(runs + 1):
        shutil.rmtree(job.sink, ignore_errors=True)
        with ChaosRun(job, "spark", {"slots": 2, "batch_rows": 300}, checkpoint=False) as run:
            kill = Kill(rng.choice(VICTIMS), APPEARS, 1, rng.random() * rng.choice([0.01, 0.5, 8.0]))
            if number < runs and rng.random() < 2 / 3 and run.wait_for(kill):
                run.strike(kill, rng)
            run.wait()
            most = max(most, len(left(job)))
            if number < runs and rng.random() < 0.3:
                dying.append(run.let_go())
            else:
                run.wait_for_all()
    for run in dying:
        run.wait_for_all()
    return most, left(job)


def main() -> int:
    """The command line; exit status 1 if anything is left."""
    parser = argparse.ArgumentParser(prog="leftovers", description="killed jobs without a checkpoint leave nothing")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eddyline-leftovers-") as folder:
        most, names = leave(Path(folder), options.runs, options.seed)
    sys.stdout.write(f"{options.runs} runs: at most {most} folders after a run, {len(names)} in the end {names}\n")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
