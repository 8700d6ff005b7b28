"""Group-bys below a join: which tuples of an operator are equivalent for every later step.

The group-by of a query with SLIDE is above all joins. An operator that groups (`+`, see tree.py) does a part of it
early: of tuples that no later step can tell apart it keeps one, which stands for all of them, with their number and the
states of aggregates over the span. It groups each packet by itself and waits for nothing. Groups of different packets
stay separate, because states of aggregates can be merged later.

Invariant: tuples of one group are *interchangeable*. Joined with the same rows of other sources, either all of them or
none are results, in the same group, and they count at the same boundaries. That holds because they are equal in

- the keys of equalities with sources outside, and every column that a predicate or a selection still has to read;
- the keys of GROUP BY, as values if they are decided here, else as the columns that they read; the arguments of
  COUNT(DISTINCT), of quantiles and of lists likewise, and of aggregates that read other sources too;
- the first and the last boundary at which the window of each component has it. A combination counts where all
  components are, so from the greatest first to the least last one;
- the event times of sources that WHERE bounds against those of others outside.

Probes check times by Bounds, which are for raw times. With SLIDE windows these are a necessary condition only:
components that count at a common boundary T are all in (T - W, T], hence pass. So the tuple that stands for its group
passes where any tuple of the group counts; where it has expired or fails, no tuple of the group counts. It does not
matter which tuple of the group stands for it.

A join of a foreign key with a key of the other side adds nothing to the grouping key: each tuple meets at most one row,
and the equality requires grouping by the foreign key anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from eddyline.bound.collected import NAMES as COLLECTED
from eddyline.bound.expr import Expr, SourceColumn, columns_of, sources_of
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.bound.types import is_opaque
from eddyline.errors import SettingError
from eddyline.plan.graph import JoinGraph
from eddyline.plan.tree import Tree


@dataclass(frozen=True)
class Grouped:
    """The keys that tell the tuples of a span apart, and the aggregates that are kept for each group of equal
    tuples."""

    combines: bool
    """False for an operator above one that groups: its tuples have weights, but are not grouped again."""
    keys: tuple[Expr, ...]
    """Keys that are compared with keys of sources outside the span; each reads one source."""
    columns: tuple[SourceColumn, ...]
    values: tuple[Expr, ...]
    rows: tuple[int, ...]
    """Sources whose rows are all kept apart, because a needed column cannot be compared."""
    times: tuple[int, ...]
    aggregates: tuple[int, ...]
    """Numbers of the aggregates that have a state for each tuple."""


def refusal(query: BoundQuery) -> str | None:
    """Why operators cannot group in this query; None if they can."""
    if query.group is None or query.group.slide is None:
        return "+ needs aggregates with a SLIDE"
    if any(s.window.kind is WindowKind.ROWS for s in query.sources):
        return "+ needs windows without ROWS: what a row counts for is not known when it is joined"
    return None


def check(query: BoundQuery, tree: Tree) -> None:
    """Refuse a tree with operators that cannot group."""
    why = refusal(query) if any(t.grouped for t in tree.below()) else None
    if why is not None:
        raise SettingError(f"plan={tree.text([s.alias for s in query.sources])}: {why}")


def grouped(query: BoundQuery, graph: JoinGraph, tree: Tree, done: int) -> Grouped:
    """The grouping of an operator's results, which have passed the selections `done`."""
    group, span = query.group, tree.span
    assert group is not None
    read: list[Expr] = [r.predicate for r in graph.ranges] + list(graph.residuals)
    read = [p for p in read if not _within(p, span)]
    read += [p for i, p in enumerate(graph.selections) if not done >> i & 1]
    values = [key for key in group.keys if _within(key, span)]
    read += [key for key in group.keys if not _within(key, span)]
    states = []
    for number, aggregate in enumerate(group.aggregates):
        if aggregate.arg is None or not _within(aggregate.arg, span):
            read += [] if aggregate.arg is None else [aggregate.arg]
        elif aggregate.distinct or aggregate.name in COLLECTED or pa.types.is_null(aggregate.arg.type):
            values.append(aggregate.arg)  # states of these aggregates cannot be kept in columns
        else:
            states.append(number)
    columns = [c for c in _columns(read) if span >> c.source & 1]
    sides = [(e.left, e.left_expr, e.right) for e in graph.equalities]
    sides += [(e.right, e.right_expr, e.left) for e in graph.equalities]
    timed = [s for pair in graph.time_pairs if any(not span >> s & 1 for s in pair) for s in pair if span >> s & 1]
    return Grouped(
        combines=tree.grouped,
        keys=tuple(dict.fromkeys(key for s, key, other in sides if span >> s & 1 and not span >> other & 1)),
        columns=tuple(c for c in columns if not is_opaque(c.type)),
        values=tuple(dict.fromkeys(values)),
        rows=tuple(sorted({c.source for c in columns if is_opaque(c.type)})),
        times=tuple(sorted(set(timed))),
        aggregates=tuple(states),
    )


def _within(expr: Expr, span: int) -> bool:
    """Whether an expression reads at least one source, and only sources of the span."""
    return bool(sources_of(expr)) and all(span >> s & 1 for s in sources_of(expr))


def _columns(exprs: Iterable[Expr]) -> list[SourceColumn]:
    return list(dict.fromkeys(c for e in exprs for c in sorted(columns_of(e), key=lambda c: (c.source, c.name))))
