"""The conditions of a query for the optimizer, and how often each counts inside a span."""

from __future__ import annotations

import pytest

from eddyline.optimizer.conditions import Condition, conditions
from eddyline.optimizer.workload import Access
from eddyline.plan.explain import text
from eddyline.plan.plan import Plan
from tests.support.jobs import bound

W = "[RANGE 5 SECONDS]"
COLUMNS = {"a": "k x y", "b": "k x y", "c": "k x y"}


def of(where: str, sources: str = "abc") -> tuple[Condition, ...]:
    streams = ", ".join(f"{s} {W}" for s in sources)
    query = bound(f"SELECT a.x FROM {streams} WHERE {where}", None, (), **{s: COLUMNS[s] for s in sources})
    return conditions(Plan(query))


def columns(condition: Condition) -> set[tuple[int, str]]:
    return {(source, getattr(expr, "name", "")) for source, expr in condition.keys}


def test_joins_by_the_same_key_are_one_class() -> None:
    """Two of the three equalities imply the third, so all choices give the same class."""
    for where in ("a.k = b.k AND b.k = c.k", "a.k = b.k AND a.k = c.k", "a.k = b.k AND b.k = c.k AND a.k = c.k"):
        (found,) = of(where)
        assert (found.span, found.access, found.equal, found.predicate) == (0b111, Access.HASH, True, None)
        assert columns(found) == {(0, "k"), (1, "k"), (2, "k")}
        assert [found.times(span) for span in (0b001, 0b011, 0b101, 0b111)] == [0, 1, 1, 2]


def test_classes_that_meet_late_become_one() -> None:
    (found,) = of("a.k = b.k AND c.k = a.x AND b.k = c.k")
    assert columns(found) == {(0, "k"), (1, "k"), (2, "k"), (0, "x")}
    assert found.times(0b111) == 2


def test_a_composite_key_is_a_class_for_each_column() -> None:
    one, other = of("a.k = b.k AND a.x = b.x", "ab")
    assert columns(one) == {(0, "k"), (1, "k")} and columns(other) == {(0, "x"), (1, "x")}
    assert one.span == other.span == 0b011 and one.access == other.access == Access.HASH


def test_a_chain_has_a_class_for_each_edge() -> None:
    assert [(c.span, c.equal) for c in of("a.k = b.k AND b.x = c.x")] == [(0b011, True), (0b110, True)]


@pytest.mark.parametrize(
    ("where", "access", "span"),
    [("a.x < b.x", Access.RANGE, 0b011), ("a.x <> b.x", Access.LIST, 0b011), ("a.x + b.x > c.x", Access.LIST, 0b111)],
)
def test_other_conditions_count_once_in_a_span_with_all_their_sources(where: str, access: Access, span: int) -> None:
    (found,) = of(where)
    assert (found.span, found.access, found.equal, found.keys) == (span, access, False, ())
    assert [found.times(s) for s in range(1, 8)] == [int(s & span == span) for s in range(1, 8)]
    assert found.predicate is not None


def test_a_range_beside_an_equality_is_only_checked() -> None:
    key, rest = of("a.k = b.k AND a.x < b.x", "ab")
    assert (key.access, rest.access) == (Access.HASH, Access.LIST)


def test_both_limits_of_a_band_are_conditions() -> None:
    found = of("a.x BETWEEN b.x - 3 AND b.x + 3", "ab")
    assert [(c.span, c.access) for c in found] == [(0b011, Access.RANGE)] * 2


def test_conditions_over_one_source_and_times_are_none() -> None:
    (found,) = of("a.k = b.k AND a.x > 3 AND b.ts - a.ts < INTERVAL '1' SECOND", "ab")
    assert found.equal


def test_they_come_in_a_fixed_order_with_their_text() -> None:
    query = bound(
        f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.x + b.x > c.x AND b.y < c.y AND a.k = b.k", None, (), **COLUMNS
    )
    key, ordered, checked = conditions(Plan(query))
    assert key.equal and ordered.predicate is not None and checked.predicate is not None
    assert text(ordered.predicate, query) == "b.y < c.y"
    assert text(checked.predicate, query) == "(a.x + b.x) > c.x"
