"""The conditions of a query from the optimizer's view: which spans they reduce, and how often each counts.

Columns that are set equal form a *class*. If a span has k sources of a class, k - 1 equalities hold in it, whichever
were written; so the selectivity of the class counts k - 1 times. Any other condition counts once, in a span that has
all its sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eddyline.bound.expr import Expr, sources_of
from eddyline.optimizer.workload import Access, JoinEdge
from eddyline.plan.plan import Plan


@dataclass(frozen=True)
class Condition:
    """A class of equal columns, or another condition; `keys` are the columns of a class by source, `predicate` is the
    other condition."""

    span: int
    access: Access
    equal: bool
    keys: tuple[tuple[int, Expr], ...] = ()
    predicate: Expr | None = None

    def times(self, span: int) -> int:
        """How often it counts inside a span.

        >>> Condition(0b111, Access.HASH, True).times(0b101), Condition(0b111, Access.LIST, False).times(0b101)
        (1, 0)
        """
        if self.equal:
            return max(0, (self.span & span).bit_count() - 1)
        return int(self.span & span == self.span)


def conditions(plan: Plan) -> tuple[Condition, ...]:
    """The conditions of a plan's query that joins decide; selections are not among them."""
    classes: list[dict[tuple[int, Expr], None]] = []
    for e in plan.graph.equalities:
        nodes = dict.fromkeys([(e.left, e.left_expr), (e.right, e.right_expr)])
        for old in [c for c in classes if c.keys() & nodes.keys()]:
            classes.remove(old)
            nodes = {**old, **nodes}
        classes.append(nodes)
    found = [Condition(sum(1 << s for s in {s for s, _ in c}), Access.HASH, True, tuple(c)) for c in classes]
    found += [Condition(sources_span(r.predicate), Access.RANGE, False, (), r.predicate) for r in plan.graph.ranges]
    return (*found, *(Condition(sources_span(p), Access.LIST, False, (), p) for p in plan.graph.residuals))


def sources_span(predicate: Expr) -> int:
    """The sources that a predicate needs, as a bit mask."""
    return sum(1 << s for s in sources_of(predicate))


def edges(
    found: Sequence[Condition], shares: Sequence[float]
) -> tuple[tuple[JoinEdge, ...], tuple[tuple[int, float], ...]]:
    """An edge for every pair of sources with a condition of its own, and corrections for conditions over more
    sources."""
    pairs: dict[tuple[int, int], dict[str, Any]] = {}
    joint: list[tuple[int, float]] = []
    for number, (condition, share) in enumerate(zip(found, shares, strict=True)):
        sources = [s for s in range(condition.span.bit_length()) if condition.span >> s & 1]
        if not condition.equal and len(sources) > 2:
            joint.append((condition.span, share))
            continue
        for at, left in enumerate(sources):
            for right in sources[at + 1 :]:
                edge = pairs.setdefault((left, right), {"share": 1.0, "access": Access.LIST, "classes": []})
                edge["share"] *= share
                edge["access"] = min(edge["access"], condition.access)
                edge["classes"] += [(number, share)] if condition.equal else []
    made = []
    for (left, right), edge in pairs.items():
        classes = tuple(edge["classes"])
        indexes = (hash(tuple(number for number, _ in classes)),) * 2 if classes else None
        made.append(JoinEdge(left, right, edge["share"], edge["access"], indexes, classes))
    return tuple(made), tuple(joint)
