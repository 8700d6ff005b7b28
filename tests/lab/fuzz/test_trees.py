"""Random trees: proper ones, of all kinds, and products only where they are asked for."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from eddyline.plan.tree import Tree, mjoin
from lab.fuzz.trees import random_tree
from tests.support.properties import examples


def chain(sources: int) -> set[tuple[int, int]]:
    return {(i, i + 1) for i in range(sources - 1)}


@examples(100)
@given(st.integers(0, 10**9), st.integers(1, 12), st.data())
def test_every_source_is_there_once(seed: int, sources: int, data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(0, sources - 1), st.integers(0, sources - 1)).filter(lambda p: p[0] != p[1])
    edges = data.draw(st.sets(pairs)) if sources > 1 else set()
    tree = random_tree(random.Random(seed), sources, edges)
    assert sorted(tree.sources()) == list(range(sources)) and tree.span == 2**sources - 1
    assert all(len(below.children) > 1 for below in tree.below())
    assert random_tree(random.Random(seed), sources, edges) == tree, "the same seed gives the same tree"


def test_all_kinds_come() -> None:
    rng, kinds = random.Random(1), Counter[str]()
    for _ in range(500):
        tree = random_tree(rng, 5, chain(5), grouped=0.3)
        operators = [tree, *tree.below()]
        binary = all(len(operator.children) == 2 for operator in operators)
        kinds["mjoin" if len(operators) == 1 else "binary" if binary else "hybrid"] += 1
        kinds["late"] += any(below.late for below in tree.below())
        kinds["grouped"] += any(below.grouped for below in tree.below())
        kinds["root is late"] += tree.late or tree.grouped
        kinds["bushy"] += any(sum(isinstance(c, Tree) for c in operator.children) > 1 for operator in operators)
    assert all(kinds[kind] > 20 for kind in ("mjoin", "binary", "hybrid", "bushy", "late", "grouped")), kinds
    assert not kinds["root is late"]
    assert not any(below.grouped for _ in range(50) for below in random_tree(rng, 5, chain(5)).below())
    assert not any(below.late for _ in range(50) for below in random_tree(rng, 5, chain(5), late=0.0).below())


def connected(tree: Tree, edges: set[tuple[int, int]]) -> bool:
    """Whether edges within a span lead from each of its sources to all others."""
    found, left = [next(tree.sources())], set(tree.sources())
    left.discard(found[0])
    for source in found:
        near = {j for i, j in edges | {(b, a) for a, b in edges} if i == source} & left
        left -= near
        found += near
    return not left


def test_products_only_of_few_sources() -> None:
    """With more than four sources no product is materialised: it would be too large."""
    rng, products = random.Random(2), 0
    for _ in range(300):
        assert all(connected(below, chain(6)) for below in random_tree(rng, 6, chain(6)).below())
        products += not all(connected(below, chain(4)) for below in random_tree(rng, 4, chain(4)).below())
    assert products > 5
    assert random_tree(rng, 6, set()) == mjoin(6)
