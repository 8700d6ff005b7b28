"""Every conjunct of WHERE goes to the place that decides it."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.expr import Call
from eddyline.bound.model import BoundQuery
from eddyline.bound.udf import udf
from eddyline.plan.explain import text
from eddyline.plan.graph import JoinGraph, join_graph
from tests.support.jobs import bound


def three(where: str) -> tuple[BoundQuery, JoinGraph]:
    columns = "k x y:float s:string"
    query = bound(f"SELECT a.k FROM a, b, c WHERE {where}", a=columns, b=columns, c=columns)
    return query, join_graph(query)


def places(where: str) -> dict[str, list[str]]:
    """Place -> the conjuncts that are there, as text."""
    query, graph = three(where)
    found = {
        "filter": [text(p, query) for f in graph.filters for p in f],
        "equality": [
            f"{text(e.left_expr, query)} = {text(e.right_expr, query)}" for e in graph.equalities if not e.derived
        ],
        "derived": [f"{text(e.left_expr, query)} = {text(e.right_expr, query)}" for e in graph.equalities if e.derived],
        "range": [text(r.predicate, query) for r in graph.ranges],
        "residual": [text(p, query) for p in graph.residuals],
        "selection": [text(p, query) for p in graph.selections],
    }
    return {place: texts for place, texts in found.items() if texts}


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("a.k = 3", {"filter": ["a.k = 3"]}),
        ("a.k = a.x", {"filter": ["a.k = a.x"]}),
        ("a.k = b.k", {"equality": ["a.k = b.k"]}),
        ("a.k + 1 = b.k * 2", {"equality": ["a.k + 1 = b.k * 2"]}),
        ("a.k + b.k = c.k", {"residual": ["(a.k + b.k) = c.k"]}),
        ("a.k + b.k = b.x", {"residual": ["(a.k + b.k) = b.x"]}),
        ("a.k <> b.k", {"residual": ["a.k <> b.k"]}),
        ("a.k < b.k", {"range": ["a.k < b.k"]}),
        ("a.s < b.s", {"residual": ["a.s < b.s"]}),
        ("a.s = b.s", {"equality": ["a.s = b.s"]}),
        ("a.k = b.k OR a.x = b.x", {"residual": ["(a.k = b.k) OR (a.x = b.x)"]}),
        ("a.k = b.k AND b.k = c.k", {"equality": ["a.k = b.k", "b.k = c.k"], "derived": ["a.k = c.k"]}),
        ("a.k = b.k AND a.x < b.x", {"equality": ["a.k = b.k"], "residual": ["a.x < b.x"]}),
        ("a.k = b.k AND a.x < c.x", {"equality": ["a.k = b.k"], "range": ["a.x < c.x"]}),
        ("a.x BETWEEN b.x AND c.x", {"range": ["a.x >= b.x", "a.x <= c.x"]}),
        ("a.k IS NOT DISTINCT FROM b.k", {"residual": ["is not distinct from(a.k, b.k)"]}),
    ],
)
def test_places(where: str, wanted: dict[str, list[str]]) -> None:
    assert places(where) == wanted


def test_a_user_function_is_a_selection_whatever_it_looks_like() -> None:
    @udf(returns=pa.int64(), name="plan_double")
    def double(x: np.ndarray) -> np.ndarray:
        return x * 2

    found = places("plan_double(a.k) = b.k AND plan_double(a.x) > 3 AND a.k = c.k")
    assert list(found) == ["equality", "selection"]
    assert len(found["selection"]) == 2


@pytest.mark.parametrize(("where", "never"), [("1 = 1", False), ("1 = 2", True), ("NULL", True), ("TRUE", False)])
def test_constants(where: str, never: bool) -> None:
    assert three(f"{where} AND a.k = b.k")[1].never is never


def test_equalities_meet_across_types_by_value() -> None:
    small = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int8()), ("s", pa.large_string())])
    query = bound("SELECT a.k FROM a, b WHERE a.k = b.k AND a.s = b.s", a=small, b="k s:string")
    graph = join_graph(query)
    assert len(graph.equalities) == 2 and not graph.residuals


def test_the_closure_of_a_chain_is_a_clique_and_nothing_is_there_twice() -> None:
    names = "abcdef"
    where = " AND ".join(f"{x}.k = {y}.k" for x, y in pairwise(names))
    query = bound(f"SELECT a.k FROM {', '.join(names)} WHERE {where}", **dict.fromkeys(names, "k"))
    pairs = [frozenset((e.left, e.right)) for e in join_graph(query).equalities]
    assert sorted(map(sorted, pairs)) == sorted(map(list, combinations(range(6), 2)))


def test_the_closure_never_equates_two_columns_of_one_source() -> None:
    query, graph = three("a.k = b.k AND b.k = a.x AND a.x = c.k")
    assert all(e.left != e.right for e in graph.equalities)
    pairs = {frozenset((text(e.left_expr, query), text(e.right_expr, query))) for e in graph.equalities}
    assert pairs == {
        frozenset(p) for p in [("a.k", "b.k"), ("b.k", "a.x"), ("a.x", "c.k"), ("a.k", "c.k"), ("b.k", "c.k")]
    }


def test_classes_of_several_columns_are_kept_apart() -> None:
    assert places("a.k = b.k AND b.x = c.x") == {"equality": ["a.k = b.k", "b.x = c.x"]}


def test_derived_equalities_do_not_cross_casts() -> None:
    """a.k = b.y compares as doubles; b.y = c.y too: but a.k and a CAST of it are different keys."""
    query, graph = three("a.k = b.y AND b.y = c.y")
    for e in graph.equalities:
        assert e.left_expr.type == e.right_expr.type
    assert any(e.derived and isinstance(e.left_expr, Call) for e in graph.equalities)
    assert text(graph.equalities[0].left_expr, query).startswith("CAST(a.k")


@pytest.mark.parametrize(
    ("where", "seen", "exact"),
    [
        ("a.k < b.k", ("a.k", "<", "b.k", 0), True),
        ("b.k < a.k", ("a.k", ">", "b.k", 0), True),
        ("a.k * 2 < b.k", ("a.k * 2", "<", "b.k", 0), True),
        ("5 - a.k < b.k", ("5 - a.k", "<", "b.k", 0), True),
        ("a.y + 0.5 < b.y", ("a.y + 0.5", "<", "b.y", 0), True),
        ("a.k + 3 <= b.k", ("a.k", "<=", "b.k", -3), False),
        ("a.k - 3 > b.k + 4", ("a.k", ">", "b.k", 7), False),
        ("a.k + 3 > b.k + 3", ("a.k", ">", "b.k", 0), False),
        ("2 + a.k >= b.k", ("a.k", ">=", "b.k", -2), False),
        ("a.k + 1 + 1 < b.k", ("a.k", "<", "b.k", -2), False),
    ],
)
def test_constants_are_taken_out_of_ranges(where: str, seen: tuple[str, str, str, int], exact: bool) -> None:
    """A sum may overflow and be NULL, so a predicate whose constant was taken out is still checked: it is not exact."""
    query, graph = three(where)
    [r] = graph.ranges
    key, op, partner, other, offset = r.seen_from(0)
    assert partner == 1
    assert (text(key, query), op, text(other, query), offset) == seen
    assert r.exact is exact
    back = r.seen_from(1)
    assert (back[0], back[2], back[3], back[4]) == (other, 0, key, -offset)


def test_between_of_one_source_is_left_whole() -> None:
    assert places("a.k BETWEEN 1 AND 3") == {"filter": ["between(a.k, 1, 3)"]}
