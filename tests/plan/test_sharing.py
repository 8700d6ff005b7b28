"""Which aliases share a SteM, and what the SteM then keeps."""

from __future__ import annotations

import pytest

from eddyline.bound.model import BoundQuery
from eddyline.plan.explain import explain
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.plan.sharing import owners
from eddyline.plan.tree import parse_tree
from eddyline.settings import Settings
from tests.support.jobs import bound

TWO = "s [RANGE 5 SECONDS] AS a, s [RANGE 5 SECONDS] AS b"
THREE = f"{TWO}, s [RANGE 5 SECONDS] AS c"


def query_of(where: str, sources: str = TWO, select: str = "a.v AS av, b.v AS bv") -> BoundQuery:
    return bound(f"SELECT {select} FROM {sources} WHERE {where}", tables="t", s="k j v", r="k j v", t="k v")


def shared(query: BoundQuery, slots: int = 1, **settings: object) -> tuple[int, ...]:
    plan = Plan(query)
    return owners(plan, partition(plan, slots), Settings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "sources", "wanted"),
    [
        ("a.k = b.k AND a.v <> b.v", TWO, (0, 0)),
        ("a.k = b.k AND a.ts < b.ts", TWO, (0, 0)),
        ("a.k = b.k", "s [RANGE 5 SECONDS] AS a, s [RANGE 1 SECOND] AS b", (0, 0)),
        ("a.k = b.k", "s AS a, s [RANGE 1 SECOND] AS b", (0, 0)),
        ("a.k = b.j AND a.j = b.k", TWO, (0, 0)),
        ("a.v < b.v", TWO, (0, 0)),
        ("a.k = b.k AND b.k = c.k", THREE, (0, 0, 0)),
        ("a.k = b.k AND b.k = r.k", f"{TWO}, r [RANGE 1 SECOND]", (0, 0, 2)),
        ("a.k = b.k AND a.v > 1 AND 1 < b.v AND 1 < a.v AND b.v > 1", TWO, (0, 0)),
        ("r.k = t.k AND t.k = u.k", "r [RANGE 1 SECOND], t, t AS u", (0, 1, 1)),
        # other rows for each alias
        ("a.k = b.k AND a.v > 1", TWO, ()),
        ("a.k = b.k AND a.v > 1 AND b.v > 2", TWO, ()),
        ("a.k = b.j", TWO, ()),
        ("a.k = b.k AND b.j = c.j", THREE, ()),
        ("a.k = b.k AND b.v < c.v", THREE, ()),
        ("a.k = b.k", "s [ROWS 5] AS a, s [ROWS 5] AS b", ()),
        ("a.k = b.k AND b.k = r.k", f"{TWO}, r [ROWS 3]", ()),
        ("a.k = r.k", "s [RANGE 1 SECOND] AS a, r [RANGE 1 SECOND]", ()),
    ],
)
def test_aliases_share_where_they_always_have_the_same_rows(where: str, sources: str, wanted: tuple[int, ...]) -> None:
    select = "a.v" if " AS a" in sources else "r.v"
    assert shared(query_of(where, sources, select)) == wanted


def test_no_alias_may_get_other_rows_than_its_owner() -> None:
    """In any slot, in any group that leaves memory, and while a hot key is spread."""
    by_key, by_row, crossed = query_of("a.k = b.k"), query_of("a.v < b.v"), query_of("a.k = b.j AND a.j = b.k")
    assert shared(by_key, slots=4) == shared(by_key, memory=1 << 20) == (0, 0)
    assert shared(by_row, slots=4) == shared(by_row, memory=1 << 20) == ()
    assert shared(crossed, slots=4) == shared(crossed, memory=1 << 20) == ()
    assert shared(by_key, balance="auto") == ()
    follows = query_of("a.k = r.k AND b.k = r.k AND a.j = r.j AND b.j = r.j", f"{TWO}, r [RANGE 1 SECOND]")
    assert shared(follows) == shared(follows, slots=4) == (0, 0, 2)


def test_layouts_have_what_any_alias_needs_in_every_plan() -> None:
    query = query_of("a.k = b.k AND b.k = c.k AND a.v < 3 AND b.v < 3 AND c.v < 3", THREE, "a.v, b.j AS bj")
    for tree in ("(a b c)", "((a b) c)", "(a (b c))"):
        plan = Plan(query, parse_tree(tree, ["a", "b", "c"]), owners=(0, 0, 0))
        first, *others = plan.layouts[:3]
        assert [c.name for c in first.stored] == ["v", "j"] and len(first.indexes) == 1
        assert all(layout.of_source(0) == first for layout in others)
    assert Plan(query, parse_tree("((a b) c)", ["a", "b", "c"])).layouts[0].stored != first.stored


def test_explain_says_which_sources_share() -> None:
    query = query_of("a.k = b.k AND a.ts < b.ts", select="a.v, b.j AS bj")
    assert "SteM" not in explain(query)
    told = explain(query, partition(Plan(query), 1), None, Settings())
    assert (
        told.partition("\n\nroutes")[0]
        == """\
multi-way join of 2 sources

a: stream s, RANGE 5 seconds
  hash index on a.k
  keeps a.v, a.j
  one SteM with b: a row stays until none of them needs it
  expires 5 seconds behind b

b: stream s, RANGE 5 seconds
  rows and indexes are those in the SteM of a
  expires 1 microsecond before a reaches it"""
    )
