"""Jobs whose disks fail: one call on one file, again and again.

    python -m lab.chaos.main --disk --count 1000 --seed 7 [--engine local|spark|both]

In each run the n-th write, close, rename, open, read, mmap or truncate of a kind of file (checkpoint, arena, spill,
results, source) fails with EIO, ENOSPC or EMFILE, or transfers half of the bytes (testing/failing_disk.c, which is
preloaded). A run that is hit ends well all the same, or with one line on standard error that names a file or folder,
and a status that is not 0. It leaves nothing but its checkpoint and its sinks. The next run goes on; in the end the
results are compared with the oracle. Runs that did not reach the call do not count.
"""

from __future__ import annotations

import errno
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lab.chaos.interrupt import BEFORE
from lab.chaos.jobs import QUERIES, ChaosJob, make_job, verify
from lab.chaos.run import ChaosRun, names
from lab.ledger import Entry

IGNORED = "Error ignored when destroying file"
"""What Arrow prints where a file that was only read cannot be closed."""
LIBRARY = Path(__file__).with_name("failing_disk.c")
WRITTEN = (errno.EIO, errno.ENOSPC)
FAULTS: dict[str, tuple[int | str, ...]] = {
    "write": (*WRITTEN, "short"),
    "close": WRITTEN,
    "rename": WRITTEN,
    "open": (errno.EIO, errno.EMFILE),
    "read": (errno.EIO, "short"),
    "mmap": (errno.ENOMEM, errno.EMFILE),
    "truncate": WRITTEN,
}
"""How each operation fails."""
OPERATIONS = {
    "checkpoint": ("write", "close", "rename", "open", "mmap"),
    "arena": ("truncate", "mmap"),
    "spill": ("write", "close", "mmap"),
    "results": ("write", "close", "rename", "open"),
    "source": ("open", "read", "close"),
}
"""The operations that each kind of file has."""
ON_SPARK = {"arena": ("truncate", "mmap", "open", "write", "close", "rename")}
COUNTS = (1, 1, 2, 2, 3, 4, 6, 9)
RUNS = 6
"""Runs of a job that may fail before it is left alone."""


class NoCompiler(Exception):
    """There is no compiler of C on this machine."""


@dataclass(frozen=True)
class DiskFault:
    """The n-th operation on a kind of file, and how it fails."""

    kind: str
    operation: str
    count: int
    how: int | str

    def __str__(self) -> str:
        how = self.how if isinstance(self.how, str) else errno.errorcode[self.how]
        return f"{how} at {self.operation} {self.count} of {self.kind}"

    def environment(self, job: ChaosJob, engine: str, library: Path, mark: Path) -> dict[str, str]:
        """The variables of a process that has this fault."""
        arena = "/memfd:eddyline" if engine == "local" else f"{job.arenas}/"
        parts = {"checkpoint": f"{job.checkpoint}/", "arena": arena, "spill": f"{job.folder}/tmp/"}
        parts |= {"results": f"{job.sink}/", "source": f"{job.folder}/a/"}
        plan = f"{self.operation}:{self.count}:{self.how}:{mark}:{parts[self.kind]}"
        return {"LD_PRELOAD": str(library), "FAILING_DISK": plan}


def draw_fault(rng: random.Random, engine: str) -> DiskFault:
    """A random fault."""
    kind = rng.choice(list(OPERATIONS))
    operations = (OPERATIONS | (ON_SPARK if engine != "local" else {}))[kind]
    operation = rng.choice(operations)
    return DiskFault(kind, operation, rng.choice(COUNTS), rng.choice(FAULTS[operation]))


