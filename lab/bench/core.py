"""`bench core`: joins from Arrow batches to Arrow batches, payload gathered.

The three-way join runs beside a loop written by hand for this one query over the same kernels: no plan, no packets, no
routing, no wind-back, arrays large enough from the start. The engine's share of the loop's speed shows the price of
generality.

With `--against CHECKOUT` the joins run in this checkout and in another one instead (against.py).
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.errors import InternalError
from eddyline.kernels import hash_index
from eddyline.state.probing import NO_BOUND
from eddyline.state.tuning import DEFAULT
from lab.bench import Result
from lab.bench.against import CoreJoin
from lab.bench.against import against as compare
from lab.bench.streams import Streams, query_over, run_engine, streams

BATCH = 16384
ROUNDS = 5
BAR = 0.35
WINDOW = 5_000_000
THREE_WAY = (
    "SELECT a.v AS av, b.v AS bv, c.v AS cv FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS] "
    "WHERE a.a = b.a AND b.b = c.b"
)


def run(against: str | None = None) -> list[Result]:
    """Measure all joins; the two sides of the three-way join take turns. With `against`, compare with the code of
    another checkout."""
    if against is not None:
        return compare(against, [FIRST, *CASES], BATCH)
    data = streams(FIRST.columns, FIRST.rows, FIRST.domain, every=100)
    query = query_over(data, THREE_WAY)
    small = {name: batch.slice(0, 50_000) for name, batch in data.items()}
    run_engine(query, small, BATCH)
    by_hand(small)
    sides: dict[str, tuple[Callable[[], int], list[float]]] = {
        "engine": (lambda: run_engine(query, data, BATCH)[0], []),
        "by hand": (lambda: by_hand(data), []),
    }
    found = set()
    for _ in range(ROUNDS):
        for side, times in sides.values():
            begin = perf_counter()
            found.add(side())
            times.append(perf_counter() - begin)
    if len(found) != 1:
        raise InternalError(f"the two sides disagree: {found}")
    engine, loop = (3_000_000 / median(times) for _, times in sides.values())
    ratio = median(b / e for e, b in zip(sides["engine"][1], sides["by hand"][1], strict=True))
    return [
        Result("three-way", "throughput", engine, "rows/s"),
        Result("three-way by hand", "throughput", loop, "rows/s"),
        Result("three-way", "engine / by hand", ratio, "", BAR, ratio >= BAR),
        *map(_measure, CASES),
    ]


FIRST = CoreJoin("three-way", {"a": ["a"], "b": ["a", "b"], "c": ["b"]}, THREE_WAY, 1_000_000, 100_000)
CASES = [
    CoreJoin(
        "five-way star",
        {"f": ["a", "b", "c", "d"], "a": ["k"], "b": ["k"], "c": ["k"], "d": ["k"]},
        "SELECT f.v AS fv, a.v AS av, d.v AS dv FROM f [RANGE 5 SECONDS], a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], "
        "c [RANGE 5 SECONDS], d [RANGE 5 SECONDS] WHERE f.a = a.k AND f.b = b.k AND f.c = c.k AND f.d = d.k",
        400_000,
        50_000,
    ),
    CoreJoin(
        "six-way chain",
        {"a": ["y"], "b": ["x", "y"], "c": ["x", "y"], "d": ["x", "y"], "e": ["x", "y"], "f": ["x"]},
        "SELECT a.v AS av, f.v AS fv FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS], "
        "d [RANGE 5 SECONDS], e [RANGE 5 SECONDS], f [RANGE 5 SECONDS] "
        "WHERE a.y = b.x AND b.y = c.x AND c.y = d.x AND d.y = e.x AND e.y = f.x",
        300_000,
        50_000,
    ),
    CoreJoin(
        "theta join",
        {"a": ["x"], "b": ["y"]},
        "SELECT a.v AS av, b.v AS bv FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.x BETWEEN b.y - 3 AND b.y + 3",
        300_000,
        100_000,
    ),
]


def _measure(join: CoreJoin) -> Result:
    data = streams(join.columns, join.rows, join.domain, every=100)
    query = query_over(data, join.select)
    run_engine(query, {stream: batch.slice(0, BATCH) for stream, batch in data.items()}, BATCH)
    times = []
    for _ in range(3):
        begin = perf_counter()
        run_engine(query, data, BATCH)
        times.append(perf_counter() - begin)
    return Result(join.name, "throughput", join.rows * len(join.columns) / median(times), "rows/s")


Ints = NDArray[np.int64]


class _HandStream:
    """One stream of the loop by hand: its columns and the chained hash index on each key."""

    def __init__(self, rows: int, keys: list[str]) -> None:
        self.ts, self.v, self.n, self.live = np.empty(rows, np.int64), np.empty(rows), 0, 0
        self.keys = {k: np.empty(rows, np.int64) for k in keys}
        self.after = {k: np.empty(rows, np.int64) for k in keys}
        self.tables = {k: np.full((1 << 20, 2), hash_index.EMPTY) for k in keys}

    def build(self, batch: pa.RecordBatch) -> Ints:
        first, last = self.n, self.n + batch.num_rows
        self.ts[first:last] = batch.column("ts").view(pa.int64()).to_numpy()
        self.v[first:last] = batch.column("v").to_numpy()
        for k, values in self.keys.items():
            values[first:last] = batch.column(k).to_numpy()
            hash_index.build(self.tables[k], self.after[k], values, first, last)
        self.n = last
        return np.arange(first, last)

    def probe(self, key: str, keys: Ints, rows: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        size = 4 * rows.size + 64
        while True:
            which, found = np.empty(size, np.int64), np.empty(size, np.int64)
            n, at, _ = hash_index.probe(
                self.tables[key],
                self.after[key],
                self.ts,
                keys,
                rows,
                low,
                high,
                np.array([self.n]),
                self.live,
                NO_BOUND,
                1,
                np.zeros(1, np.int64),
                np.empty(2 * DEFAULT.together, np.int64),
                0,
                0,
                which,
                found,
            )
            if at == rows.size:
                return which[:n], found[:n]
            size *= 4


def by_hand(data: Streams) -> int:
    """The three-way join and nothing else."""
    rows = data["a"].num_rows
    a, b, c = _HandStream(rows, ["a"]), _HandStream(rows, ["a", "b"]), _HandStream(rows, ["b"])
    found = 0
    for at in range(0, rows, BATCH):
        out = []
        for name, side in (("a", a), ("b", b), ("c", c)):
            new = side.build(data[name].slice(at, BATCH))
            t = side.ts[new]
            if name == "a":
                which, rb = b.probe("a", a.keys["a"], new, t - WINDOW, t + WINDOW)
                ra = new[which]
                low, high = np.maximum(a.ts[ra], b.ts[rb]) - WINDOW, np.minimum(a.ts[ra], b.ts[rb]) + WINDOW
                which, rc = c.probe("b", b.keys["b"], rb, low, high)
                ra, rb = ra[which], rb[which]
            elif name == "b":
                which, ra = a.probe("a", b.keys["a"], new, t - WINDOW, t + WINDOW)
                rb = new[which]
                low, high = np.maximum(a.ts[ra], b.ts[rb]) - WINDOW, np.minimum(a.ts[ra], b.ts[rb]) + WINDOW
                which, rc = c.probe("b", b.keys["b"], rb, low, high)
                ra, rb = ra[which], rb[which]
            else:
                which, rb = b.probe("b", c.keys["b"], new, t - WINDOW, t + WINDOW)
                rc = new[which]
                low, high = np.maximum(c.ts[rc], b.ts[rb]) - WINDOW, np.minimum(c.ts[rc], b.ts[rb]) + WINDOW
                which, ra = a.probe("a", b.keys["a"], rb, low, high)
                rb, rc = rb[which], rc[which]
            out.append((ra, rb, rc))
        ra, rb, rc = (np.concatenate(parts) for parts in zip(*out, strict=True))
        result = pa.record_batch({"av": a.v[ra], "bv": b.v[rb], "cv": c.v[rc]})
        found += result.num_rows
        for side in (a, b, c):
            side.live = int(np.searchsorted(side.ts[: side.n], side.ts[side.n - 1] - WINDOW))
    return found
