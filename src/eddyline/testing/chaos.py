"""Jobs that are killed again and again with SIGKILL and must give the right results in the end.

    python -m eddyline.testing.chaos --kills 100 --seed 7 [--migrate | --spill] [--engine spark|cluster|local]

A job is a normal `eddyline run` in processes of its own. `cluster` is Spark with two executors that share no arenas, as
if each were on a host of its own. A kill has a victim (the driver's Python, its JVM, an executor, a Python worker of
Spark) and a moment: some time after the start, or the instant when a file of the protocol appears (a decision, a log
segment, a staged or published file, a commit, an offset of Spark's). After a kill the job is started again, sometimes
with other settings. A run must survive the death of a worker or an executor: Spark starts its tasks again. With
`--migrate` every start sets another plan, so jobs are migrating most of the time, with either strategy, in steps so
small that a migration takes several batches. When a job has finished, its files are compared with the oracle
(testing/chaos_jobs.py), and the next job begins, until all kills are used. A finished job may leave no file, no arena
and no process.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from eddyline.testing import SHORT_LIVED
from eddyline.testing.chaos_jobs import QUERIES, ChaosJob, make_job, verify

MOMENTS = {
    "a decision": "checkpoint/decided",
    "a log segment": "checkpoint/log",
    "a staged file": "out/_staged",
    "a published batch": "out",
    "a commit": "checkpoint/commits",
    "an offset of Spark's": "checkpoint/spark/offsets",
    "a commit of Spark's": "checkpoint/spark/commits",
    "a folder of arenas, of Spark's run": "arenas",
}
"""Moments of a kill: the thing that appears, and the folder of the job in which it appears."""
PATIENCE = 300.0
"""A run that neither ends nor makes progress for this many seconds is stuck."""
RETRIES = 3
"""The number of dead workers and executors that a run must survive: Spark tries a task four times."""
CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
}
"""Two executors, each a process with one core."""
ARENAS = "$SPARK_EXECUTOR_DIRS"
"""The folder of arenas: one of the executor's own folders, which Spark deletes with the executor."""
EXECUTOR = "CoarseGrainedExecutorBackend"
VICTIMS = {
    "local": ("driver",),
    "spark": ("driver", "driver", "jvm", "worker", "worker"),
    "cluster": ("driver", "jvm", "executor", "executor", "worker"),
}
TREES = {
    "join": ("mjoin", "((a b) c)", "(a (b c))", "((a c) b)"),
    "rows": ("mjoin", "((a b) t)", "(a (b t))"),
}
"""The plans of each query that has more than one."""
LITTLE = ("120KB", "160KB", "240KB")
"""Less memory than the jobs need, and more than the cells of a group-by, which do not leave it."""
COUNTS, SOON = (1, 2, 3, 5, 8), (1, 1, 2, 3)
"""The numbers of a folder's changes at which a kill may come; SOON is for runs with migrations, which begin at the
start."""
_PAUSE = 0.0005


@dataclass(frozen=True)
class Process:
    """One of the processes of a run."""

    pid: int
    parent: int
    command: str


def processes(session: int) -> list[Process]:
    """All processes of an operating-system session. A run and all processes that it starts are one session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[3]) == session and stat[0] != "Z":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(Process(int(entry.name), int(stat[1]), command))
    return found


@dataclass(frozen=True)
class Kill:
    """A planned kill: the victim and the moment."""

    victim: str
    moment: str
    """A key of MOMENTS, or "" for a time after the start."""
    count: int
    """The number of the folder's change at which the kill comes."""
    delay: float

    def __str__(self) -> str:
        when = f"at change {self.count} of {self.moment}, " if self.moment else ""
        return f"{self.victim}, {when}after {self.delay:.3f} s"


def draw_kill(rng: random.Random, engine: str, counts: Sequence[int] = COUNTS) -> Kill:
    """A random kill; most come at a change of a folder, whose number is drawn from `counts`."""
    victim = rng.choice(VICTIMS[engine])
    known = [m for m in MOMENTS if engine != "local" or "Spark" not in m]
    moment = rng.choice([*known, "a commit", "a staged file"]) if rng.random() < 0.85 else ""
    longest = rng.choice([0.0, 0.003, 0.03, 0.3]) if moment else 2.0 if engine == "local" else 12.0
    return Kill(victim, moment, rng.choice(counts), rng.random() * longest)


