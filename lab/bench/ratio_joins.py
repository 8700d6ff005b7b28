"""The join of paper 004: three streams that agree in one key, without windows, so that their state only grows.

The rows of a stream belong to partition groups, and each group has a *join ratio*. The paper defines it by a *tuple
range*: within one range of rows of each stream, a value of the key of a group with ratio r comes r times on average. So
a group has the fewer values the larger its ratio is. Of two groups with as many rows, one with twice the ratio gives
four times the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.model import BoundQuery
from eddyline.plan.partition_groups import key_groups
from lab.bench.streams import START, Streams, query_over

STREAMS = "abc"
SELECT = "SELECT a.i AS a, b.i AS b, c.i AS c FROM a, b, c WHERE a.k = b.k AND b.k = c.k"

Rows = list[tuple[str, pa.RecordBatch]]
"""Rows of each stream."""


APART = 1000
"""Microseconds of event time between two rows of a stream."""


@dataclass(frozen=True)
class Phase:
    """A part of the rows of each stream: how many they are, and the weight of each group among them."""

    rows: int
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class RatioJoin:
    """A join and its rows. The columns of a stream are the time, the key k and the number i of the row."""

    query: BoundQuery
    data: Streams
    rows: int
    """Of each stream."""

    def batches(self, rows: int) -> Iterator[Rows]:
        """The rows in batches of `rows` of each stream."""
        for at in range(0, self.rows, rows):
            yield [(name, batch.slice(at, rows)) for name, batch in self.data.items()]


def ratio_join(ratios: Sequence[float], tuple_range: int, phases: Sequence[Phase], seed: int = 7) -> RatioJoin:
    """A join with a partition group for each of `ratios`."""
    groups, random = len(ratios), np.random.default_rng(seed)
    values = np.array([max(1, round(tuple_range / groups / ratio)) for ratio in ratios])
    keys, first = _keys(values), values.cumsum() - values
    rows = sum(phase.rows for phase in phases)
    times = pa.array(np.arange(rows) * APART + START, pa.timestamp("us"))
    data = {}
    for name in STREAMS:
        parts = [random.choice(groups, phase.rows, p=phase.weights / phase.weights.sum()) for phase in phases]
        group = np.concatenate(parts)
        drawn = keys[first[group] + random.integers(0, values[group])]
        data[name] = pa.record_batch({"ts": times, "k": drawn, "i": np.arange(rows)})
    return RatioJoin(query_over(data, SELECT), data, rows)


def even(rows: int, groups: int) -> list[Phase]:
    """All groups have as many rows, all the time."""
    return [Phase(rows, np.ones(groups))]


def thirds(groups: int, ratios: Sequence[float] = (4.0, 2.0, 1.0)) -> list[float]:
    """The join ratios of groups of which each third has one.

    >>> thirds(6)
    [4.0, 4.0, 2.0, 2.0, 1.0, 1.0]
    """
    return [ratios[group * len(ratios) // groups] for group in range(groups)]


def _keys(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys of which the first values[0] are in group 0, the next values[1] in group 1, and so on."""
    groups = len(values)
    candidates = np.arange(4 * groups * (int(values.max()) + 16))
    in_order = np.argsort(key_groups(pa.array(candidates), groups), kind="stable")
    counts = np.bincount(key_groups(pa.array(candidates), groups), minlength=groups)
    assert (counts >= values).all()
    first = counts.cumsum() - counts
    return np.concatenate([candidates[in_order[f : f + n]] for f, n in zip(first, values, strict=True)])
