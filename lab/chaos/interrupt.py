"""Jobs that are stopped again and again by Ctrl-C, SIGTERM or SIGHUP, at any moment from the first line of the program
to the exit of the interpreter.

    python -m lab.chaos.main --interrupt --count 100 --seed 7 [--engine local|spark|both]

Half of the signals come while a run starts; the others while its job runs, when it ends, or after its closing line.
Half of them reach all processes of the run, as Ctrl-C in a terminal does. Each must leave one line and the right
status: 130, 143 or 129, or 0 with `done: `. It may leave no process, no temporary file, no socket and no arena. The
next run of the job goes on from its checkpoint. After some signals a run is left alone, and the results are compared
with the oracle.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab.chaos.jobs import QUERIES, ChaosJob, make_job, verify
from lab.chaos.kill import MOMENTS, WITH_FILES, Kill
from lab.chaos.run import ChaosRun, names

SIGNALS = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BEFORE = re.compile(r"compiling the kernels .*|starting Spark \.\.\.|Spark waited in vain .*|warning: slots=.*")
"""Lines of a run that no signal causes."""
PARTS = {"local": (1, 3), "spark": (6, 2)}
"""How many signals a job gets while its runs start, and later."""
FIRST = 0.3
"""The share of the signals at a start that come in its first second, when Python imports its modules."""
AT_THE_END = 0.3
"""The share of the later signals that come after the closing line, if not after the run."""


@dataclass
class Interrupts:
    """Jobs and signals of one seed."""

    engine: str
    """local, spark or both."""
    seed: int
    told: Callable[[str], None] = lambda line: None
    first: int = 0
    """What earlier runs with this seed have shown: other jobs and moments follow."""
    signals: int = 0
    starting: int = 0
    """The number of signals before the job ran."""
    finished: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _start: dict[str, float] = field(default_factory=dict)
    """By engine, the seconds that a run takes before its job runs."""

    def run(self, count: int) -> None:
        """Run jobs to their ends until `count` signals have been sent."""
        rng = random.Random(f"{self.seed}/{self.first}" if self.first else self.seed)
        engines = ["spark", "local"] if self.engine == "both" else [self.engine]
        while self.signals < count and not self.wrong:
            number = self.finished + self.first
            engine, name = engines[number % len(engines)], list(QUERIES)[number % len(QUERIES)]
            folder = Path(tempfile.mkdtemp(prefix="eddyline-chaos-"))
            try:
                job = make_job(name, folder, rng.randrange(1 << 30), files=6, rows_per_file=100)
                starts, later = PARTS[engine]
                phases = rng.sample([True] * starts + [False] * later, starts + later)
                goes_on = True
                while goes_on and phases and self.signals < count and not self.wrong:
                    goes_on = self._interrupt(job, engine, phases, rng)
                self._complete(job, engine)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            self.finished += 1

    def _interrupt(self, job: ChaosJob, engine: str, phases: list[bool], rng: random.Random) -> bool:
        """Start a run and send it a signal; returns whether the job goes on."""
        number, group = rng.choice(SIGNALS), rng.random() < 0.5
        with ChaosRun(job, engine, {"slots": 2, "batch_rows": rng.choice([100, 200, 300])}) as run:
            begin = time.monotonic()
            starting = engine in self._start and phases.pop()
            moment = self._wait(run, job, engine, starting, rng)
            send = os.killpg if group else os.kill
            with contextlib.suppress(ProcessLookupError):
                send(run.session, number)
            after = time.monotonic() - begin
            status, said = run.wait(), run.lines
            last = "".join(said[-1:])
            answer = next((word for word in ("interrupted", "stopped", "done", "finished") if word in last), "no line")
            what = f"{engine}, {number.name}{' to the group' if group else ''} {moment}, after {after:.2f} s: {status}"
            self.signals += 1
            self.starting += answer == "interrupted"
            self.answers[f"{answer} with status {status}"] += 1
            self.told(f"{self.signals}: {job.name} on {what}, {' / '.join(said)[:100]}")
            self.wrong += [f"{what}: {wrong}" for wrong in self._wrong(run, job, status, number, said)]
        return status != 0

    def _wait(self, run: ChaosRun, job: ChaosJob, engine: str, starting: bool, rng: random.Random) -> str:
        """Wait for a random moment of the run; returns its name."""
        if starting:
            longest = 1.0 if rng.random() < FIRST else self._start[engine]
            time.sleep(rng.random() * longest)
            return "at its start"
        begin = time.monotonic()
        while run.running and not names(job.checkpoint / "decided"):
            time.sleep(0.01)
        if engine not in self._start:
            self._start[engine] = time.monotonic() - begin
        if rng.random() < AT_THE_END:
            while run.running and not any(line.startswith("done: ") for line in run.lines):
                time.sleep(0.001)
            time.sleep(rng.random() * 0.2)
            return "after its end"
        moments = [m for m in WITH_FILES if (engine != "local" or "Spark" not in m) and MOMENTS[m] != "arenas"]
        kill = Kill("driver", rng.choice(moments), rng.choice([1, 1, 2, 3, 5]), rng.random() * rng.choice([0.0, 0.3]))
        run.wait_for(kill)
        return f"at change {kill.count} of {kill.moment}"

    def _wrong(self, run: ChaosRun, job: ChaosJob, status: int, number: int, said: list[str]) -> list[str]:
        ours = [line for line in said if not BEFORE.fullmatch(line)]
        right = ("done: ", "finished: ") if status == 0 else ("stopped: ", "eddyline: interrupted")
        found = [] if status in (0, 128 + number) else [f"status {status}"]
        if len(ours) != 1 or not ours[0].startswith(right):
            found.append(f"{len(ours)} lines: {ours}")
        return [*found, *_left(run, job)]

    def _complete(self, job: ChaosJob, engine: str) -> None:
        """Run the job to its end, if that has not come, and compare its results."""
        if self.wrong:
            return
        with ChaosRun(job, engine, {"slots": 2}) as run:
            status = run.wait()
            if status:
                self.wrong.append(f"{job.name}: the last run failed: {run.said}")
            self.wrong += [f"{job.name}, after its last run: {wrong}" for wrong in _left(run, job)]
        self.wrong += [f"{job.name}: {wrong}" for wrong in verify(job, engine != "local")]
        self.told(f"{job.name} finished: {'; '.join(self.wrong) or 'the sink equals the oracle, nothing is left'}")


def _left(run: ChaosRun, job: ChaosJob) -> list[str]:
    """Everything that a run has left behind outside of its checkpoint and its sinks."""
    found = [f"a process stays: {left}" for left in run.wait_for_all()]
    files = {"temporary files": names(job.folder / "tmp") - {"stderr", "stdout"}, "arenas": names(job.arenas)}
    return found + [f"{kind} stay: {sorted(some)}" for kind, some in files.items() if some]
