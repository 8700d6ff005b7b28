"""Aggregates that need all values of a cell: quantiles, lists, concatenated texts.

The state is a bag of values: each distinct value with its number of occurrences. Bags merge by adding the numbers, and
the result is computed from the *sorted* values of a bag, so it does not depend on the order of rows or how they were
split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Aggregate
from eddyline.bound.group_ids import Ids, group_ids, plain, representatives
from eddyline.errors import InternalError

State = Mapping[str, pa.Array]
NAMES = ("quantile_cont", "quantile_disc", "list", "string_agg")
_SAFE = 1 << 20


class SortedBags(NamedTuple):
    """The bags of some cells, one after the other, each sorted: NULL is last, NaN before it."""

    values: pa.Array
    counts: Ids
    sizes: Ids
    """How many values each cell has, repeated ones included."""

    def at(self, places: Ids) -> pa.Array:
        """For each cell the value at a place among its sorted values; an arbitrary value for a cell without values."""
        before = np.cumsum(self.sizes) - self.sizes
        found = np.searchsorted(np.cumsum(self.counts), before + places, "right")
        return self.values.take(pa.array(np.minimum(found, len(self.values) - 1)))

    def lists(self) -> pa.Array:
        """All values of each cell."""
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        every = pa.array(np.repeat(np.arange(len(self.counts)), self.counts))
        return pa.LargeListArray.from_arrays(pa.array(ends.astype(np.int64)), self.values.take(every))


@dataclass(frozen=True)
class Collected:
    """An aggregate of the sorted values of a cell; with `nulls`, NULL counts as a value."""

    finish: Callable[[SortedBags], pa.Array]
    nulls: bool = False

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        if values is None:
            raise InternalError("an aggregate needs its argument")
        if values.null_count and not self.nulls:
            keep = values.is_valid()
            values, ids = values.filter(keep), ids[keep.to_numpy(zero_copy_only=False)]
        return _bags(plain(values), np.ones(len(ids), np.int64), ids, count)

    def merge(self, state: State, ids: Ids, count: int) -> State:
        lists = state["values"]
        return _bags(lists.flatten(), _flat(state["counts"]), ids[lists.value_parent_indices().to_numpy()], count)

    def repeated(self, state: State, times: Ids) -> State:
        counts = state["counts"]
        more = _flat(counts) * times[counts.value_parent_indices().to_numpy()]
        return {"values": state["values"], "counts": _lists(pa.array(more), counts.value_lengths().to_numpy())}

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        lists, counts = state["values"], _flat(state["counts"])
        cells = lists.value_parent_indices()
        values = lists.flatten()
        order = pc.sort_indices(
            pa.table({"cell": cells, "value": values}), sort_keys=[("cell", "ascending"), ("value", "ascending")]
        )
        sizes = np.zeros(len(lists), np.int64)
        np.add.at(sizes, cells.to_numpy(), counts)
        return self.finish(SortedBags(values.take(order), counts[order.to_numpy()], sizes))


def collected(aggregate: Aggregate) -> Collected:
    """How to compute one of NAMES."""
    if aggregate.name == "list":
        return Collected(SortedBags.lists, nulls=True)
    if aggregate.name == "string_agg":
        separator = str(aggregate.parameter)
        return Collected(lambda of: _if_any(of, _joined(of.lists(), separator)))
    share = Fraction(str(aggregate.parameter))
    if aggregate.name == "quantile_disc":
        return Collected(lambda of: _if_any(of, of.at(_place(of.sizes, share))) if len(of.values) else _none(of))
    return Collected(lambda of: _between(of, float(share)) if len(of.values) else _none(of))


def _joined(lists: pa.Array, separator: str) -> pa.Array:
    return pc.binary_join(lists, pa.scalar(separator, lists.type.value_type))


def _place(sizes: Ids, share: Fraction) -> Ids:
    """The place of the first value at or below which this share of all values lies."""
    if share.denominator < _SAFE:
        return np.maximum(-(-sizes * share.numerator // share.denominator), 1) - 1
    return np.array([max(-(-int(n) * share.numerator // share.denominator), 1) - 1 for n in sizes], np.int64)


def _between(of: SortedBags, share: float) -> pa.Array:
    """The value at this share of the way from the first to the last, interpolated between its two neighbours."""
    at = np.maximum(of.sizes - 1, 0) * share
    low, high = (_floats(of.at(side.astype(np.int64))) for side in (np.floor(at), np.ceil(at)))
    part = at - np.floor(at)
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.where(part == 0, low, low * (1 - part) + high * part)
    return _if_any(of, pa.array(found))


def _floats(values: pa.Array) -> NDArray[np.float64]:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)


def _if_any(of: SortedBags, values: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(of.sizes > 0), values, pa.scalar(None, values.type))


def _none(of: SortedBags) -> pa.Array:
    return pa.nulls(len(of.sizes))


def _bags(values: pa.Array, counts: Ids, ids: Ids, count: int) -> State:
    pair, pairs = group_ids([ids, values], len(ids))
    total = np.zeros(pairs, np.int64)
    np.add.at(total, pair, counts)
    some = representatives(pair, pairs)
    order = np.argsort(ids[some], kind="stable")
    some = some[order]
    sizes = np.bincount(ids[some], minlength=count)
    return {"values": _lists(values.take(pa.array(some)), sizes), "counts": _lists(pa.array(total[order]), sizes)}


def _lists(values: pa.Array, sizes: Ids) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)


def _flat(lists: pa.Array) -> Ids:
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False), np.int64)
