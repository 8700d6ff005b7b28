"""Group early: a part of the group-by before a join (`+`, see plan/grouped.py), where few groups come of many tuples.

The shape that is best without marks need not be the best with them: a state that is too dear to keep may be cheap once
its tuples are put together. So changes are tried in which a pair of children gets an operator that groups at once, and
a source one of its own; the best plan so far, the current plan and the multi-way join are where they start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eddyline.optimizer.climb import climb, pairs
from eddyline.optimizer.situation import Proposal, Situation
from eddyline.plan.tree import Tree


def group_early(situation: Situation) -> Proposal | None:
    """A plan that groups, if it is better than the best so far."""
    if situation.best is None or not situation.looking or situation.pricing.model.workload.grouping is None:
        return None
    found = climb(situation, changes)
    return None if found is None else replace(situation.best, plan=found)


def changes(tree: Tree) -> Iterator[Tree]:
    """An operator with another way to group one or two of its children."""
    for at, child in enumerate(tree.children):
        before, after = tree.children[:at], tree.children[at + 1 :]
        if isinstance(child, Tree):
            yield replace(tree, children=(*before, *child.children, *after))
            if len(child.children) > 1:
                yield replace(tree, children=(*before, replace(child, grouped=not child.grouped), *after))
        elif len(tree.children) > 1:
            yield replace(tree, children=(*before, Tree((child,), grouped=True), *after))
    for pair, others in pairs(tree):
        yield replace(tree, children=(Tree(pair, grouped=True), *others))