def compiled(folder: Path) -> Path:
    """The library that makes calls fail."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        raise NoCompiler("--disk needs a compiler of C (cc), and there is none")
    library = folder / "failing_disk.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(LIBRARY)], check=True)
    return library


@dataclass
class Disks:
    """Jobs and faults of one seed."""

    engine: str
    """local, spark or both."""
    seed: int
    told: Callable[[str], None] = lambda line: None
    first: int = 0
    """What earlier runs with this seed have shown: other jobs and moments follow."""
    hit: int = 0
    """The number of runs in which the fault happened."""
    runs: int = 0
    ended_well: int = 0
    """The number of runs that were hit and ended well all the same."""
    finished: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    """By kind of file and operation."""
    wrong: list[str] = field(default_factory=list)

    def run(self, count: int, only: DiskFault | None = None) -> None:
        """Run jobs until `count` runs were hit; with `only`, all by this fault."""
        rng = random.Random(f"{self.seed}/{self.first}" if self.first else self.seed)
        engines = ["spark", "local"] if self.engine == "both" else [self.engine]
        with tempfile.TemporaryDirectory(prefix="eddyline-chaos-") as libraries:
            library = compiled(Path(libraries))
            while self.hit < count and not self.wrong:
                number = self.finished + self.first
                engine, name = engines[number % len(engines)], list(QUERIES)[number % len(QUERIES)]
                folder = Path(tempfile.mkdtemp(prefix="eddyline-chaos-"))
                try:
                    job = make_job(name, folder, rng.randrange(1 << 30), files=6, rows_per_file=100)
                    for _ in range(RUNS):
                        if self.hit >= count or self.wrong:
                            break
                        fault = only or draw_fault(rng, engine)
                        if not self._fails(job, engine, fault, library, rng):
                            break
                    self._complete(job, engine)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                self.finished += 1

    def _fails(self, job: ChaosJob, engine: str, fault: DiskFault, library: Path, rng: random.Random) -> bool:
        """Start a run with a fault; returns whether the job has to go on."""
        mark = job.folder / "hit"
        mark.unlink(missing_ok=True)
        more = fault.environment(job, engine, library, mark)
        with ChaosRun(job, engine, _settings(job, rng), environment=more) as run:
            status, said, hit = run.wait(), run.lines, mark.exists()
            self.runs += 1
            self.hit += hit
            self.ended_well += hit and status == 0
            self.faults[f"{fault.kind} {fault.operation}"] += hit
            ours = [line for line in said if not BEFORE.fullmatch(line) and not line.startswith("warning: ")]
            ours = [line for line in ours if IGNORED not in line]
            found = [f"a process stays: {left}" for left in run.wait_for_all()]
        if not hit and status:
            found.append("it failed although the call was not reached")
        if len(ours) != 1 or not ours[0].startswith("eddyline: " if status else ("done: ", "finished: ")):
            found.append(f"{len(ours)} lines")
        if status and not any(word in ours[-1] for word in _named(job, fault)):
            found.append("no file or folder is named")
        if status not in (0, 1, 2) or "this is a bug" in "".join(ours):
            found.append(f"status {status}")
        if left := names(job.folder / "tmp") - {"stderr", "stdout"}:
            found.append(f"temporary files stay: {sorted(left)}")
        if hit:
            self.told(f"{self.hit}: {job.name} on {engine}, {fault}: {status}, {' / '.join(ours)[:150]}")
        self.wrong += [f"{job.name} on {engine}, {fault}: {what}: {' / '.join(said)}" for what in found]
        return status != 0

    def _complete(self, job: ChaosJob, engine: str) -> None:
        """Run the job to its end, if that has not come, and compare its results."""
        if self.wrong:
            return
        with ChaosRun(job, engine, {"slots": 2, "memory": "1GB"}) as run:
            if status := run.wait():
                self.wrong.append(f"{job.name}: the last run failed with status {status}: {run.said}")
        self.wrong += [f"{job.name}: {wrong}" for wrong in verify(job, engine != "local")]
        self.told(f"{job.name} finished: {'; '.join(self.wrong) or 'the sink equals the oracle, nothing is left'}")


def _settings(job: ChaosJob, rng: random.Random) -> dict[str, object]:
    memory = rng.choice(["40KB", "90KB", "1GB"]) if job.name == "join" else "1GB"
    return {"slots": 2, "batch_rows": rng.choice([100, 200, 300]), "memory": memory}


def _named(job: ChaosJob, fault: DiskFault) -> tuple[str, ...]:
    """Of these words one is in the message."""
    kinds = {"checkpoint": "checkpoint", "arena": "state", "spill": "tmp", "results": "/out", "source": "/a"}
    return kinds[fault.kind], str(job.folder)


def main(engine: str, seed: int, count: int, told: Callable[[str], None], entry: Entry) -> int:
    """The command line; exit status 1 if anything was wrong. Without a compiler it says so, with status 0."""

    def noted(line: str) -> None:
        entry.cases, entry.differences = disks.hit, len(disks.wrong)
        told(line)

    disks = Disks(engine, seed, noted, first=entry.first)
    try:
        disks.run(count - entry.first)
    except NoCompiler as none:
        told(f"skipped: {none}")
        return 0
    for wrong in disks.wrong:
        told(f"WRONG: {wrong}")
    of = ", ".join(f"{what} {number}" for what, number in disks.faults.most_common() if number)
    told(f"{disks.hit} runs were hit ({of}), of {disks.runs}; {disks.ended_well} of them ended well at once")
    told(f"{disks.finished} jobs finished; {len(disks.wrong)} wrong (seed {seed})")
    return 1 if disks.wrong else 0
