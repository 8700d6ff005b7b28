"""Hill climbing: goes from a plan to the best of the plans that one change makes of it, and repeats while plans
improve.

Effort is counted as in refine.py, so the result does not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from eddyline.optimizer.plans import Cost, PricedPlan
from eddyline.optimizer.shapes import canonical
from eddyline.optimizer.situation import Situation
from eddyline.plan.tree import Tree, mjoin

Changes = Callable[[Tree], Iterable[Tree]]
"""The operators that one change makes of an operator."""


def climb(situation: Situation, changes: Changes) -> PricedPlan | None:
    """A plan that is better than the best so far; None if no change leads to one."""
    assert situation.best is not None
    pricing, best = situation.pricing, situation.best.plan
    most, seen = pricing.effort + pricing.tuning.climb_effort, set[Tree]()
    found, least = None, situation.rank(best.cost)
    for start in (best.tree, situation.tree, mjoin(pricing.model.size)):
        tree, here = canonical(start), situation.rank(pricing.tree(start).cost)
        while tree not in seen:
            seen.add(tree)
            if here < least and not situation.is_lost(tree):
                found, least = tree, here
            ranked = [(situation.rank(cost), changed) for changed, cost in _priced(situation, tree, changes, most)]
            here, tree = min(((here, tree), *ranked), key=lambda item: item[0])
    return None if found is None else replace(pricing.plan(found), considered=best.considered)


def _priced(situation: Situation, tree: Tree, changes: Changes, most: int) -> Iterator[tuple[Tree, Cost]]:
    for changed in everywhere(tree, changes):
        if situation.pricing.effort > most:
            return
        if not situation.is_lost(changed):
            yield canonical(changed), situation.pricing.tree(changed).cost


def everywhere(tree: Tree, changes: Changes) -> Iterator[Tree]:
    """All trees that result from a change of one operator of a tree."""
    yield from changes(tree)
    for at, child in enumerate(tree.children):
        if isinstance(child, Tree):
            for changed in everywhere(child, changes):
                yield replace(tree, children=(*tree.children[:at], changed, *tree.children[at + 1 :]))


def pairs(tree: Tree) -> Iterator[tuple[tuple[Tree | int, Tree | int], list[Tree | int]]]:
    """Each pair of children of an operator with more than two children, and the other children."""
    if len(tree.children) > 2:
        for at, left in enumerate(tree.children):
            for right in tree.children[at + 1 :]:
                yield (left, right), [child for child in tree.children if child is not left and child is not right]
