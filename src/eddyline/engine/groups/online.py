"""Running estimates of aggregates, each with its 95 % confidence interval, before the input or the window ends.

A stream has a *share*: the part of it that was read. Without SLIDE it is rows of all rows, if their number is known;
with SLIDE it is the part of the window that has passed. Then, with f the share of each stream that is joined:

- COUNT and SUM over all rows are estimated by those over the rows so far, divided by the product of all f, because a
  combination was seen if all its rows were (the estimator of ripple joins, Haas and Hellerstein 1999);
- AVG is estimated by the quotient of SUM and COUNT so far; no share is needed.

The variance comes from the classes of clusters.py. Let V(A) be the variance of a sum over all rows so far, computed
from the classes of the set of streams A. It has the part of every effect of a set of streams that contains A; the parts
that A lacks are reduced by (1 - f) for each stream, because rows are drawn without replacement. So the variance of the
estimate is the sum over all A of (-1)^(|A| + 1) V(A) product(1 - f), divided by the squared product of all f. No term
alone is more than the whole, so the largest one is a lower bound, which also keeps a noisy sum from being negative.

The interval assumes that the rows of each stream come in random order, or, with SLIDE, that they are alike in the whole
window. It is not valid for input that drifts or is sorted by what is aggregated, by the group or by the join key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.bound.aggregates import Merging, accumulator
from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Aggregate, Expr
from eddyline.bound.model import BoundQuery, GroupBy, WindowKind
from eddyline.counts import Counts, StreamCounts
from eddyline.engine.groups.clusters import CLUSTERS, Clusters, Floats, clusters_of, is_estimated, of_pieces, refusal
from eddyline.engine.groups.panes import Panes, joined, merged
from eddyline.engine.groups.seen_rows import SeenRows
from eddyline.engine.watermarks import Reached
from eddyline.plan.explain import text

_QUANTILE = 2.131
"""Of Student's t with CLUSTERS - 1 degrees of freedom, for 95 %."""
_FEW = 30
"""Groups with fewer tuples have no interval: sums over so few are not nearly normal."""
_DISORDER = 100
"""With SLIDE, rows may be out of order by this part of the time that was seen."""
_MOST_PIECES = 1 << 20
"""Beyond this many pieces of time all clusters are taken to have equally many."""


