"""`bench memory`: a long run keeps only rows that may still join, and its cost per row does not grow.

Two streams are joined, with two indexes each; rows come out of order by up to a quarter of the window. After every
batch the rows that may still join are counted from the data, by the definition, with the watermarks of that batch.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pyarrow as pa

from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.streams import START, query_over, run_engine, streams

ROWS, BATCH, EVERY, WINDOW = 2_000_000, 8192, 100, 10_000_000
DISORDER = WINDOW // 4
PAYLOAD = 8
SELECT = (
    "SELECT a.v AS av, b.v AS bv, c.v AS cv FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [RANGE 10 SECONDS] "
    "WHERE a.x = b.x AND b.y = c.y"
)


def run() -> list[Result]:
    """Measure the state after every batch and the time of each quarter of the run."""
    data = dict(streams({"a": ["x"], "b": ["x", "y"], "c": ["y"]}, ROWS, domain=10 * ROWS, every=EVERY))
    random = np.random.default_rng(7)
    times = {}
    for name, batch in data.items():
        times[name] = START + np.arange(ROWS) * EVERY - random.integers(0, DISORDER, ROWS)
        data[name] = batch.set_column(0, "ts", pa.array(times[name], pa.timestamp("us")))
    query = query_over(data, SELECT, lateness=f"{DISORDER} MICROSECONDS")
    run_engine(query, {name: batch.slice(0, 4 * BATCH) for name, batch in data.items()}, BATCH)
    held, bytes_a_row, ends = [], [], [perf_counter()]

    def look(engine: BatchDriver, rows: int) -> None:
        if rows * 4 // ROWS >= len(ends) and rows < ROWS:
            ends.append(perf_counter())
        if rows % (16 * BATCH) == 0 and START + rows * EVERY > START + 4 * WINDOW:
            before = min(t[: rows - BATCH].max() for t in times.values()) - DISORDER
            joinable = sum(int((t[:rows] >= before - WINDOW).sum()) for t in times.values())
            held.append(engine.slot.peak_rows / joinable)
            stem = engine.slot.executor.stems[1]
            bytes_a_row.append(stem.nbytes / stem.held - PAYLOAD)

    run_engine(query, data, BATCH, after_batch=look)
    ends.append(perf_counter())
    quarters = np.diff(ends)
    growth = quarters[-1] / quarters[1]
    return [
        Result("long run", "peak state / rows that may still join", max(held), "", 1.3, max(held) <= 1.3),
        Result("long run", "last quarter / second quarter, time", growth, "", 1.2, growth <= 1.2),
        Result("two indexes", "state beyond payload", max(bytes_a_row), "bytes/row", 120, max(bytes_a_row) <= 120),
        Result("long run", "throughput", 3 * ROWS / (ends[-1] - ends[0]), "rows/s"),
    ]
