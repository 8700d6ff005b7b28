"""Group early: do a part of the group-by before a join (`+`, see plan/grouped.py), where many tuples make few groups.

The best shape without marks need not be the best with them: a state that is too expensive to keep may be cheap once its
tuples are grouped. So this rule also tries changes that give a pair of children an operator that groups, or a source an
operator of its own. It starts from the best plan so far, the current plan and the multi-way join.
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
    """The variants of an operator that group one or two of its children in another way."""
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
