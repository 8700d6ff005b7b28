"""Joins whose rates and selectivities change from one phase to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lab.bench.streams import START, query_over
from lab.bench.timed_joins import Edges, TimedJoin


@dataclass(frozen=True)
class Phase:
    """A phase: seconds of event time, rows a second of each stream, and the fan-out of each edge, which is the number
    of rows in a window that a row of the rarer side finds."""

    seconds: float
    rates: tuple[float, ...]
    fan_outs: tuple[float, ...]


def phased_join(phases: Sequence[Phase], edges: Edges, window: float, seed: int) -> TimedJoin:
    """One phase after another; rows at random times."""
    generator, begin = np.random.default_rng(seed), 0.0
    parts: list[list[pa.RecordBatch]] = [[] for _ in phases[0].rates]
    for phase in phases:
        values = [
            max(1, int(window * max(phase.rates[one], phase.rates[other]) / fan_out))
            for (one, other), fan_out in zip(edges, phase.fan_outs, strict=True)
        ]
        for source, rate in enumerate(phase.rates):
            rows = int(phase.seconds * rate)
            times = np.sort(generator.integers(int(begin * 1e6), int((begin + phase.seconds) * 1e6), rows)) + START
            keys = {
                f"e{number}": generator.integers(0, values[number], rows)
                for number, edge in enumerate(edges)
                if source in edge
            }
            parts[source].append(pa.record_batch({"ts": pa.array(times, pa.timestamp("us")), "v": times, **keys}))
        begin += phase.seconds
    data = {f"s{i}": pa.Table.from_batches(part).combine_chunks().to_batches()[0] for i, part in enumerate(parts)}
    windows = ", ".join(f"{name} [RANGE {int(window * 1e6)} MICROSECONDS]" for name in data)
    where = " AND ".join(f"s{a}.e{n} = s{b}.e{n}" for n, (a, b) in enumerate(edges))
    return TimedJoin(query_over(data, f"SELECT s0.v AS v FROM {windows} WHERE {where}"), edges, data, begin)
