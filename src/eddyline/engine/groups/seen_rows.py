"""The rows that were read of each stream, by cluster: what the sums of clusters (clusters.py) are compared with.

Rows are counted before any filter. Filters change what a cluster gave to a sum, not how many rows it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.model import BoundQuery
from eddyline.engine.groups.clusters import CLUSTERS, Clusters
from eddyline.engine.groups.seen_counts import SeenCounts


@dataclass(frozen=True)
class SeenRows:
    """The rows that were read of a stream: how many in each cluster, and their oldest time."""

    clusters: NDArray[np.int64] = field(default_factory=lambda: np.zeros(CLUSTERS, np.int64))
    oldest: int | None = None

    def plus(self, clusters: NDArray[np.int64], times: NDArray[np.int64]) -> SeenRows:
        """With further rows, at least one."""
        oldest = int(times.min())
        oldest = oldest if self.oldest is None else min(oldest, self.oldest)
        return SeenRows(self.clusters + np.bincount(clusters, minlength=CLUSTERS), oldest)


class SeenStreams:
    """The rows that were read so far. `now` is replaced, never changed."""

    def __init__(self, query: BoundQuery) -> None:
        self._clusters = Clusters(query)
        self._places = {query.sources[s].stream.name: place for place, s in enumerate(self._clusters.streams)}
        self.now: Mapping[str, SeenRows] = {}

    def counts(self) -> dict[str, SeenCounts]:
        """The counts for a commit."""
        return {name: SeenCounts(tuple(seen.clusters.tolist()), seen.oldest) for name, seen in self.now.items()}

    def restore(self, counts: Mapping[str, SeenCounts]) -> None:
        """Continue from the counts of a commit."""
        self.now = {name: SeenRows(np.array(seen.clusters, np.int64), seen.oldest) for name, seen in counts.items()}

    def add(self, stream: str, times: NDArray[np.int64]) -> None:
        """Add rows of a stream, at least one, by their event times."""
        clusters = self._clusters.of_times(self._places[stream], times)
        self.now = {**self.now, stream: self.now.get(stream, SeenRows()).plus(clusters, times)}
