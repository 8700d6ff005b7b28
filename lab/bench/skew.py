"""`bench skew`: a hot key on two slots of local Spark, with balance and without.

Two joins of a large stream with another one within a short window: one key has 40 % of the rows of the large stream, or
the keys of both follow a Zipf law of 1.2. A third side has uniform keys, with as many rows and about as many results.
All sides run in turns, in one session; the first half of the batches is not measured, because keys are shared and
groups move there.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.settings import Settings
from eddyline.spark.frames import opener
from eddyline.spark.runner import SparkRunner
from eddyline.spark.session import session
from lab.bench import Result
from lab.bench.streams import START

BATCHES, ROUNDS, ROWS = 14, 2, 800_000
"""ROWS of the large stream a batch."""
OTHER = 8
"""The large stream has so many times the rows of the other one."""
EVERY = 10
"""Microseconds from one row of the large stream to the next."""
KEYS, EVEN_KEYS = 20_000, 1000
GAIN, EVEN = 1.7, 1.15

Ints = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int, str], Ints]

_log = logging.getLogger(__name__)


def _one_hot(random: np.random.Generator, rows: int, stream: str) -> Ints:
    """One key has 40 % of the rows of the large stream, and more rows than others in the other one."""
    hot = random.random(rows) < {"a": 0.4, "b": 0.08}[stream]
    return np.where(hot, 0, random.integers(1, KEYS, rows))


def _zipf(random: np.random.Generator, rows: int, stream: str) -> Ints:
    shares = np.arange(1, KEYS + 1) ** -1.2
    return np.searchsorted(np.cumsum(shares / shares.sum()), random.random(rows)).astype(np.int64)


def _uniform(random: np.random.Generator, rows: int, stream: str) -> Ints:
    return random.integers(0, EVEN_KEYS, rows)


@dataclass
class _Side:
    """One way to run a job."""

    name: str
    folder: str
    balance: str
    window: int
    """In microseconds."""
    seconds: list[float] = field(default_factory=list)
    """Of each measured batch."""
    results: int = 0


def run() -> list[Result]:
    """The time of a batch with balance and without, and with uniform keys."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = tempfile.mkdtemp(prefix="eddyline-bench-", dir=memory)
    try:
        found = []
        found += _compared(folder, "one key has 40 %", _one_hot, 100_000)
        found += _compared(folder, "Zipf 1.2", _zipf, 20_000)
        return found
    finally:
        session({})[0].stop()
        shutil.rmtree(folder, ignore_errors=True)


def _compared(folder: str, name: str, draw: Draw, window: int) -> list[Result]:
    skewed, even = f"{folder}/{name.replace(' ', '-')}", f"{folder}/{name.replace(' ', '-')}-even"
    _write(skewed, draw)
    _write(even, _uniform)
    sides = [
        _Side("balance=off", skewed, "off", window),
        _Side("balance=auto", skewed, "auto", window),
        _Side("uniform keys", even, "off", round(window * _pairs(draw) * EVEN_KEYS)),
    ]
    for _ in range(ROUNDS):
        for side in sides:
            _run(side)
    assert sides[0].results == sides[1].results, f"results differ: {sides[0].results}, {sides[1].results}"
    off, auto, uniform = (median(side.seconds) for side in sides)
    return [
        *(Result(f"{name}, {side.name}", "a batch", 1000 * median(side.seconds), "ms") for side in sides),
        Result(f"{name}, uniform / skewed", "results", sides[2].results / sides[0].results, ""),
        Result(f"{name}, off / auto", "a batch", off / auto, "", GAIN, off / auto >= GAIN),
        Result(f"{name}, auto / uniform", "a batch", auto / uniform, "", EVEN, auto / uniform <= EVEN),
    ]


def _pairs(draw: Draw) -> float:
    """The share of pairs of rows that have the same key."""
    random = np.random.default_rng(3)
    one, other = (np.bincount(draw(random, 1_000_000, stream), minlength=KEYS) / 1e6 for stream in "ab")
    return float(one @ other)


def _write(folder: str, draw: Draw) -> None:
    random = np.random.default_rng(7)
    for stream, rows in {"a": ROWS, "b": ROWS // OTHER}.items():
        Path(folder, stream).mkdir(parents=True)
        every = EVERY * ROWS // rows
        for number in range(BATCHES):
            times = START + (number * rows + np.arange(rows)) * every
            columns = {"ts": pa.array(times, pa.timestamp("us")), "k": draw(random, rows, stream)}
            path = f"{folder}/{stream}/{number:04}.parquet"
            pq.write_table(pa.table({**columns, "v": random.random(rows)}), path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def _run(side: _Side) -> None:
    spark, _ = session({})
    checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=side.folder)
    moments: list[Progress] = []
    declared = [
        f"CREATE STREAM {name} USING parquet OPTIONS (path '{side.folder}/{name}') TIMESTAMP BY ts;" for name in "ab"
    ]
    sink = f"CREATE SINK out USING parquet OPTIONS (path '{side.folder}/out', mode 'overwrite');"
    windows = ", ".join(f"{name} [RANGE {side.window} MICROSECONDS]" for name in "ab")
    select = (
        "INSERT INTO out SELECT a.k AS k, count(*) AS n, sum(a.v * b.v) AS v"
        f" FROM {windows} WHERE a.k = b.k GROUP BY a.k"
    )
    job = prepare("\n".join([*declared, sink, select]), opener=opener(spark, follow=False))
    settings = Settings(slots=2, batch_rows=ROWS + ROWS // OTHER, balance=side.balance, at_end="flush")
    SparkRunner(job, settings, spark, checkpoint).run(watch=moments.append)
    shutil.rmtree(checkpoint)
    times = [new.seconds - old.seconds for old, new in pairwise(moments) if new.rows_in > old.rows_in]
    side.seconds += times[len(times) // 2 :]
    side.results = int(pq.read_table(f"{side.folder}/out", columns=["n"])["n"].to_numpy().sum())
    _log.info("%s: %s s a batch", side.name, " ".join(f"{seconds:.2f}" for seconds in times))
