"""Time bounds between sources: how far apart in event time the components of a result may be.

`Bounds.most[i][j]` is the most that ts_i - ts_j can be in any result (UNBOUND: no limit), closed under addition: the
shortest path over windows and the pairwise bounds of WHERE. RANGE W on source j says ts_i - ts_j <= W for every i,
which is the same as t* - ts_j <= W for the newest time t*; so for RANGE windows and pairwise bounds the matrix is not
only necessary but exactly the condition, and a probe that checks it against every component has checked them all.

Expiry: a row of source j with time t can still join a row of source i that is yet to come only if that row's time,
which is at least i's watermark w_i, is at most t + most[i][j]. So the row is dead once t < w_i - most[i][j] for all i
!= j.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from eddyline.bound.expr import Call, Expr, Literal, SourceColumn
from eddyline.bound.model import BoundQuery, WindowKind

UNBOUND = 1 << 61
"""No limit. Event times lie within ±2**60, so no difference of two exceeds it and no sum with it overflows."""

FOREVER = 1 << 62
"""The watermark of a stream that has ended."""

Difference = tuple[int, int, int]
"""(i, j, c): ts_i - ts_j <= c."""


@dataclass(frozen=True)
class Bounds:
    """The closed matrix of time bounds. Tables have no time and no bounds."""

    most: tuple[tuple[int, ...], ...]

    def horizon(self, source: int, watermarks: Sequence[int | None]) -> int:
        """Rows of `source` older than this time can join no row that is still to come. `watermarks` has for each source
        the least time that a row still to come can have: None if that is not known yet, FOREVER for tables and ended
        streams."""
        horizon = FOREVER
        for other, watermark in enumerate(watermarks):
            if other == source or watermark == FOREVER:
                continue
            limit = self.most[other][source]
            if watermark is None or limit >= UNBOUND:
                return -FOREVER
            horizon = min(horizon, watermark - limit)
        return max(horizon, -FOREVER)

    def endless(self, source: int, streams: Iterable[int]) -> bool:
        """Whether rows of this source can never expire while every stream goes on."""
        return any(other != source and self.most[other][source] >= UNBOUND for other in streams)


def time_bounds(query: BoundQuery, differences: Iterable[Difference]) -> Bounds:
    """The closure over the windows of a query and the pairwise bounds found in its WHERE."""
    n = len(query.sources)
    streams = [i for i, s in enumerate(query.sources) if not s.stream.is_table]
    most = [[0 if i == j else UNBOUND for j in range(n)] for i in range(n)]
    sliding = query.group is not None and query.group.slide is not None
    for j in streams:
        window = query.sources[j].window
        if window.kind is WindowKind.RANGE:
            # T - W < ts <= T for some boundary T >= t*: strictly less than W
            for i in streams:
                if i != j:
                    most[i][j] = min(window.size - sliding, UNBOUND)
    for i, j, c in differences:
        most[i][j] = min(most[i][j], c)
    for k in streams:
        for i in streams:
            for j in streams:
                if most[i][k] < UNBOUND and most[k][j] < UNBOUND:
                    most[i][j] = max(min(most[i][j], most[i][k] + most[k][j]), -UNBOUND)
    return Bounds(tuple(tuple(row) for row in most))


def differences_in(predicate: Expr, query: BoundQuery) -> list[Difference] | None:
    """The pairwise time bounds to which a conjunct is equivalent; None if it is another predicate and has to be
    evaluated."""
    if not isinstance(predicate, Call):
        return None
    name, args = predicate.name, predicate.args
    if name == "between" and len(args) == 3:
        above, below = _at_most(args[1], args[0], 0, query), _at_most(args[0], args[2], 0, query)
        return [*above, *below] if above and below else None
    if name in (">", ">="):
        name, args = name.replace(">", "<"), (args[1], args[0])
    if name in ("<", "<="):
        slack = -1 if name == "<" else 0
        inner = args[0]
        if isinstance(inner, Call) and inner.name == "abs":
            x = inner.args[0]
            least = _at_most_sum(x, args[1], slack, query, negate=True)
            most = _at_most_sum(x, args[1], slack, query, negate=False)
            return [*least, *most] if least and most else None
        return _at_most(args[0], args[1], slack, query) or None
    return None


Linear = tuple[dict[int, int], int]
"""Coefficients of source times, and a constant."""


def _at_most(left: Expr, right: Expr, slack: int, query: BoundQuery) -> list[Difference]:
    """The time bounds that left <= right + slack means, none if it is not a comparison of times."""
    return _at_most_sum(left, right, slack, query, negate=False)


def _at_most_sum(left: Expr, right: Expr, slack: int, query: BoundQuery, negate: bool) -> list[Difference]:
    a, b = _linear(left, query), _linear(right, query)
    if a is None or b is None:
        return []
    sign = -1 if negate else 1
    terms, constant = _plus(({s: sign * k for s, k in a[0].items()}, sign * a[1]), b, -1)
    plus, minus = [s for s, k in terms.items() if k == 1], [s for s, k in terms.items() if k == -1]
    if len(plus) != 1 or len(minus) != 1 or len(terms) != 2:
        return []
    return [(plus[0], minus[0], max(min(slack - constant, UNBOUND), -UNBOUND))]


def _linear(expr: Expr, query: BoundQuery) -> Linear | None:
    if isinstance(expr, SourceColumn) and expr.source >= 0:
        stream = query.sources[expr.source].stream
        exact = pa.types.is_timestamp(expr.type) and expr.type.unit != "ns"
        return ({expr.source: 1}, 0) if exact and expr.name == stream.time else None
    if isinstance(expr, Literal):
        exact = expr.value is not None and pa.types.is_duration(expr.type)
        return ({}, int(str(expr.value))) if exact and isinstance(expr.value, int) else None
    if isinstance(expr, Call) and expr.name in ("+", "-"):
        parts = [_linear(arg, query) for arg in expr.args]
        sign = -1 if expr.name == "-" else 1
        if len(parts) == 1 and parts[0] is not None:
            return _plus(({}, 0), parts[0], sign)
        if len(parts) == 2 and parts[0] is not None and parts[1] is not None:
            return _plus(parts[0], parts[1], sign)
    return None


def _plus(a: Linear, b: Linear, sign: int) -> Linear:
    terms = dict(a[0])
    for source, k in b[0].items():
        terms[source] = terms.get(source, 0) + sign * k
    return {s: k for s, k in terms.items() if k}, a[1] + sign * b[1]
