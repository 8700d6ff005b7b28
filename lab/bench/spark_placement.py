"""`bench spark --part placement`: do slots stay where their state is, on several executors that share no arenas?

A join keeps three million rows in its windows, in six slots. It runs on three executors of two cores, with slots that
stay on their executors and with slots that run anywhere, and on one executor of six cores, which has all arenas. Three
executors cost Spark more than one, whatever runs on them; so slots that run anywhere also run on three executors that
share all arenas, which is what no cluster of several hosts can do. After
the windows are full, each side measures batches and counts the turns that found their state (the others rebuild
it from the log). All executors are processes of this machine, and arenas and Spark's own files are in memory. The CPU
seconds of all these processes stand beside the times, because other work of the machine makes batches longer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.settings import Settings
from eddyline.spark.frames import opener
from eddyline.spark.runner import SparkRunner
from eddyline.spark.session import session
from lab.bench import Result
from lab.bench.streams import streams
from lab.chaos.run import ARENAS, spark_home

STREAMS = {"a": ["k"], "b": ["k"], "c": ["k"]}
EVERY, WINDOW = 100, 100
"""A row of each stream every EVERY microseconds, and a window of WINDOW seconds: three million rows of state."""
FILE_ROWS, FILLS, BATCHES = 100_000, 12, 12
"""Rows of a file; a batch has a file of each stream. The first FILLS batches fill the windows."""
SLOTS, KEYS, ROUNDS = 6, 4_000_000, 2
CLUSTERS = {3: "local-cluster[3,2,1024]", 1: "local-cluster[1,6,3072]"}
FOUND, TIMES = 0.95, 1.2

_log = logging.getLogger(__name__)


@dataclass
class _Side:
    """One way to run the job."""

    name: str
    executors: int
    stay: bool
    shares: bool = False
    """Whether executors share all arenas."""
    seconds: list[float] = field(default_factory=list)
    """Of each measured batch."""
    cpu: list[float] = field(default_factory=list)
    """CPU seconds of all processes in each of them."""
    rebuilt: int = 0
    """Turns of these batches that rebuilt their state."""

    @property
    def found(self) -> float:
        """The share of turns that found their state."""
        return 1 - self.rebuilt / (SLOTS * len(self.seconds))


def placement() -> list[Result]:
    """The share of turns that found their state, and the seconds of a batch, on each side."""
    sides = [
        _Side("slots stay", 3, True),
        _Side("slots run anywhere", 3, False),
        _Side("one executor", 1, True),
        _Side("arenas are shared", 3, False, shares=True),
    ]
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = tempfile.mkdtemp(prefix="eddyline-bench-", dir=memory)
    home = os.environ.get("SPARK_HOME")
    os.environ["SPARK_HOME"] = spark_home(Path(folder, "spark"))
    try:
        _write(folder)
        results = set()
        for _ in range(ROUNDS):
            for executors, master in CLUSTERS.items():
                results |= _on_cluster(folder, master, [side for side in sides if side.executors == executors])
        assert len(results) == 1, f"results differ: {results}"
    finally:
        if home is None:
            del os.environ["SPARK_HOME"]
        else:
            os.environ["SPARK_HOME"] = home
        shutil.rmtree(folder, ignore_errors=True)
    stay, anywhere, alone, shared = (median(side.seconds) for side in sides)
    found = [Result(side.name, "turns that found their state", side.found, "") for side in sides]
    times = [Result(side.name, "a batch", 1000 * median(side.seconds), "ms") for side in sides]
    spent = [Result(side.name, "CPU of a batch", 1000 * mean(side.cpu), "ms") for side in sides]
    return [
        Result("slots stay", "turns that found their state", sides[0].found, "", FOUND, sides[0].found >= FOUND),
        *found[1:],
        *times,
        *spent,
        Result("slots run anywhere / one executor", "a batch", anywhere / alone, ""),
        Result("slots stay / arenas are shared", "a batch", stay / shared, ""),
        Result("slots stay / one executor", "a batch", stay / alone, "", TIMES, stay / alone <= TIMES),
    ]


def _write(folder: str) -> None:
    for name, batch in streams(STREAMS, FILE_ROWS * (FILLS + BATCHES), KEYS, every=EVERY).items():
        Path(folder, name).mkdir()
        for number in range(FILLS + BATCHES):
            part = pa.Table.from_batches([batch.slice(number * FILE_ROWS, FILE_ROWS)])
            pq.write_table(part, f"{folder}/{name}/{number:04}.parquet")


def _on_cluster(folder: str, master: str, sides: list[_Side]) -> set[int]:
    """Run the job on each side, in one session; returns the numbers of results. A run before them warms the JVMs up."""
    conf = {"spark.master": master, "spark.executor.memory": master.split(",")[2].strip("]") + "m"}
    spark, _ = session({**conf, "spark.local.dir": folder})
    try:
        return {_run(folder, side) for side in (replace(sides[0], name="warm-up", seconds=[], cpu=[]), *sides)}
    finally:
        spark.stop()


def _run(folder: str, side: _Side) -> int:
    spark, _ = session({})
    checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=folder)
    moments: list[tuple[Progress, float]] = []
    declared = [
        f"CREATE STREAM {name} USING parquet OPTIONS (path '{folder}/{name}') TIMESTAMP BY ts;" for name in STREAMS
    ]
    sink = f"CREATE SINK out USING parquet OPTIONS (path '{folder}/out', mode 'overwrite');"
    windows = ", ".join(f"{name} [RANGE {WINDOW} SECONDS]" for name in STREAMS)
    select = f"INSERT INTO out SELECT a.v AS a, b.v AS b, c.v AS c FROM {windows} WHERE a.k = b.k AND b.k = c.k"
    job = prepare("\n".join([*declared, sink, select]), opener=opener(spark, follow=False))
    arenas = f"{folder}/arenas" if side.shares else ARENAS
    settings = Settings(slots=SLOTS, batch_rows=FILE_ROWS * len(STREAMS), arena_dir=arenas)
    runner = SparkRunner(job, settings, spark, checkpoint, stay=side.stay)
    summary = runner.run(watch=lambda progress: moments.append((progress, _cpu_seconds())))
    shutil.rmtree(checkpoint)
    measured = [(old, new) for old, new in pairwise(moments) if new[0].rows_in > old[0].rows_in][FILLS:]
    seconds = [new.seconds - old.seconds for (old, _), (new, _) in measured]
    rebuilt = sum(new.slots_rebuilt - old.slots_rebuilt for (old, _), (new, _) in measured)
    side.seconds += seconds
    side.cpu += [new - old for (_, old), (_, new) in measured]
    side.rebuilt += rebuilt
    _log.info(
        "%s: %.2f s a batch, %.2f s of CPU, %d of %d turns rebuilt their state; %d rows of state",
        side.name, median(seconds), mean(side.cpu), rebuilt, SLOTS * len(seconds), measured[-1][0][0].state_rows,
    )  # fmt: skip
    return summary.rows_out


def _cpu_seconds() -> float:
    """CPU seconds so far of this process, of those that it started, directly or not, and of those that have ended."""
    parents, ticks = dict[int, int](), dict[int, int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)], ticks[int(entry.name)] = int(stat[1]), sum(map(int, stat[11:15]))

    def ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and ours(parents[process]))

    return sum(spent for process, spent in ticks.items() if ours(process)) / os.sysconf("SC_CLK_TCK")
