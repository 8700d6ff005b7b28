"""Plans with a tree: steps stay within an operator, and every route does all that WHERE asks exactly once."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.udf import udf
from eddyline.plan.explain import text
from eddyline.plan.plan import Plan, Signature
from eddyline.plan.steps import KeyAccess, ListAccess, Probe, RangeAccess, Select, Step
from eddyline.plan.tree import Tree, parse_tree
from lab.fuzz.trees import random_tree
from tests.support.jobs import bound


@pytest.fixture(scope="module", autouse=True)
def likes() -> None:
    @udf(returns=pa.bool_(), name="tree_likes")
    def _likes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (x + y) % 2 == 0


def plan_of(tree: str, where: str, columns: str = "k x y s:string", tables: str = "") -> Plan:
    aliases = sorted(re.findall(r"\w+", tree))
    query = bound(
        f"SELECT {aliases[0]}.k FROM {', '.join(aliases)} WHERE {where}",
        tables=tables.split(),
        **dict.fromkeys(aliases, columns),
    )
    return Plan(query, parse_tree(tree, aliases))


def span(plan: Plan, aliases: str) -> int:
    names = [s.alias for s in plan.query.sources]
    return sum(1 << names.index(a) for a in aliases)


def targets(plan: Plan, aliases: str, done: int = 0) -> list[str]:
    """What the steps from a span probe, or [number of a selection]."""
    names = [s.alias for s in plan.query.sources]
    words = []
    for step in plan.steps((span(plan, aliases), done)):
        if isinstance(step, Select):
            words.append(f"[{step.selection}]")
        else:
            words.append("".join(a for i, a in enumerate(names) if step.span >> i & 1))
    return words


def indexes(plan: Plan, stem: int) -> list[str]:
    return [" ".join(text(e, plan.query) for e in on) for on in plan.layouts[stem].indexes]


CHAIN = "a.k = b.k AND b.x = c.x AND c.y = d.y"
STAR = "a.k = b.k AND a.x = c.x AND a.y = d.y"


def test_steps_stay_within_an_operator() -> None:
    plan = plan_of("((a b) (c d))", CHAIN)
    assert [targets(plan, one) for one in "abcd"] == [["b"], ["a"], ["d"], ["c"]]
    assert targets(plan, "ab") == ["cd"] and targets(plan, "cd") == ["ab"]
    assert targets(plan, "abcd") == []


def test_no_route_goes_round_a_materialised_span() -> None:
    """An edge that leaves the operator is no way out of it, not even where there is no edge within."""
    plan = plan_of("((b c) a d)", STAR)
    assert targets(plan, "a") == ["bc", "bc", "d"], "one for each key of the span that a has"
    assert targets(plan, "b") == ["c"] and targets(plan, "c") == ["b"]
    [step] = plan.steps((span(plan, "b"), 0))
    assert isinstance(step, Probe) and isinstance(step.access, ListAccess)
    assert targets(plan, "bc") == ["a", "a"] and targets(plan, "ad") == ["bc", "bc"]


def test_a_larger_span_is_probed_by_any_of_its_keys_and_the_others_are_checked() -> None:
    plan = plan_of("((b c) a)", "a.k = b.k AND b.x = c.x AND c.y = a.y")
    steps = plan.steps((span(plan, "a"), 0))
    assert [text(s.access.on[0], plan.query) for s in steps] == ["b.k", "c.y"]
    for step in steps:
        assert isinstance(step, Probe) and step.target == 3 and len(step.equalities) == 1
    for one in "bc":  # that between them is not checked again
        [step] = plan.steps((span(plan, one), 0))
        assert isinstance(step, Probe) and step.equalities == ()


def test_indexes_only_where_siblings_reach() -> None:
    plan = plan_of("((a b) (c d))", CHAIN)
    assert [indexes(plan, stem) for stem in range(6)] == [["a.k"], ["b.k"], ["c.y"], ["d.y"], ["b.x"], ["c.x"]]
    assert [len(layout.edges) for layout in plan.layouts] == [1, 2, 2, 1, 0, 0], "keys of all edges are kept"
    whole = plan_of("(a b c d)", CHAIN)
    assert [indexes(whole, stem) for stem in range(4)] == [["a.k"], ["b.k", "b.x"], ["c.x", "c.y"], ["d.y"]]
    assert [layout.keys for layout in whole.layouts] == [layout.keys for layout in plan.layouts[:4]]
    assert [layout.stored for layout in whole.layouts] == [layout.stored for layout in plan.layouts[:4]]


def test_several_columns_of_an_edge_are_one_index_of_a_larger_span() -> None:
    plan = plan_of("((a b) c)", "a.k = b.k AND b.x = c.x AND b.s = c.s")
    assert indexes(plan, 3) == ["b.x b.s"] and indexes(plan, 1) == ["b.k"] and indexes(plan, 2) == ["c.x c.s"]


def test_layouts_of_larger_spans() -> None:
    plan = plan_of("(((t u) a) b)", "t.k = u.k AND u.x = a.x AND a.y < b.y AND b.x > a.x", tables="t u")
    names = [s.alias for s in plan.query.sources]
    assert [[names[c] for c in layout.components] for layout in plan.layouts[4:]] == [["t", "u"], ["a", "t", "u"]]
    assert [layout.timed for layout in plan.layouts[4:]] == [False, True]
    assert [layout.stored + layout.keys for layout in plan.layouts[4:]] == [(), ()]
    assert [[text(e, plan.query) for e in layout.order_keys] for layout in plan.layouts[4:]] == [[], ["a.y", "a.x"]]
    [step] = plan.steps((span(plan, "b"), 0))
    assert isinstance(step, Probe) and isinstance(step.access, RangeAccess) and step.target == 5


def test_selections_are_done_before_a_build() -> None:
    plan = plan_of("((a b) c)", "a.k = b.k AND b.x = c.x AND tree_likes(a.x, b.y) AND tree_likes(a.y, c.y)")
    assert targets(plan, "ab") == ["[0]"], "c comes after it"
    assert plan.stem_of((span(plan, "ab"), 0)) is None
    assert plan.stem_of((span(plan, "ab"), 1)) == 3
    assert targets(plan, "ab", 1) == ["c"]
    assert targets(plan, "c") == ["ab"]
    assert targets(plan, "abc", 1) == ["[1]"] and targets(plan, "abc", 3) == []
    assert plan.operator((span(plan, "ab"), 0)).tree == plan.materialised[0]
    assert plan.operator((span(plan, "ab"), 1)).tree == plan.tree
    below, root = plan.operator((1, 0)), plan.operator((4, 0))
    assert (below.selections, below.done, root.selections, root.done) == ((0,), 1, (1,), 3)


LIKES = "a.k = b.k AND b.x = c.x AND tree_likes(a.x, b.y) AND tree_likes(a.y, c.y) AND tree_likes(b.k, b.x)"


def test_a_late_operator_leaves_its_selections_to_the_one_above() -> None:
    plan = plan_of("((a b)! c)", LIKES)
    assert targets(plan, "b") == ["a"], "nor is that of one source offered"
    assert plan.stem_of((0b11, 0)) == 3 and plan.signature(0b11) == (0b11, 0)
    assert targets(plan, "ab") == ["[0]", "[2]", "c"], "in any order"
    for done, rest in {1: ["[2]", "c"], 4: ["[0]", "c"], 5: ["c"]}.items():
        assert targets(plan, "ab", done) == rest and plan.stem_of((0b11, done)) is None
        assert plan.operator((0b11, done)).tree == plan.tree
    [probe] = plan.steps((0b100, 0))
    assert plan.after((0b100, 0), probe) == (0b111, 0) and targets(plan, "abc") == ["[0]", "[1]", "[2]"]
    below, root = plan.operator((1, 0)), plan.operator((4, 0))
    assert (below.selections, below.done, root.selections, root.done) == ((), 0, (0, 1, 2), 7)


def test_a_late_operator_has_what_those_below_have_done() -> None:
    plan = plan_of("(((a b) c)! d)", f"{LIKES} AND c.y = d.y")
    assert plan.signature(0b11) == (0b11, 5) and plan.signature(0b111) == (0b111, 5)
    assert targets(plan, "ab", 5) == ["c"] and targets(plan, "abc", 5) == ["[1]", "d"]
    assert plan.stem_of((0b111, 5)) == 5 and plan.stem_of((0b111, 7)) is None


def test_what_a_migration_starts_passes_what_is_missing() -> None:
    """Tuples of a plan in which the selections of both operators waited."""
    plan = plan_of("(((a b) c) d)", f"{LIKES} AND c.y = d.y")
    assert plan.operator((0b111, 0)).tree.span == 0b111 and targets(plan, "abc") == ["[0]", "[1]", "[2]"]
    assert targets(plan, "abc", 5) == ["[1]"] and plan.stem_of((0b111, 7)) == 5


def test_the_root_is_not_late() -> None:
    query = plan_of("((a b) c)", LIKES).query
    with pytest.raises(AssertionError, match="never be applied"):
        Plan(query, Tree((0, 1, 2), late=True))


def test_after() -> None:
    plan = plan_of("((a b) c)", "a.k = b.k AND b.x = c.x AND tree_likes(a.x, b.y)")
    [probe] = plan.steps((span(plan, "c"), 0))
    assert plan.after((span(plan, "c"), 0), probe) == (0b111, 1), "what is probed has passed its selection"
    [probe] = plan.steps((span(plan, "a"), 0))
    assert plan.after((1, 0), probe) == (0b11, 0)
    [select] = plan.steps((0b11, 0))
    assert plan.after((0b11, 0), select) == (0b11, 1)


def test_bits_stand_for_children() -> None:
    plan = plan_of("((b d) a c)", CHAIN)
    root = plan.operator((1, 0))
    assert root.stems == (4, 0, 2) and root.spans == (0b1010, 1, 0b100)
    assert root.bits == {4: 1, 0: 0, 2: 2} and root.bit_of == {0: 0, 1: 1, 3: 1, 2: 2}


def test_linked() -> None:
    plan = plan_of("((b c) a d)", STAR)
    assert plan.linked(plan.operator((1, 0))) == {1: 1, 0: 0b1010, 3: 1}
    assert plan.linked(plan.operator((2, 0))) == {1: 0, 2: 0}, "a product"
    plan = plan_of("((a b) c)", "a.k = b.k AND a.x < c.x")
    assert plan.linked(plan.operator((4, 0))) == {0: 4, 2: 1}, "by a range if there is no key"


QUERIES = {
    "chain": CHAIN,
    "cycle": f"{CHAIN} AND d.s = a.s",
    "star and ranges": "a.k = b.k AND a.x = c.x AND a.y < d.y AND b.x + c.x <= d.x",
    "selections": f"{CHAIN} AND tree_likes(a.x, b.y) AND tree_likes(b.x, d.y) AND a.x <> d.x",
    "three at once": f"{CHAIN} AND a.x + b.y = c.k AND tree_likes(a.x, a.y)",
    "ranges": "a.x < b.x AND b.x < c.x AND c.x < d.x + 3 AND a.y + d.y = 4",
}


def routes(plan: Plan, signature: Signature) -> Iterator[list[tuple[Signature, Step]]]:
    """All ways from a signature to the whole result."""
    steps = plan.steps(signature)
    if not steps:
        yield []
    for step in steps:
        for rest in routes(plan, plan.after(signature, step)):
            yield [(signature, step), *rest]


@pytest.mark.parametrize("name", QUERIES)
def test_every_route_decides_everything_once(name: str) -> None:
    """Whichever way the components of a result find each other, each predicate is applied, and none twice; with what
    was applied to a larger span before it was built."""
    rng, seen = random.Random(name), 0
    base = plan_of("(a b c d)", QUERIES[name])
    for _ in range(12):
        plan = Plan(base.query, random_tree(rng, 4, base.edges))
        whole = plan.tree.span, (1 << len(plan.graph.selections)) - 1
        for source in range(4):
            for route in routes(plan, (1 << source, 0)):
                seen += 1
                decided = applied(plan, route)
                wanted = [*plan._checks, *plan.graph.selections, *(e for e in plan.graph.equalities if not e.derived)]
                assert all(decided[one] == 1 for one in wanted), plan.text
                assert plan.after(*route[-1]) == whole
                check_operators(plan, route)
    assert seen > 20


def applied(plan: Plan, route: list[tuple[Signature, Step]]) -> Counter[object]:
    """How often each equality, check and selection is decided on a route and, before, for the spans it probes."""
    decided: Counter[object] = Counter()
    for _, step in route:
        if isinstance(step, Select):
            decided[step.predicate] += 1
            continue
        decided.update(step.predicates)
        decided.update(e for e in step.equalities if not e.derived)
        decided.update(_by_access(plan, step))
        if step.span & step.span - 1:
            tree = next(t for t in plan.materialised if t.span == step.span)
            inner = next(routes_to(plan, (1 << next(tree.sources()), 0), tree.span))
            decided.update(applied(plan, inner))
    return decided


def routes_to(plan: Plan, signature: Signature, span: int) -> Iterator[list[tuple[Signature, Step]]]:
    """Ways to the build of a span."""
    stem = plan.stem_of(signature)
    if stem is not None and plan.layouts[stem].components and signature[0] == span:
        yield []
        return
    for step in plan.steps(signature):
        for rest in routes_to(plan, plan.after(signature, step), span):
            yield [(signature, step), *rest]


def _by_access(plan: Plan, step: Probe) -> list[object]:
    """What a lookup decides by itself."""
    access = step.access
    if isinstance(access, KeyAccess):
        pairs = {(access.on[0], access.partner_on[0])} if len(access.on) == 1 else set()
        both = [e for e in plan.graph.equalities if {(e.left_expr, e.right_expr), (e.right_expr, e.left_expr)} & pairs]
        return [e for e in both if not e.derived and e not in step.equalities]
    if isinstance(access, RangeAccess):
        limits = {(access.on, partner, key) for _, partner, key, _ in access.limits}
        found = [r for r in plan.graph.ranges for s in (r.left, r.right) if _limit(r.seen_from(s)) in limits]
        return [r.predicate for r in found if r.predicate not in step.predicates]
    return []


def _limit(seen: tuple) -> tuple:
    key, _, partner, theirs, _ = seen
    return key, partner, theirs


def check_operators(plan: Plan, route: list[tuple[Signature, Step]]) -> None:
    """Each step is one of the operator where the tuple is; no step takes a part of a materialised span."""
    for signature, step in route:
        operator = plan.operator(signature)
        if isinstance(step, Probe):
            assert step.target in operator.stems and not step.span & signature[0]
            assert operator.spans[operator.stems.index(step.target)] == step.span
            if isinstance(step.access, KeyAccess):
                assert step.access.on in plan.layouts[step.target].indexes
            if isinstance(step.access, RangeAccess):
                assert step.access.on in plan.layouts[step.target].order_keys
