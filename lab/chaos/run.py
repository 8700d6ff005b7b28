"""One start of a job of chaos (main.py): a normal `eddyline run` in processes of its own, which can be watched and
killed.

All processes of a run are one session of the operating system, so none of them is missed, whichever started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import eddyline
from lab import SHORT_LIVED
from lab.chaos.jobs import ChaosJob
from lab.chaos.kill import MOMENTS, Kill
from lab.chaos.strikes import strike

PATIENCE = 300.0
"""A run that neither ends nor makes progress for this many seconds is stuck."""
CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.locality.wait": "0",
}
"""Two executors, each a process with one core. A turn does not wait for its own executor if that one is busy: so slots
move now and then."""
ARENAS = "$SPARK_EXECUTOR_DIRS"
"""The folder of arenas: one of the executor's own folders, which Spark deletes with the executor."""
EXECUTOR = "CoarseGrainedExecutorBackend"
QUIET = f"-Dlog4j2.configurationFile=file:{Path(eddyline.__file__).parent / 'spark' / 'log4j2.properties'}"
"""Spark logs as in any run, although we set other options of its JVM."""
_BLOCKED = ("env", "--block-signal=INT", "--block-signal=TERM", "--block-signal=HUP")
"""As in `./run`: signals wait until the program handles them, instead of meeting an interpreter that only starts."""
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


class ChaosRun:
    """One start of a job."""

    def __init__(
        self,
        job: ChaosJob,
        engine: str,
        settings: dict[str, object],
        checkpoint: bool = True,
        conf: Mapping[str, str] | None = None,
        modules: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`conf` has settings of Spark that differ from those of CLUSTER; the job imports these modules. `environment`
        has more variables."""
        self._job, self.settings = job, settings
        self._tmp = job.folder / "tmp"
        self._tmp.mkdir(exist_ok=True)
        script = job.folder / "job.sql"
        script.write_text(job.script)
        on_spark = "local" if engine == "local" else "spark"
        command = [*_BLOCKED, sys.executable, "-P", "-m", "eddyline.cli", "run", str(script), "--engine", on_spark]
        command += ["--json", "--final", *(["--checkpoint", str(job.checkpoint)] if checkpoint else ())]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        for module in modules:
            command += ["--udf", module]
        given = {"TMPDIR": str(self._tmp), "SPARK_LOCAL_DIRS": str(self._tmp), **(environment or {})}
        environment = {**os.environ, **given}
        if engine == "cluster":
            environment["SPARK_HOME"] = spark_home(self._tmp / "spark")
            for name, value in (CLUSTER | dict(conf or {})).items():
                command += ["--conf", f"{name}={value}"]
        if on_spark == "spark":
            command += ["--set", f"arena_dir={ARENAS if engine == 'cluster' else job.arenas}"]
            java = f"spark.driver.extraJavaOptions={QUIET} {SHORT_LIVED}"
            command += ["--conf", java]
            command += ["--conf", "spark.driver.memory=1g"]
        self._errors, self._output = (self._tmp / "stderr").open("w+b"), (self._tmp / "stdout").open("w+b")
        self._process = subprocess.Popen(
            command, stdout=self._output, stderr=self._errors, env=environment, start_new_session=True
        )
        self.arenas_seen = self._let_go = False

    @property
    def session(self) -> int:
        """The operating-system session of all processes of the run."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the driver still runs."""
        self.arenas_seen = self.arenas_seen or bool(names(self._job.arenas))
        return self._process.poll() is None

    def carry_out(self, kill: Kill, rng: random.Random) -> bool:
        """Wait for the moment of the kill, and kill the victim; False if the run ended before, or there is no
        victim."""
        if not kill.point:
            return self.wait_for(kill) and self.strike(kill, rng)
        if not self.wait_for(kill):
            return False
        plan, begin = strike(self._job.faults, kill.point, "killed"), time.monotonic()
        while self.running and plan.exists():
            self._stuck(begin)
            time.sleep(_PAUSE)
        struck = not plan.exists()
        plan.unlink(missing_ok=True)
        return struck

    def wait_for(self, kill: Kill) -> bool:
        """Wait for the moment of the kill; False if the run ended before."""
        folder = self._job.folder / MOMENTS[kill.moment] if kill.moment else None
        before, left, begin = names(folder), kill.count, time.monotonic()
        while left and folder is not None and self.running:
            now = names(folder)
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
        self._output.close()

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of a run that has ended."""
        self._output.seek(0)
        found: dict[str, Any] = json.loads(self._output.read())
        return found

    @property
    def lines(self) -> list[str]:
        """The lines of the run's standard error."""
        text = (self._tmp / "stderr").read_text(errors="replace")
        return [line for line in text.splitlines() if line.strip()]

    @property
    def said(self) -> str:
        """The end of the run's standard error."""
        return "\n".join(self.lines[-5:])

    def _stuck(self, begin: float) -> None:
        if time.monotonic() - begin > PATIENCE:
            raise TimeoutError(f"the run is stuck; it said: {self.said}")


def names(folder: Path | None) -> set[str]:
    """The files in a folder; none if there is no folder."""
    try:
        return set(os.listdir(folder)) if folder is not None else set()
    except OSError:
        return set()


def spark_home(folder: Path) -> str:
    """A Spark home in a folder of its own that links to the installed Spark: executors start there and write there."""
    if not folder.exists():
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        folder.mkdir()
        for part in ("bin", "jars", "python", "sbin"):
            (folder / part).symlink_to(Path(spec.origin).parent / part)
    return str(folder)
