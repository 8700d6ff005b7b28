"""Estimates of slots, merged and displayed: sums, means weighted by tuples, one text for each plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eddyline.codec import packed, unpacked
from eddyline.engine.estimate import Child, Estimate, Share, put_together
from eddyline.plan.plan import Plan
from eddyline.plan.tree import parse_tree
from tests.support.jobs import bound

W = "[RANGE 1 SECONDS]"
PLAN = Plan(bound(f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.x = b.x AND b.k < c.k", a="x", b="x k", c="k"))
ONE = Estimate(
    "((a b) c)",
    [Child(1, 10.0, 20.0, 300.0, 10.0, 21.0, 400.0), Child(2, 1.0, 2.0, 30.0, 1.0, 2.0, 40.0),
     Child(3, 5.0, 6.0, 70.0, 4.0, 7.0, 80.0), Child(4, 1.0, 1.0, 10.0, 1.0, 1.0, 10.0)],
    [Share(0, 0.1, 900.0), Share(1, 0.5, 0.0)],
    [],
    [0.25, 410.0],
    [0.5, 530.0],
    "  last proposal",
)  # fmt: skip
OTHER = replace(ONE, conditions=[Share(0, 0.2, 100.0), Share(1, 0.7, 0.0)], predicted=[0.5, 1000.0])


def test_one_slot() -> None:
    assert put_together([]) == [] and put_together([ONE]) == [ONE]
    assert ONE.text(PLAN).splitlines() == [
        "estimated, for ((a b) c):",
        "  a: 10 a second, 20 held in 300 bytes; measured 21 held in 400 bytes",
        "  b: 1 a second, 2 held in 30 bytes; measured 2 held in 40 bytes",
        "  (a b): 5 a second, 6 held in 70 bytes; measured 4 a second, 7 held in 80 bytes",
        "  c: 1 a second, 1 held in 10 bytes; measured 1 held in 10 bytes",
        "  selectivity of a.x = b.x: 0.1",
        "  selectivity of b.k < c.k: 0.5",
        "  predicted: 0.25 of a core, 410 bytes; measured: 0.5 of a core, 530 bytes",
        "  last proposal",
    ]


def test_slots_with_one_plan_add_up() -> None:
    (both,) = put_together([ONE, OTHER])
    assert both.slots == 2 and both.children[2] == Child(3, 10.0, 12.0, 140.0, 8.0, 14.0, 160.0)
    assert both.predicted == [0.75, 1410.0] and both.measured == [1.0, 1060.0] and both.last == ""
    assert both.conditions[0] == pytest.approx((0, 0.11, 1000.0, 0.0)), "weighted by tuples"
    assert both.conditions[1].share == pytest.approx(0.6), "no tuples were measured: all count the same"
    assert both.text(PLAN).startswith("estimated, for ((a b) c), 2 slots:\n  a: 20 a second, 40 held in 600 bytes;")


def test_selections_that_only_some_slots_have_seen() -> None:
    one, other = (replace(ONE, selections=s) for s in ([Share(0, 0.5, 30.0, 1e-6)], []))
    dear = replace(ONE, selections=[Share(0, 0.9, 10.0, 5e-6)])
    (all_three,) = put_together([one, other, dear])
    assert all_three.selections == [pytest.approx((0, 0.6, 40.0, 2e-6))]


def test_one_for_each_plan_the_commonest_first() -> None:
    alone = replace(ONE, plan="(a b c)", children=[ONE.children[0], ONE.children[1], ONE.children[3]])
    found = put_together([alone, ONE, OTHER])
    assert [(e.plan, e.slots) for e in found] == [("((a b) c)", 2), ("(a b c)", 1)]
    assert parse_tree(found[0].plan, ["a", "b", "c"]).span == 7


def test_it_travels() -> None:
    told = replace(ONE, selections=[Share(0, 0.5, 3.0, 1e-6)])
    assert unpacked(packed(told), Estimate) == told