class ChaosRun:
    """One start of a job."""

    def __init__(self, job: ChaosJob, engine: str, settings: dict[str, object], checkpoint: bool = True) -> None:
        self._job, self.settings = job, settings
        self._tmp = job.folder / "tmp"
        self._tmp.mkdir(exist_ok=True)
        # The path of a Unix socket has at most 106 bytes, and the folder of a test may be too long for one.
        self._sockets = tempfile.TemporaryDirectory(prefix="eddyline-", dir="/tmp")
        script = job.folder / "job.sql"
        script.write_text(job.script)
        on_spark = "local" if engine == "local" else "spark"
        command = [sys.executable, "-m", "eddyline.cli", "run", str(script), "--engine", on_spark]
        command += ["--json", "--final", *(["--checkpoint", str(job.checkpoint)] if checkpoint else ())]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        environment = {**os.environ, "TMPDIR": str(self._tmp), "SPARK_LOCAL_DIRS": str(self._tmp)}
        if engine == "cluster":
            environment["SPARK_HOME"] = spark_home(self._tmp / "spark")
            for name, value in CLUSTER.items():
                command += ["--conf", f"{name}={value}"]
        if on_spark == "spark":
            command += ["--set", f"arena_dir={ARENAS if engine == 'cluster' else job.arenas}"]
            java = f"spark.driver.extraJavaOptions=-Djava.io.tmpdir={self._tmp} {SHORT_LIVED}"
            command += ["--conf", java, "--conf", f"spark.python.unix.domain.socket.dir={self._sockets.name}"]
            command += ["--conf", "spark.log.level=OFF", "--conf", "spark.driver.memory=1g"]
        self._errors = (self._tmp / "stderr").open("w+b")
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=self._errors, env=environment, start_new_session=True
        )
        self.arenas_seen = self._let_go = False

    @property
    def session(self) -> int:
        """The operating-system session of all processes of the run."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the driver still runs."""
        self.arenas_seen = self.arenas_seen or bool(_names(self._job.arenas))
        return self._process.poll() is None

    def wait_for(self, kill: Kill) -> bool:
        """Wait for the moment of the kill; False if the run ended before."""
        folder = self._job.folder / MOMENTS[kill.moment] if kill.moment else None
        before, left, begin = _names(folder), kill.count, time.monotonic()
        while left and folder is not None and self.running:
            now = _names(folder)
            if now - before:
                left, begin = left - 1, time.monotonic()
            before = now
            self._stuck(begin)
            time.sleep(_PAUSE)
        end = time.monotonic() + kill.delay
        while self.running and time.monotonic() < end:
            time.sleep(min(0.01, max(0.0, end - time.monotonic())))
        return self.running

    def strike(self, kill: Kill, rng: random.Random) -> bool:
        """Kill the victim; False if there is no such process."""
        victims = [p.pid for p in processes(self.session) if self._is(p, kill.victim)]
        if not victims or not self.running:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(victims), signal.SIGKILL)
            return True
        return False

    def _is(self, process: Process, victim: str) -> bool:
        if victim == "driver":
            return process.pid == self._process.pid
        executor = EXECUTOR in process.command
        if victim in ("jvm", "executor"):
            return process.command.split(" ")[0].endswith("java") and executor == (victim == "executor")
        return "spark.daemon pyspark.worker" in process.command

    def wait(self) -> int:
        """Wait for the end of the driver; returns its exit status."""
        begin = time.monotonic()
        while self.running:
            self._stuck(begin)
            time.sleep(0.02)
        return self._process.returncode

    def wait_for_all(self) -> list[str]:
        """Wait until all processes of the run are gone; returns those that remain after a while."""
        end = time.monotonic() + 60
        while (left := processes(self.session)) and time.monotonic() < end:
            time.sleep(0.05)
        return [process.command[:100] for process in left]

    def let_go(self) -> ChaosRun:
        """Do not kill the remaining processes of a killed run at its end: they may continue beside the next run."""
        self._let_go = True
        return self

    def __enter__(self) -> ChaosRun:
        return self

    def __exit__(self, *error: object) -> None:
        for process in [] if self._let_go else processes(self.session):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()
        self._sockets.cleanup()

    @property
    def said(self) -> str:
        """The end of the run's standard error."""
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        return "\n".join(lines[-5:])

    def _stuck(self, begin: float) -> None:
        if time.monotonic() - begin > PATIENCE:
            raise TimeoutError(f"the run is stuck; it said: {self.said}")


def _names(folder: Path | None) -> set[str]:
    try:
        return set(os.listdir(folder)) if folder is not None else set()
    except OSError:
        return set()


