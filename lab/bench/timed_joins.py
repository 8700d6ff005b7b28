"""Joins of streams with rates of their own, cut by event time: for benchmarks in which rates matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.bound.model import BoundQuery
from lab.bench.streams import START, Streams, query_over

Edges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TimedJoin:
    """A join of streams s0, s1, ... over the edges of a tree, and `seconds` of their rows."""

    query: BoundQuery
    edges: Edges
    data: Streams
    seconds: float

    def batches(self, seconds: float) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
        """The rows in batches of `seconds` seconds of event time."""
        times = {name: batch.column("ts").cast(pa.int64()).to_numpy() for name, batch in self.data.items()}
        at = dict.fromkeys(times, 0)
        for step in range(1, round(self.seconds / seconds) + 1):
            ends = {name: int(np.searchsorted(t, START + step * seconds * 1e6)) for name, t in times.items()}
            yield [(name, self.data[name].slice(at[name], end - at[name])) for name, end in ends.items()]
            at = ends


def timed_join(
    rates: Sequence[float], edges: Edges, fan_outs: Sequence[float], seconds: float, window: float, seed: int
) -> TimedJoin:
    """A join of rows at random times; a row of the rarer side of an edge finds on average the edge's fan-out of rows in
    a window."""
    generator = np.random.default_rng(seed)
    columns: list[dict[str, object]] = []
    for rate in rates:
        rows = int(seconds * rate)
        times = np.sort(generator.integers(0, int(seconds * 1e6), rows)) + START
        columns.append({"ts": pa.array(times, pa.timestamp("us")), "v": generator.random(rows)})
    for number, ((one, other), fan_out) in enumerate(zip(edges, fan_outs, strict=True)):
        values = max(1, int(window * max(rates[one], rates[other]) / fan_out))
        for source in (one, other):
            columns[source][f"e{number}"] = generator.integers(0, values, int(seconds * rates[source]))
    data = {f"s{i}": pa.record_batch(made) for i, made in enumerate(columns)}
    windows = ", ".join(f"{name} [RANGE {int(window * 1e6)} MICROSECONDS]" for name in data)
    where = " AND ".join(f"s{a}.e{n} = s{b}.e{n}" for n, (a, b) in enumerate(edges))
    return TimedJoin(query_over(data, f"SELECT s0.v AS v FROM {windows} WHERE {where}"), edges, data, seconds)


def chain_join(
    rates: Sequence[float],
    selectivities: Sequence[float],
    window: float,
    seconds: float,
    seed: int,
    lateness: str = "0 SECONDS",
) -> TimedJoin:
    """Streams A, B, ... in a chain, with Poisson arrivals; neighbours match by a condition that no index serves."""
    generator, names = np.random.default_rng(seed), "ABCDEFGH"[: len(rates)]
    data = {}
    for name, rate in zip(names, rates, strict=True):
        rows = generator.poisson(rate * seconds)
        times = np.sort(generator.integers(0, int(seconds * 1e6), rows)) + START
        keys = {key: generator.integers(0, 1 << 30, rows) for key in ("l", "r")}
        data[name] = pa.record_batch({"ts": pa.array(times, pa.timestamp("us")), **keys})
    windows = ", ".join(f"{name} [RANGE {int(window * 1e6)} MICROSECONDS]" for name in names)
    where = " AND ".join(
        f"({left}.r + {right}.l) % 10000 < {round(10000 * share)}"
        for left, right, share in zip(names, names[1:], selectivities, strict=False)
    )
    query = query_over(data, f"SELECT A.r AS a FROM {windows} WHERE {where}", lateness)
    return TimedJoin(query, tuple((i, i + 1) for i in range(len(names) - 1)), data, seconds)
