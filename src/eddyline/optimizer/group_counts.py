"""Estimates into how many groups the tuples of a span fall if a part of the group-by is done there (plan/grouped.py).

For each source, count the different combinations of values in its held rows, over the columns that still distinguish
tuples. For a span, multiply these counts as if sources were independent. The product is an upper bound, so a `+` is
valued too low rather than too high. The boundaries of SLIDE distinguish tuples, too. The newest components of a
packet's tuples are of almost the same time: they differ by at most a slice of the input. The oldest component of a
tuple of several streams may be of any time in its window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod

from eddyline.bound.expr import Expr, columns_of, sources_of
from eddyline.bound.model import WindowKind
from eddyline.optimizer.workload import GroupingLoad
from eddyline.plan.grouped import grouped
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree

Distinct = Callable[[Sequence[Expr]], float]
"""The number of different combinations of values in the rows of a source."""

MICROS = 1e6


def grouping_load(
    plan: Plan,
    distinct: Sequence[Distinct],
    rows: Sequence[float],
    evaluated: Sequence[int],
    slices: float,
    packet: int,
) -> GroupingLoad | None:
    """The grouping load of a query in which operators can group; None before the first rows. `distinct` and `rows` (the
    held rows) are by source. `evaluated` are the numbers, in the query, of the workload's selections."""
    query = plan.query
    if not slices:
        return None
    group = query.group
    assert group is not None and group.slide is not None
    slide = group.slide.step / MICROS
    lives = [s.window.size / MICROS if s.window.kind is WindowKind.RANGE else 0.0 for s in query.sources]
    streams = [not s.stream.is_table for s in query.sources]

    @cache
    def groups(span: int, passed: int) -> float:
        done = sum(1 << number for at, number in enumerate(evaluated) if passed >> at & 1)
        sources = [s for s in range(len(query.sources)) if span >> s & 1]
        told = grouped(query, plan.graph, Tree(tuple(sources), grouped=True), done)
        read: dict[int, dict[Expr, None]] = {s: {} for s in sources}
        for key in told.keys:
            (source,) = sources_of(key)
            read[source][key] = None
        for column in (*told.columns, *(c for value in told.values for c in columns_of(value))):
            read[column.source][column] = None
        apart = {*told.rows, *told.times}
        found = prod(max(1.0, rows[s] if s in apart else distinct[s](list(read[s]))) for s in sources)
        moving = [lives[s] for s in sources if streams[s]]
        oldest = max(1.0, max(moving) / slide) if len(moving) > 1 else 1.0
        return found * oldest * (1.0 + 1.0 / (slices * slide))

    return GroupingLoad(groups, slices, float(packet), 1 + len(group.aggregates))
