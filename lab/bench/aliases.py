"""`bench aliases`: self-joins whose aliases share a SteM, beside the same joins with a SteM for each alias.

Both sides run in one thread, in turns, and the order changes with every round. The ratio of a round is that of the CPU
times of its two runs; the medians of all rounds are reported, beside the state at the end of batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from time import thread_time

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.errors import InternalError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.streams import query_over, streams

ROWS, KEYS, BATCH, ROUNDS = 500_000, 100_000, 16_384, 5
"""Rows of the stream, different keys, rows in a batch, rounds."""

CASES = {
    "a.v <> b.v": "s [RANGE 5 SECONDS] AS a, s [RANGE 5 SECONDS] AS b WHERE a.k = b.k AND a.v <> b.v",
    "a.ts < b.ts": "s [RANGE 5 SECONDS] AS a, s [RANGE 5 SECONDS] AS b WHERE a.k = b.k AND a.ts < b.ts",
    "windows of 5 and 1 seconds": "s [RANGE 5 SECONDS] AS a, s [RANGE 1 SECOND] AS b WHERE a.k = b.k",
    "three aliases": "s [RANGE 5 SECONDS] AS a, s [RANGE 5 SECONDS] AS b, s [RANGE 5 SECONDS] AS c"
    " WHERE a.k = b.k AND b.k = c.k AND a.ts < b.ts AND b.ts < c.ts",
    "short windows": "s [RANGE 100 MILLISECONDS] AS a, s [RANGE 100 MILLISECONDS] AS b WHERE a.k = b.k AND a.ts < b.ts",
}
"""By name, what follows SELECT a.v AS av, b.v AS bv FROM. With short windows batches are large, and have many times the
rows of a window: the worst case for one SteM, because probes pass over rows that only the other alias has built."""

LARGE, FEW = 200_000, 1000
"""Rows in a batch, and different keys at most, in the case with short windows."""

APART = replace(DEFAULT, engine=replace(DEFAULT.engine, shares_stems=False))


def run() -> list[Result]:
    """Measure all cases."""
    return measure(ROWS, KEYS, ROUNDS)


def measure(rows: int, keys: int, rounds: int) -> list[Result]:
    """Measure all cases with so much data."""
    results = list[Result]()
    for case, rest in CASES.items():
        large = case == "short windows"
        data = streams({"s": ["k"]}, rows, min(keys, FEW) if large else keys, every=100)["s"]
        batches = [data.slice(at, step) for step in [LARGE if large else BATCH] for at in range(0, rows, step)]
        query = query_over({"s": data}, f"SELECT a.v AS av, b.v AS bv FROM {rest}")
        ratios, sizes = list[float](), list[float]()
        for number in range(rounds + 1):  # the first one compiles, and warms up
            sides = {"shared": DEFAULT, "apart": APART}
            ran = {n: _run(query, batches, sides[n]) for n in (sides if number % 2 else reversed(sides))}
            (seconds, size, found), (seconds_apart, size_apart, found_apart) = ran["shared"], ran["apart"]
            if found != found_apart:
                raise InternalError("the sides disagree")
            ratios.append(seconds / seconds_apart)
            sizes.append(size / size_apart)
        results.append(Result(case, "CPU time: one SteM / a SteM for each alias", median(ratios[1:]), ""))
        results.append(Result(case, "bytes of state: one SteM / a SteM for each alias", median(sizes[1:]), ""))
    return results


def _run(query: BoundQuery, batches: Sequence[pa.RecordBatch], tuning: Tuning) -> tuple[float, int, int]:
    """CPU seconds, the most bytes of state, and the number of results."""
    begin, engine, found = thread_time(), BatchDriver(query, Settings(), tuning=tuning), 0
    for batch in batches:
        found += sum(some.num_rows for some in engine.batch([("s", batch)]).results)
    return thread_time() - begin, engine.peak.bytes, found
