"""Join graphs for benchmarks: chains and stars whose edges have different fan-outs, so that orders differ in cost.

All streams have the same rate and window, so an edge whose keys are uniform over window / fan-out values gives a probe
`fan-out` matches on average, from either side. A fixed order is an order of FROM: a route always goes to the first
linked source in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lab.bench.counted import Costs
from lab.bench.streams import START, Streams

EVERY = 100
"""Microseconds between two rows of a stream."""
Order = tuple[int, ...]
Routes = tuple[Order, ...]


@dataclass(frozen=True)
class Edge:
    """Sources `one` and `other` agree in a column; a probe of either finds `fan_out` rows."""

    one: int
    other: int
    fan_out: float


@dataclass(frozen=True)
class Join:
    """A join of `sources` streams over the edges of a tree."""

    name: str
    sources: int
    edges: tuple[Edge, ...]
    window: int
    """Rows of each stream that a window holds."""

    def domain(self, edge: int) -> int:
        """The number of distinct keys of an edge."""
        return max(1, round(self.window / self.edges[edge].fan_out))

    def select(self, order: Sequence[int]) -> str:
        """The query, with FROM in this order."""
        sources = ", ".join(f"s{i} [RANGE {self.window * EVERY} MICROSECONDS]" for i in order)
        where = " AND ".join(f"s{e.one}.e{i} = s{e.other}.e{i}" for i, e in enumerate(self.edges))
        return f"SELECT s0.v AS v FROM {sources} WHERE {where}"

    def data(self, rows: int, seed: int, hits: NDArray[np.bool_] | None = None) -> Streams:
        """`rows` rows of each stream. With `hits`, row r of stream 0 has no partner along edge e unless hits[r, e]."""
        random = np.random.default_rng(seed)
        times = pa.array(np.arange(rows) * EVERY + START, pa.timestamp("us"))
        made = {}
        for source in range(self.sources):
            columns: dict[str, object] = {"ts": times, "v": random.random(rows)}
            for i, edge in enumerate(self.edges):
                if source in (edge.one, edge.other):
                    keys = random.integers(0, self.domain(i), rows)
                    columns[f"e{i}"] = (
                        np.where(hits[:, i], keys, -1 - keys) if hits is not None and not source else keys
                    )
            made[f"s{source}"] = pa.record_batch(columns)
        return made

    def routes(self, order: Sequence[int]) -> Routes:
        """For each source the route of its rows under an order."""
        return tuple(tuple(e.other for e in self._steps(start, order)) for start in range(self.sources))

    def expected(self, order: Sequence[int], costs: Costs) -> float:
        """The work of one row of each stream under an order."""
        work = 0.0
        for start in range(self.sources):
            tuples = 1.0
            for edge in self._steps(start, order):
                work += tuples * costs.probe
                tuples *= edge.fan_out
                work += tuples * costs.match
        return work

    def _steps(self, start: int, order: Sequence[int]) -> Iterator[Edge]:
        """The edges of a route, each from the span to the source it adds."""
        span = {start}
        while len(span) < self.sources:
            edge = next(e for source in order if source not in span for e in self._links(span, source))
            span.add(edge.other)
            yield edge

    def _links(self, span: set[int], source: int) -> Iterator[Edge]:
        for e in self.edges:
            if e.one == source and e.other in span:
                yield Edge(e.other, source, e.fan_out)
            elif e.other == source and e.one in span:
                yield e

    def orders(self) -> list[Order]:
        """One order for each way of routing all sources. In a star the place of the hub in the order does not
        matter."""
        hub_first = all(e.one == 0 for e in self.edges)
        rest = range(1, self.sources) if hub_first else range(self.sources)
        found: dict[Routes, Order] = {}
        for order in permutations(rest):
            whole = (0, *order) if hub_first else order
            found.setdefault(self.routes(whole), whole)
        return list(found.values())


def chain(fan_outs: Sequence[float], window: int) -> Join:
    """A chain s0 - s1 - s2 ... with these fan-outs."""
    sources = len(fan_outs) + 1
    return Join(f"{sources}-way chain", sources, tuple(Edge(i, i + 1, f) for i, f in enumerate(fan_outs)), window)


def star(fan_outs: Sequence[float], window: int) -> Join:
    """A star with s0 in the middle, with these fan-outs."""
    sources = len(fan_outs) + 1
    return Join(f"{sources}-way star", sources, tuple(Edge(0, i + 1, f) for i, f in enumerate(fan_outs)), window)
