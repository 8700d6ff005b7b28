"""Steps per signature: everything reachable, by key where there is one, each predicate exactly once on every route."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.model import BoundQuery
from eddyline.bound.udf import udf
from eddyline.plan.explain import text
from eddyline.plan.plan import Plan
from eddyline.plan.plan import plan_of as shared
from eddyline.plan.steps import KeyAccess, ListAccess, Probe, RangeAccess, Select
from eddyline.plan.tree import parse_tree
from tests.support.asked import asked
from tests.support.jobs import bound


def plan_of(sources: str, where: str = "", columns: str = "k x y s:string", outputs: str | None = None) -> Plan:
    names = sources.split()
    clause = f" WHERE {where}" if where else ""
    select = f"SELECT {outputs or names[0] + '.k'} FROM {', '.join(names)}{clause}"
    return Plan(bound(select, **dict.fromkeys(names, columns)))


def shown(plan: Plan, span: str, done: int = 0) -> list[str]:
    """The steps from a span: `c:k<-a.k` for a probe of c by key, `c:range`, `c:list`, or the number of a selection."""
    query = plan.query
    aliases = [s.alias for s in query.sources]
    words = []
    for step in plan.steps((sum(1 << aliases.index(a) for a in span.split()), done)):
        if isinstance(step, Select):
            words.append(str(step.selection))
        elif isinstance(step.access, KeyAccess):
            pairs = zip(step.access.on, step.access.partner_on, strict=True)
            names = ",".join(f"{text(a, query).split('.')[1]}<-{text(b, query)}" for a, b in pairs)
            words.append(f"{aliases[step.target]}:{names}")
        else:
            kind = "range" if isinstance(step.access, RangeAccess) else "list"
            words.append(f"{aliases[step.target]}:{kind}")
    return words


def test_a_chain_goes_along_its_edges() -> None:
    plan = plan_of("a b c", "a.k = b.k AND b.x = c.x")
    assert shown(plan, "a") == ["b:k<-a.k"]
    assert shown(plan, "b") == ["a:k<-b.k", "c:x<-b.x"]
    assert shown(plan, "a b") == ["c:x<-b.x"]
    assert shown(plan, "a b c") == []


def test_a_star_probes_any_arm_from_its_centre() -> None:
    plan = plan_of("m a b c", "m.k = a.k AND m.x = b.x AND m.y = c.y")
    assert shown(plan, "m") == ["a:k<-m.k", "b:x<-m.x", "c:y<-m.y"]
    assert shown(plan, "a") == ["m:k<-a.k"]
    assert shown(plan, "m b") == ["a:k<-m.k", "c:y<-m.y"]


def test_a_clique_on_one_key_needs_one_access_per_source() -> None:
    plan = plan_of("a b c d", "a.k = b.k AND b.k = c.k AND c.k = d.k")
    assert shown(plan, "a") == ["b:k<-a.k", "c:k<-a.k", "d:k<-a.k"]
    assert shown(plan, "c d") == ["a:k<-c.k", "b:k<-c.k"]
    assert [len(layout.indexes) for layout in plan.layouts] == [1, 1, 1, 1]


def test_a_cycle_closes_with_a_check() -> None:
    plan = plan_of("a b c", "a.k = b.k AND b.x = c.x AND c.y = a.y")
    assert shown(plan, "a") == ["b:k<-a.k", "c:y<-a.y"]
    assert shown(plan, "a b") == ["c:y<-a.y", "c:x<-b.x"]
    for step in plan.steps((0b011, 0)):
        assert isinstance(step, Probe)
        [checked] = step.equalities
        assert step.access != KeyAccess((checked.seen_from(2)[0],), checked.seen_from(2)[1], (checked.seen_from(2)[2],))


def test_several_edges_between_two_sources_are_one_index() -> None:
    plan = plan_of("a b", "a.k = b.x AND a.s = b.s")
    assert shown(plan, "a") == ["b:x<-a.k,s<-a.s"]
    assert shown(plan, "b") == ["a:k<-b.x,s<-b.s"]
    [step] = plan.steps((1, 0))
    assert isinstance(step, Probe) and len(step.equalities) == 2


def test_hashed_keys_are_verified_and_exact_ones_are_not() -> None:
    exact, hashed = plan_of("a b", "a.k = b.k").steps((1, 0))[0], plan_of("a b", "a.s = b.s").steps((1, 0))[0]
    assert isinstance(exact, Probe) and exact.equalities == ()
    assert isinstance(hashed, Probe) and len(hashed.equalities) == 1


def test_cross_products_come_last() -> None:
    plan = plan_of("a b c", "b.k = c.k")
    assert shown(plan, "a") == ["b:list", "c:list"]
    assert shown(plan, "b") == ["c:k<-b.k"]
    assert shown(plan, "b c") == ["a:list"]


def test_ranges_are_looked_up_and_both_limits_of_a_band_on_one_key() -> None:
    plan = plan_of("a b", "a.x BETWEEN b.x - 3 AND b.x + 3 AND a.y < b.y")
    for source in (1, 2):
        [step] = plan.steps((source, 0))
        assert isinstance(step, Probe) and isinstance(step.access, RangeAccess)
        assert len(step.access.limits) == 2
        assert len(step.predicates) == 3  # what a constant was taken out of is checked again
    [step] = plan_of("a b", "a.x < b.x AND a.x >= b.y").steps((1, 0))
    assert isinstance(step, Probe) and isinstance(step.access, RangeAccess) and len(step.predicates) == 1
    [step] = plan_of("a b", "a.x < b.x AND a.x >= b.y").steps((2, 0))
    assert isinstance(step, Probe) and isinstance(step.access, RangeAccess) and step.predicates == ()


def test_a_time_bound_alone_is_a_link() -> None:
    plan = plan_of("a b c", "a.ts - b.ts <= INTERVAL '5' SECOND")
    assert shown(plan, "a") == ["b:list"]
    assert shown(plan, "c") == ["a:list", "b:list"]


def register() -> None:
    @udf(returns=pa.bool_(), name="plan_likes")
    def likes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x + y) % 2 == 0


def test_selections_are_steps_as_soon_as_their_sources_are_there() -> None:
    register()
    plan = plan_of("a b", "a.k = b.k AND plan_likes(a.x, 1) AND plan_likes(a.x, b.x)")
    assert shown(plan, "a") == ["0", "b:k<-a.k"]
    assert shown(plan, "a", done=0b01) == ["b:k<-a.k"]
    assert shown(plan, "b") == ["a:k<-b.k"]
    assert shown(plan, "a b") == ["0", "1"]
    assert shown(plan, "a b", done=0b10) == ["0"]
    assert shown(plan, "a b", done=0b11) == []


WHERES = [
    "a.k = b.k AND b.x = c.x AND c.y = d.y",
    "a.k = b.k AND a.k = c.k AND a.k = d.k AND b.x < d.x",
    "a.k = b.k AND b.s = c.s AND c.k + d.k = a.x AND a.y <> d.y",
    "a.x < b.x AND c.x > d.x + 1 AND a.k + b.k + c.k + d.k > 0",
    "a.k = b.k AND a.s = b.s AND b.s = c.s AND c.k = d.k AND d.k = a.x",
    "a.y BETWEEN b.y - 1 AND c.y + 1",
    "a.ts <= b.ts",
    "",
]


@pytest.mark.parametrize("where", WHERES)
def test_on_every_route_every_predicate_is_decided_exactly_once(where: str) -> None:
    """Follow all routes: an equality that was given is looked up or verified, and a check is made, once."""
    plan = plan_of("a b c d", where)
    given = [e for e in plan.graph.equalities if not e.derived]
    checks = [*(r.predicate for r in plan.graph.ranges), *plan.graph.residuals]

    def follow(span: int, equal: list, checked: list) -> None:
        steps = plan.steps((span, 0))
        if span == (1 << len(plan.query.sources)) - 1:
            assert not steps
            assert all(equal.count(e) >= 1 for e in given)
            assert sorted(map(repr, checked)) == sorted(map(repr, checks))
            return
        assert steps
        for step in steps:
            assert isinstance(step, Probe)
            assert not span >> step.target & 1
            decided = list(step.equalities)
            ranges = []
            if isinstance(step.access, KeyAccess):
                assert span >> step.access.partner & 1
                pairs = list(zip(step.access.on, step.access.partner_on, strict=True))
                decided += [e for e in given if edge_of(e, step) in pairs and step.access.partner in (e.left, e.right)]
            elif isinstance(step.access, RangeAccess):
                ranges = [
                    r.predicate
                    for r in plan.graph.ranges
                    if r.exact and step.target in (r.left, r.right) and r.seen_from(step.target)[0] == step.access.on
                    and span >> r.seen_from(step.target)[2] & 1
                ]  # fmt: skip
            follow(span | 1 << step.target, [*equal, *decided], [*checked, *ranges, *step.predicates])

    for start in range(4):
        follow(1 << start, [], [])


def edge_of(e, step: Probe):
    if step.target not in (e.left, e.right):
        return None
    mine, _, theirs = e.seen_from(step.target)
    return mine, theirs


@pytest.mark.parametrize("where", WHERES)
def test_indexes_are_there_for_every_access_of_every_route(where: str) -> None:
    plan = plan_of("a b c d", where)
    for order in permutations(range(4)):
        span = 1 << order[0]
        while steps := plan.steps((span, 0)):
            for step in steps:
                assert isinstance(step, Probe)
                layout, access = plan.layouts[step.target], step.access
                if isinstance(access, KeyAccess):
                    assert access.on in layout.indexes
                    assert access.partner_on in plan.layouts[access.partner].indexes
                    assert set(access.on) <= set(layout.keys)
                elif isinstance(access, RangeAccess):
                    assert access.on in layout.order_keys
                    assert all(key in plan.layouts[p].order_keys for _, p, key, _ in access.limits)
                else:
                    assert isinstance(access, ListAccess)
                for e in step.equalities:
                    mine, partner, theirs = e.seen_from(step.target)
                    assert mine in layout.keys and theirs in plan.layouts[partner].keys
                for p in step.predicates:
                    for column in (c for c in query_columns(plan.query, p)):
                        assert column in plan.layouts[column.source].stored
            nearest = min(steps, key=lambda s: order.index(s.target))  # type: ignore[union-attr]
            span |= 1 << nearest.target  # type: ignore[union-attr]


def query_columns(query: BoundQuery, expr):
    from eddyline.bound.expr import columns_of

    return columns_of(expr)


@pytest.mark.parametrize("shape", ["chain", "star", "clique", "cross"])
def test_twenty_sources_cost_only_the_signatures_that_are_met(shape: str) -> None:
    names = [f"s{i}" for i in range(20)]
    edges = {
        "chain": pairwise(names),
        "star": [(names[0], n) for n in names[1:]],
        "clique": [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]],
        "cross": [],
    }[shape]
    plan = plan_of(" ".join(names), " AND ".join(f"{a}.k = {b}.k" for a, b in edges))
    for start in range(20):
        span = 1 << start
        while steps := plan.steps((span, 0)):
            assert isinstance(steps[0], Probe)
            span |= 1 << steps[0].target
        assert span == (1 << 20) - 1
    assert len(plan._steps) <= 20 * 20


def test_a_layout_keeps_what_is_needed_later_and_nothing_else() -> None:
    plan = plan_of("a b", "a.k = b.k AND a.x > 3 AND a.s = 'z' AND a.y + b.y > 0", outputs="a.x, b.k")
    names = [[text(e, plan.query) for e in layout.stored] for layout in plan.layouts]
    assert sorted(names[0]) == ["a.x", "a.y"]
    assert sorted(names[1]) == ["b.k", "b.y"]
    assert [[text(e, plan.query) for e in layout.keys] for layout in plan.layouts] == [["a.k"], ["b.k"]]
    assert [text(c, plan.query) for c in plan.gathered] == ["a.x", "b.k"]


def test_an_aggregate_keeps_keys_and_arguments_and_a_count_keeps_nothing() -> None:
    query = bound("SELECT b.x, SUM(a.y) AS t FROM a, b WHERE a.k = b.k GROUP BY b.x", a="k x y", b="k x y")
    plan = Plan(query)
    assert [[text(e, query) for e in layout.stored] for layout in plan.layouts] == [["a.y"], ["b.x"]]
    count = Plan(bound("SELECT COUNT(*) AS n FROM a, b WHERE a.k = b.k", a="k x y", b="k x y"))
    assert [layout.stored for layout in count.layouts] == [(), ()]


def test_tables_have_no_time_and_rows_windows_have_places() -> None:
    query = bound("SELECT a.k FROM a [ROWS 5], b, t WHERE a.k = t.k", tables=["t"], a="k", b="k", t="k")
    assert [(layout.timed, layout.ordinal) for layout in Plan(query).layouts] == [
        (True, True),
        (True, False),
        (False, False),
    ]


LONE = "SELECT a.k FROM a, t, u WHERE a.k = t.k AND t.x = u.x AND a.y BETWEEN u.y - 1 AND u.y + 1"


def lone(tree: str | None = None, tables_first: bool = True) -> Plan:
    query = bound(LONE, tables="tu", **dict.fromkeys("atu", "k x y"))
    return Plan(query, parse_tree(tree, "atu") if tree else None, tables_first)


def test_nothing_probes_the_only_stream_beside_loaded_tables() -> None:
    plan = lone()
    assert [layout.probed for layout in plan.layouts] == [False, True, True]
    assert [len(layout.indexes) for layout in plan.layouts] == [0, 2, 1]
    assert plan.layouts[0].keys and plan.layouts[0].edges  # it probes with them
    assert shown(plan, "a") == ["t:k<-a.k"] and shown(plan, "a t") == ["u:x<-t.x"]
    assert shown(plan, "t") == shown(plan, "u") == shown(plan, "t u") == []


def test_states_of_tables_are_joined_and_states_with_the_stream_are_not_probed() -> None:
    plan = lone("(a (t u))")
    assert shown(plan, "t") == ["u:x<-t.x"] and shown(plan, "t u") == []
    assert plan.layouts[3].probed and plan.layouts[3].indexes
    plan = lone("((a t) u)")
    assert not plan.layouts[3].probed and not plan.layouts[3].indexes and not plan.layouts[3].order_keys
    assert shown(plan, "t") == shown(plan, "u") == [] and shown(plan, "a t") == ["u:x<-t.x"]


def test_other_streams_tables_that_are_asked_and_rows_in_any_order_probe_a_stream() -> None:
    plan = lone(tables_first=False)
    assert all(layout.probed for layout in plan.layouts) and shown(plan, "t") == ["a:k<-t.k", "u:x<-t.x"]
    both = Plan(bound("SELECT a.k FROM a, b, t WHERE a.k = b.k AND a.k = t.k", tables="t", a="k", b="k", t="k"))
    assert all(layout.probed for layout in both.layouts)
    plan = Plan(asked(lone().query, {"u": [("x",)]}))
    assert all(layout.probed for layout in plan.layouts) and shown(plan, "u") == ["t:x<-u.x"]


def test_a_plan_is_shared_by_those_who_have_the_query_itself() -> None:
    """One that is equal may have another function of the same name."""
    queries = []
    for keeps in (True, False):
        udf(returns=pa.bool_(), name="plan_keeps")(lambda x, keeps=keeps: x == x if keeps else x != x)
        queries.append(bound("SELECT a.k FROM a, b WHERE a.k = b.k AND plan_keeps(b.k)", a="k", b="k"))
    one, other = queries
    tree = parse_tree("(b a)", "ab")
    assert one == other and shared(one) is shared(one) and shared(one, tree) is shared(one, tree)
    assert shared(one) is not shared(other) and shared(one).query is one and shared(other).query is other
    assert shared(one, tree) is not shared(one)
