"""What is still needed of rows in tuples that wait for the next stage of a sweep."""

from __future__ import annotations

from eddyline.bound.expr import SourceColumn
from eddyline.plan.later_layout import later_layout
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree
from eddyline.state.layout import Layout
from tests.support.jobs import bound

A, B, C = range(3)


def layouts(where: str, span: int) -> list[Layout]:
    """Those of a and b in tuples of a span."""
    query = bound(f"SELECT a.x FROM a, b, c WHERE {where}", a="k x y", b="k x y", c="k x y")
    plan = Plan(query, Tree((Tree((A, B)), C)))
    return [later_layout(plan, source, span) for source in (A, B)]


def names(layout: Layout) -> tuple[list[str], list[str], list[str]]:
    def of(exprs: tuple[object, ...]) -> list[str]:
        return [expr.name for expr in exprs if isinstance(expr, SourceColumn)]

    return of(layout.stored), of(layout.keys), of(layout.order_keys)


def test_keys_that_have_joined_are_not_needed() -> None:
    of_a, of_b = layouts("a.k = b.k AND b.x = c.x", span=0b011)
    assert names(of_a) == (["x"], [], []) and names(of_b) == ([], ["x"], [])
    assert of_a.indexes == of_b.indexes == (), "nothing looks for these rows"
    alone, _ = layouts("a.k = b.k AND b.x = c.x", span=0b001)
    assert names(alone) == (["x"], ["k"], [])


def test_conditions_that_were_checked_are_not_needed() -> None:
    of_a, of_b = layouts("a.k = b.k AND a.y < b.y AND a.x + b.x < c.x AND b.y < c.k", span=0b011)
    assert names(of_a) == (["x"], [], [])
    stored, keys, order = names(of_b)
    assert (sorted(stored), keys, order) == (["x", "y"], [], ["y"]), "y is compared with c, too"
