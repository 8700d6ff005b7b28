"""Clusters of rows: how much each random part of the input gave to a group, from which online.py computes intervals.

The rows of each stream are divided into `CLUSTERS` random parts by a hash of their event time. Joined rows are not
independent of each other, but the clusters of one stream are, if its rows come in random order. So the spread of what
the clusters gave tells how far off a sum over the rows so far may be, also for joins. This is the variance of ripple
joins (Haas and Hellerstein 1999), with clusters in place of rows.

A tuple of a join has one cluster for each of its streams. A *class* is kept for each set of streams: the exclusive or
of the tuple's clusters in these streams. The classes of one stream are its clusters. For a set of several streams each
class has every cluster of every stream equally often, so the spread of classes is that of the combinations alone.

The event time belongs to the row: a row has the same cluster in every slot, after every restart, and in every plan. The
sums are one more state of the cells of the group-by (panes.py): they are merged, committed and wound back with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.aggregates import State
from eddyline.bound.expr import Aggregate, Expr
from eddyline.bound.group_ids import Ids, values_of
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.plan.plan import plan_of
from eddyline.routing.packet import Packet
from eddyline.state.rows import Rows

Floats = NDArray[np.float64]

CLUSTERS = 16
"""A power of two, because classes are made with exclusive or."""
MOST_STREAMS = 4
"""The most streams of a query that are estimated: there are 2^n - 1 classes for n streams."""
_PIECES = 256
"""A slide is divided into so many pieces of time, and all rows of a piece are in one cluster."""
_COUNTED, _SUMMED = ("count",), ("sum", "avg")


def refusal(query: BoundQuery) -> str:
    """Why the aggregates of a query have no intervals; empty if they have."""
    streams = [source for source in query.sources if not source.stream.is_table]
    if query.group is None:
        return "the query has no aggregates"
    if query.counts_rows:
        return "rows of a ROWS window are counted when the window ends"
    if len(streams) > MOST_STREAMS:
        return f"more than {MOST_STREAMS} streams are joined"
    if len({source.stream.name for source in streams}) < len(streams):
        return "a stream is joined with itself"
    ranges = query.group.slide is None and any(s.window.kind is WindowKind.RANGE for s in streams)
    if len(streams) > 1 and (ranges or plan_of(query).graph.time_pairs):
        return "only rows of about the same time are joined"
    return ""


def clusters_of(query: BoundQuery) -> Clusters | None:
    """The clusters of a query; None if its aggregates have no intervals."""
    return None if refusal(query) else Clusters(query)


@dataclass(frozen=True)
class Clusters:
    """The clusters and classes of one query, and the sums that are kept of them."""

    query: BoundQuery

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """The sources that are streams. Tables are there whole, so they have no clusters."""
        return tuple(i for i, source in enumerate(self.query.sources) if not source.stream.is_table)

    @cached_property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of streams that have classes, by the places of the streams."""
        places = range(len(self.streams))
        return tuple(some for size in range(1, len(places) + 1) for some in combinations(places, size))

    @cached_property
    def grain(self) -> int:
        """The length of time, in microseconds, whose rows are all in one cluster."""
        group = self.query.group
        return 1 if group is None or group.slide is None else max(1, group.slide.step // _PIECES)

    @cached_property
    def numbers(self) -> tuple[tuple[str, Expr | None], ...]:
        """What is summed for each class: ("count", None) are tuples, ("count", x) values, and ("sum", x) their sum."""
        assert self.query.group is not None
        found: list[tuple[str, Expr | None]] = [("count", None)]
        for aggregate in self.query.group.aggregates:
            if is_estimated(aggregate):
                found.append(("count", aggregate.arg))
                found += [("sum", aggregate.arg)] if aggregate.name.lower() in _SUMMED else []
        return tuple(dict.fromkeys(found))

    def of_times(self, place: int, times: NDArray[np.int64]) -> Ids:
        """The cluster of each row, by the place of its stream and its event time."""
        return of_pieces(place, times // self.grain)

    def of_tuples(self, packet: Packet, rows: Sequence[Rows]) -> list[Ids]:
        """The class of each complete tuple, for each set of streams."""
        own = [self.of_times(i, rows[s].times.values[packet.rows[s]]) for i, s in enumerate(self.streams)]
        return [np.bitwise_xor.reduce([own[i] for i in some]) for some in self.sets]

    def classed(self, classes: Sequence[Ids], arguments: Mapping[Expr, pa.Array], cell: Ids, cells: int) -> State:
        """The sums of tuples; `arguments` are the values of the aggregates' arguments."""
        sums = np.empty((cells, len(self.numbers), len(self.sets), CLUSTERS))
        for at, class_ in enumerate(classes):
            ids = cell * CLUSTERS + class_
            for number, (kind, arg) in enumerate(self.numbers):
                weights = None if arg is None else _weights(kind, arguments[arg])
                sums[:, number, at] = np.bincount(ids, weights, cells * CLUSTERS).reshape(cells, CLUSTERS)
        return _state(sums)

    def merge(self, state: State, ids: Ids, count: int) -> State:
        """The sums of cells that are united."""
        own = self.sums(state)
        sums = np.zeros((count, *own.shape[1:]))
        np.add.at(sums, ids, own)
        return _state(sums)

    def sums(self, state: State) -> Floats:
        """The sums, by cell, number, set of streams and class."""
        flat: Floats = state["sums"].flatten().to_numpy()
        return flat.reshape(len(state["sums"]), len(self.numbers), len(self.sets), CLUSTERS)


def of_pieces(place: int, pieces: NDArray[np.int64]) -> Ids:
    """The cluster of each piece of time. Streams have different ones, so clusters of two streams are independent."""
    mixed = pieces.astype(np.uint64) + np.uint64((place + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed >> np.uint64(60)).astype(np.int64)


def is_estimated(aggregate: Aggregate) -> bool:
    """Whether an interval can be computed for an aggregate."""
    return not aggregate.distinct and aggregate.name.lower() in (*_COUNTED, *_SUMMED)


def _weights(kind: str, values: pa.Array) -> Floats:
    if kind == "count":
        valid: Floats = values.is_valid().to_numpy(zero_copy_only=False).astype(np.float64)
        return valid
    if pa.types.is_decimal(values.type) or pa.types.is_boolean(values.type):
        values = values.cast(pa.float64())
    numbers: Floats = values_of(values).astype(np.float64)
    return numbers


def _state(sums: Floats) -> State:
    width = int(np.prod(sums.shape[1:]))
    return {"sums": pa.FixedSizeListArray.from_arrays(pa.array(sums.ravel()), width)}
