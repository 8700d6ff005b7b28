"""The conditions of a query as the optimiser sees them: which spans they make smaller, and how often.

Columns that are set equal form a *class*: with k of its sources in a span k - 1 equalities hold there, whichever were
written, so its selectivity counts k - 1 times. Any other condition counts once, in a span that has all its sources.
"""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.optimizer.workload import Access
from eddyline.plan.plan import Plan
from eddyline.query.expr import Expr, sources_of


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
        """How often it holds inside a span.

        >>> Condition(0b111, Access.HASH, True).times(0b101), Condition(0b111, Access.LIST, False).times(0b101)
        (1, 0)
        """
        if self.equal:
            return max(0, (self.span & span).bit_count() - 1)
        return int(self.span & span == self.span)


def conditions(plan: Plan) -> tuple[Condition, ...]:
    """Those of a plan's query that joins decide; selections are not among them."""
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
    """The sources that it needs, as a bit mask."""
    return sum(1 << s for s in sources_of(predicate))
