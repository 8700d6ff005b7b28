"""The engine in a Python program: streams are iterables of record batches, results come to a function."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

import eddyline as el


def trades(seed: int) -> Iterator[pa.RecordBatch]:
    """Ten seconds of made-up trades, a batch for each second."""
    rng = np.random.default_rng(seed)
    for second in range(10):
        times = [datetime(2026, 1, 1) + timedelta(seconds=second, milliseconds=5 * i) for i in range(200)]
        symbols, prices = rng.choice(["A", "B", "C"], 200), rng.normal(100, 1, 200)
        yield pa.record_batch({"ts": times, "symbol": symbols, "price": prices})


def show(rows: pa.RecordBatch) -> None:
    """Called with each batch of results."""
    for row in rows.to_pylist():
        print(f"{row['until']:%H:%M:%S}  {row['symbol']}  spread {row['spread']:+.2f}")


run = el.query(
    """
    SELECT window_end() AS until, a.symbol, AVG(a.price) - AVG(b.price) AS spread
    FROM here [RANGE 5 SECONDS SLIDE 5 SECONDS] AS a, there [RANGE 5 SECONDS SLIDE 5 SECONDS] AS b
    WHERE a.symbol = b.symbol AND ABS(a.ts - b.ts) <= INTERVAL '100' MILLISECOND
    GROUP BY a.symbol
    """,
    streams={"here": el.stream(trades(1), time="ts"), "there": el.stream(trades(2), time="ts")},
).start(sink=show)
summary = run.wait()
print(f"{summary.rows_in} rows in, {summary.rows_out} rows out")
