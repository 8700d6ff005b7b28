"""Random plan trees: the shapes between the multi-way join and the binary trees."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from eddyline.plan.tree import Tree, span_of

PRODUCT = 0.1
"""The share of operators that join two parts which no condition connects."""

LATE = 0.3
"""The share of operators below the root that are late: they leave selections to the operators above them."""


GROUPED = 0.5
"""The share of operators below the root that group their results, in queries in which they can."""


def random_tree(
    rng: random.Random, sources: int, edges: Collection[tuple[int, int]], late: float = LATE, grouped: float = 0.0
) -> Tree:
    """A random tree, mostly without products: operators join two parts that an edge connects, and then some are merged
    with the operator above them. Of the operators below the root the share `late` is late and the share `grouped`
    groups; half that share of the sources is grouped before it is joined."""
    parts: list[Tree | int] = list(range(sources))
    if grouped and sources > 1:
        parts = [Tree((s,), grouped=True) if rng.random() < grouped / 2 else s for s in range(sources)]
    while len(parts) > 2 and rng.random() < 0.9:
        pairs = [(a, b) for a in parts for b in parts if a is not b and _connected(a, b, edges)]
        if not pairs or (sources <= 4 and rng.random() < PRODUCT):
            if sources > 4:
                break
            pairs = [(a, b) for a in parts for b in parts if a is not b]
        a, b = rng.choice(pairs)
        merged = [*_children(rng, a), *_children(rng, b)]
        parts = [p for p in parts if p is not a and p is not b]
        flags = bool(late) and rng.random() < late, bool(grouped) and rng.random() < grouped
        parts.insert(rng.randrange(len(parts) + 1), Tree(tuple(merged), *flags))
    return Tree(tuple(parts))


def _children(rng: random.Random, part: Tree | int) -> Sequence[Tree | int]:
    return part.children if isinstance(part, Tree) and rng.random() < 0.3 else (part,)


def _connected(a: Tree | int, b: Tree | int, edges: Collection[tuple[int, int]]) -> bool:
    one, other = span_of(a), span_of(b)
    return any((one >> i & other >> j | one >> j & other >> i) & 1 for i, j in edges)