@dataclass
class Chaos:
    """Jobs and kills of one seed."""

    engine: str
    seed: int
    told: Callable[[str], None] = lambda line: None
    migrate: bool = False
    spill: bool = False
    kills: int = 0
    starts: int = 0
    finished: int = 0
    victims: Counter[str] = field(default_factory=Counter)
    migrating: int = 0
    """The number of kills during a migration, as the newest commit says."""
    spilling: int = 0
    """The number of kills while groups were on disk."""
    wrong: list[str] = field(default_factory=list)

    def run(self, kills: int) -> None:
        """Run jobs to their ends until `kills` kills have struck."""
        rng = random.Random(self.seed)
        while self.kills < kills and not self.wrong:
            names = [name for name in QUERIES if name in TREES or not self.migrate]
            names = [name for name in names if name != "rows" or not self.spill]  # rows that are counted do not leave
            name = names[self.finished % len(names)]
            with _folder() as folder:
                job = make_job(name, folder, rng.randrange(1 << 30))
                self._job(job, rng, min(kills, self.kills + max(2, kills // 5)))
            self.finished += 1

    def _job(self, job: ChaosJob, rng: random.Random, kills: int) -> None:
        """Run one job to its end, with at most `kills` kills in all so far."""
        arenas, done, let_go = False, False, list[ChaosRun]()
        while not done and not self.wrong:
            with ChaosRun(job, self.engine, self._settings(job, rng)) as run:
                self.starts += 1
                try:
                    deadly = self._kill(run, job, rng, kills)
                    done = run.wait() == 0 or "is finished" in run.said
                except TimeoutError as error:
                    self.wrong.append(f"{job.name}: {error}")
                    break
                arenas = arenas or run.arenas_seen
                if not done and not deadly:
                    self.wrong.append(f"{job.name}: the run failed by itself: {run.said}")
                if done or rng.random() < 0.7:
                    self.wrong += [f"{job.name}: a process stays: {left}" for left in run.wait_for_all()]
                else:
                    let_go.append(run.let_go())
        self.wrong += [f"{job.name}: a process stays: {left}" for run in let_go for left in run.wait_for_all()]
        if not self.wrong:
            self.wrong += [f"{job.name}: {wrong}" for wrong in verify(job, self.engine != "local")]
            if self.engine == "spark" and not arenas:
                self.wrong.append(f"{job.name}: no arenas were ever seen in {job.arenas}")
        self.told(f"{job.name} job finished: {'; '.join(self.wrong) or 'the sink equals the oracle, nothing is left'}")

    def _settings(self, job: ChaosJob, rng: random.Random) -> dict[str, object]:
        settings = draw_settings(rng)
        if self.migrate:  # another number of slots would rebuild the state in the requested plan, without a migration
            settings |= {"slots": 2, "plan": rng.choice(TREES[job.name]), "pause_ms": rng.choice([0, 1])}
            settings["migration"] = rng.choice(["moving-state", "parallel-track"])
        if self.spill:
            settings |= {"memory": rng.choice(LITTLE), "spill_share": rng.choice([0.1, 0.3, 1.0])}
        return settings

    def _kill(self, run: ChaosRun, job: ChaosJob, rng: random.Random, kills: int) -> bool:
        """Strike the run until it cannot go on (True), or ends or no kills are left (False)."""
        helpers = 0
        while self.kills < kills and run.running:
            kill = draw_kill(rng, self.engine, SOON if self.migrate else COUNTS)
            if helpers == RETRIES:
                kill = replace(kill, victim="driver")
            if run.wait_for(kill) and run.strike(kill, rng):
                self.kills += 1
                self.victims[kill.victim] += 1
                commits = sorted(_names(job.checkpoint / "commits"))
                at = next((name for name in reversed(commits) if name.isdigit()), "none")
                with contextlib.suppress(OSError):  # the file may be deleted meanwhile
                    commit = (job.checkpoint / "commits" / at).read_text()
                    self.migrating += '"to": {' in commit
                    self.spilling += '"left": {}' not in commit
                self.told(f"kill {self.kills}: {job.name}, {kill}; newest commit {at}; {run.settings}")
                if kill.victim in ("driver", "jvm"):
                    return True
                helpers += 1
        return False


def draw_settings(rng: random.Random) -> dict[str, object]:
    """Random settings for the next run; none of them may change the results."""
    return {
        "slots": rng.choice([1, 2, 3]),
        "router": rng.choice(["auto", "auto", "random", "lottery"]),
        "packet": rng.choice(["adaptive", "adaptive", 64]),
        "batch_rows": rng.choice([300, 600, 1500]),
    }


def spark_home(folder: Path) -> str:
    """A Spark home in a folder of its own that links to the installed Spark: executors start there and write there."""
    if not folder.exists():
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        folder.mkdir()
        for part in ("bin", "jars", "python", "sbin"):
            (folder / part).symlink_to(Path(spec.origin).parent / part)
    return str(folder)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="eddyline-chaos-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line; exit status 1 if rows were lost or duplicated, anything was left behind, or a run was stuck."""
    parser = argparse.ArgumentParser(prog="chaos", description="jobs killed at random moments, compared with DuckDB")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--migrate", action="store_true", help="every start asks for another plan")
    parser.add_argument("--spill", action="store_true", help="jobs have so little memory that groups go to disk")
    parser.add_argument("--engine", choices=("spark", "cluster", "local"), default="spark")
    given = parser.parse_args(arguments)
    seed = random.randrange(1 << 31) if given.seed is None else given.seed
    begin = time.monotonic()

    def told(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - begin:7.1f} s  {line}\n")
        sys.stdout.flush()

    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # so that the job is stopped too
    told(f"seed {seed}, engine {given.engine}")
    chaos = Chaos(given.engine, seed, told, given.migrate, given.spill)
    chaos.run(given.kills)
    for wrong in chaos.wrong:
        sys.stdout.write(f"WRONG: {wrong}\n")
    killed = ", ".join(f"{victim} {count}" for victim, count in chaos.victims.most_common())
    told(
        f"{chaos.kills} kills ({killed}; {chaos.migrating} while a plan was changing,"
        f" {chaos.spilling} while groups were on disk)"
    )
    told(f"{chaos.starts} starts, {chaos.finished} jobs finished, {len(chaos.wrong)} wrong")
    return 1 if chaos.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
