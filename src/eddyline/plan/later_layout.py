"""What is still needed of the rows of joined tuples, to join them with the other sources and for results."""

from __future__ import annotations

from eddyline.bound.expr import Expr, columns_of, sources_of
from eddyline.plan.plan import Plan
from eddyline.state.layout import Layout


def later_layout(plan: Plan, source: int, span: int) -> Layout:
    """What is still needed of the rows of a source in tuples of a span, to join them with the other sources and for
    results."""
    layout = plan.layouts[source]

    def covered(predicate: Expr) -> bool:
        return all(span >> s & 1 for s in sources_of(predicate))

    equal = [e for e in plan.graph.equalities if (span >> e.left & 1) != (span >> e.right & 1)]
    keys = {expr for e in equal for at, expr in ((e.left, e.left_expr), (e.right, e.right_expr)) if at == source}
    ranges = [r for r in plan.graph.ranges if (span >> r.left & 1) != (span >> r.right & 1)]
    order = {r.seen_from(source)[0] for r in ranges if source in (r.left, r.right)}
    checks = [p for p in (*(r.predicate for r in plan.graph.ranges), *plan.graph.residuals) if not covered(p)]
    done = plan.done.get(span, 0)  # a row of a source has passed no selection
    checks += [p for i, p in enumerate(plan.graph.selections) if not done >> i & 1]
    columns = {*plan.gathered, *(column for p in checks for column in columns_of(p))}
    return Layout(
        timed=layout.timed,
        ordinal=layout.ordinal,
        stored=tuple(column for column in layout.stored if column in columns),
        keys=tuple(key for key in layout.keys if key in keys),
        indexes=(),
        order_keys=tuple(key for key in layout.order_keys if key in order),
        edges=tuple(edge for edge in layout.edges if keys.issuperset(edge)),
    )