@dataclass(frozen=True)
class RunningEstimate:
    """The estimate of one aggregate of one group, before all its rows are there."""

    group: Mapping[str, Any]
    """The values of the GROUP BY keys, by name."""
    aggregate: str
    value: Any
    """The estimate of the final value; without an interval, the value over the rows so far."""
    half_width: float | None
    """The final value is within `value` plus or minus this in 95 % of all cases; None: not known, `why` says why."""
    share: float | None
    """The share of all combinations of rows that was seen; None: not known."""
    rows: int | None
    """The number of combinations of the group so far; None where no interval can be computed."""
    why: str = ""
    """Why there is no interval."""
    window_end: datetime | None = None
    """The slide boundary, in UTC, of which this is the estimate; None without SLIDE."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: _plain(value) for name, value in self.group.items()}
        end = None if self.window_end is None else self.window_end.isoformat()
        return vars(self) | {"group": plain, "value": _plain(self.value), "window_end": end}


@dataclass(frozen=True)
class Moment:
    """The groups and the progress of the streams after a commit. It is never changed, so any thread may read it."""

    cells: tuple[Panes, ...] = ()
    seen: Mapping[str, SeenRows] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    reached: Reached = field(default_factory=Reached)
    waits: bool = False
    """Whether rows wait for the answer of a table: then results are missing."""


@dataclass(frozen=True)
class _StreamShare:
    """The share of a stream that was seen, None if not known, and that of each cluster in what was seen."""

    share: float | None
    clusters: Floats
    why: str = ""


def running_estimates(
    query: BoundQuery, moment: Moment, totals: Mapping[str, int], groups: int | None = None
) -> tuple[RunningEstimate, ...]:
    """The estimates of all aggregates of the groups that are open: of the next slide boundary, or at the end. `totals`
    are the numbers of rows of the streams that know it. The groups with the most rows come first; at most `groups`."""
    group = query.group
    if group is None:
        return ()
    why, boundary = refusal(query), 0
    if group.slide is not None:
        if moment.reached.used is None:
            return ()
        boundary = group.slide.number_from(moment.reached.used)
    live = [panes.take((panes.first <= boundary) & (panes.last >= boundary)) for panes in moment.cells]
    live = [panes for panes in live if len(panes)]
    if not live:
        return ()
    cells = _united(group, clusters_of(query), live, boundary)
    shares = [_share(query, source, i, moment, totals, boundary) for i, source in enumerate(Clusters(query).streams)]
    if moment.waits:
        why = why or "rows wait for the answer of a table"
    why = why or next((one.why for one in shares if one.why), "")
    found = _of_groups(query, group, cells, shares, why, boundary)
    return tuple(islice(found, None if groups is None else groups * len(group.aggregates)))


def _united(group: GroupBy, clusters: Clusters | None, live: Sequence[Panes], boundary: int) -> Panes:
    """One cell for each group."""
    merging: list[Merging] = [accumulator(a) for a in group.aggregates]
    merging += [] if clusters is None else [clusters]
    cells = joined(live)
    here = np.full(len(cells), boundary)
    return merged(replace(cells, first=here, last=here), merging)


def _of_groups(
    query: BoundQuery, group: GroupBy, cells: Panes, shares: Sequence[_StreamShare], why: str, boundary: int
) -> Iterator[RunningEstimate]:
    known = [one.share for one in shares]
    share = None if why or None in known else float(np.prod([one or 0.0 for one in known]))
    clustered = _Clustered(clusters, cells, shares) if (clusters := clusters_of(query)) is not None else None
    when = None if group.slide is None else _moment(group.slide.end_of(group.slide.at(boundary)))
    keys = _named(query, group, cells)
    columns = []
    for at, aggregate in enumerate(group.aggregates):
        seen, scale = accumulator(aggregate).final(cells.states[at], ErrorCount()), None
        widths, reason = None, why
        if not is_estimated(aggregate):
            reason = "only the rows so far are known"
        elif clustered is not None and not why:
            name = aggregate.name.lower()
            if name == "avg":
                widths = clustered.of_quotient(aggregate)
            elif share is None:
                reason = "the number of rows of a stream is not known"
            else:
                widths, scale = clustered.of_sum(aggregate) / share, share
        columns.append((_name(query, aggregate), seen, scale, widths, reason))
    rows = None if clustered is None else clustered.tuples
    order = np.arange(len(cells)) if rows is None else np.argsort(-rows, kind="stable")
    for row in order.tolist():
        named = {name: column[row].as_py() for name, column in keys.items()}
        many = None if rows is None else round(rows[row])
        for name, seen, scale, widths, reason in columns:
            value = seen[row].as_py()
            value = value if value is None or scale is None else float(value) / scale
            if not reason and (many or 0) < _FEW:
                reason = f"fewer than {_FEW} rows so far"
            width = None if reason or widths is None else float(widths[row])
            if width is not None and not np.isfinite(width):
                width, reason = None, "the values so far do not tell"
            yield RunningEstimate(named, name, value, width, share, many, reason, when)


class _Clustered:
    """The sums of classes of all groups, and the half-widths that follow."""

    def __init__(self, clusters: Clusters, cells: Panes, shares: Sequence[_StreamShare]) -> None:
        self._sets, self._sums = clusters.sets, clusters.sums(cells.states[-1])
        self._number = {what: at for at, what in enumerate(clusters.numbers)}
        self._left = [1.0 if one.share is None else 1.0 - one.share for one in shares]
        self._expected = [_classes([shares[i].clusters for i in some]) for some in clusters.sets]
        self.tuples: Floats = self._whole("count", None)
        """The number of tuples of each group."""

    def of_sum(self, aggregate: Aggregate) -> Floats:
        """The half-width of a SUM or COUNT over the rows so far, by group."""
        return self._half_width(self._of("sum" if aggregate.name.lower() == "sum" else "count", aggregate.arg))

    def of_quotient(self, aggregate: Aggregate) -> Floats:
        """The half-width of an AVG, by group."""
        sums, counts = self._of("sum", aggregate.arg), self._of("count", aggregate.arg)
        count = self._whole("count", aggregate.arg)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self._whole("sum", aggregate.arg) / count
            return self._half_width(sums - mean[:, None, None] * counts) / count

    def _of(self, kind: str, arg: Expr | None) -> Floats:
        return self._sums[:, self._number[kind, arg]]

    def _whole(self, kind: str, arg: Expr | None) -> Floats:
        whole: Floats = self._of(kind, arg)[:, 0].sum(axis=-1)
        return whole

    def _half_width(self, sums: Floats) -> Floats:
        """Of the sum over all classes, by group; `sums` are by group, set of streams and class."""
        whole, largest = np.zeros(len(sums)), np.zeros(len(sums))
        for at, some in enumerate(self._sets):
            own = sums[:, at]
            off = own - own.sum(axis=1, keepdims=True) * self._expected[at]
            part = (off**2).sum(axis=1) * CLUSTERS / (CLUSTERS - 1) * np.prod([self._left[i] for i in some])
            whole += part if len(some) % 2 else -part
            largest = np.maximum(largest, part)
        half: Floats = _QUANTILE * np.sqrt(np.maximum(whole, largest))
        return half


def _classes(clusters: Sequence[Floats]) -> Floats:
    """The share of each class among the combinations of rows of several streams, from the shares of their clusters."""
    found, places = clusters[0], np.arange(CLUSTERS)
    for other in clusters[1:]:
        found = np.array([(found * other[places ^ class_]).sum() for class_ in places])
    return found


def _share(
    query: BoundQuery, source: int, place: int, moment: Moment, totals: Mapping[str, int], boundary: int
) -> _StreamShare:
    name = query.sources[source].stream.name
    seen = moment.seen.get(name, SeenRows())
    if query.group is not None and query.group.slide is not None:
        return _share_of_time(query, source, place, moment, seen, query.group.slide.at(boundary))
    rows = int(seen.clusters.sum())
    clusters = seen.clusters / max(rows, 1)
    if name in moment.reached.ended:
        return _StreamShare(1.0, clusters)
    why = "" if clusters.all() else f"the rows of {name} so far have too few different times"
    total, read = totals.get(name), moment.counts.streams.get(name, StreamCounts()).rows
    return _StreamShare(None if total is None else min(1.0, read / max(total, 1)), clusters, why)


def _share_of_time(
    query: BoundQuery, source: int, place: int, moment: Moment, seen: SeenRows, end: int
) -> _StreamShare:
    stream, window = query.sources[source].stream, query.sources[source].window
    even = np.full(CLUSTERS, 1 / CLUSTERS)
    newest = moment.reached.newest.get(stream.name)
    if seen.oldest is None or newest is None:
        return _StreamShare(None, even, f"{stream.name} has had no row")
    if stream.name in moment.reached.ended:
        newest = end
    begin = seen.oldest
    if window.kind is WindowKind.RANGE:
        leaves = end if window.pieces is None else window.pieces.first_from(end)
        begin = max(begin, leaves - window.size)
    upto = min(newest, end)
    if upto <= begin:
        return _StreamShare(None, even, f"{stream.name} has had no row in this window")
    behind = moment.counts.streams.get(stream.name, StreamCounts()).behind
    if behind * _DISORDER > upto - begin:
        return _StreamShare(None, even, f"rows of {stream.name} come out of order")
    clusters = _time_of_clusters(place, begin, upto, Clusters(query).grain)
    why = "" if clusters.all() or upto == end else "too little of the window has passed"
    return _StreamShare((upto - begin) / (end - begin), clusters, why)


def _time_of_clusters(place: int, begin: int, end: int, grain: int) -> Floats:
    """The share of each cluster in the time from one moment to another."""
    first, last = begin // grain, end // grain
    if last - first >= _MOST_PIECES:
        return np.full(CLUSTERS, 1 / CLUSTERS)
    lengths = np.full(last - first + 1, float(grain))
    lengths[0] -= begin - first * grain
    lengths[-1] -= (last + 1) * grain - end
    return np.bincount(of_pieces(place, np.arange(first, last + 1)), lengths, CLUSTERS) / (end - begin)


def _named(query: BoundQuery, group: GroupBy, cells: Panes) -> dict[str, pa.Array]:
    """The values of the keys of each cell, by name."""
    at = pa.array(cells.group)
    return {_name(query, key): values.take(at) for key, values in zip(group.keys, cells.keys, strict=True)}


def _name(query: BoundQuery, expr: Expr | Aggregate) -> str:
    """The name of the output that is this expression, else the expression."""
    return next((output.name for output in query.outputs if output.expr == expr), text(expr, query))


def _plain(value: Any) -> Any:
    """A value as JSON has it: numbers as numbers, everything else as text."""
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _moment(microseconds: int) -> datetime | None:
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
