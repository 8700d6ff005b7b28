"""Hold back: let selections wait for an operator above (`!`, see plan/tree.py), where the join between keeps few
tuples.

This saves calls of an expensive function, at the price of more tuples in the state and in the probes after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eddyline.optimizer.climb import climb, pairs
from eddyline.optimizer.situation import Proposal, Situation
from eddyline.plan.tree import Tree, span_of


def hold_back(situation: Situation) -> Proposal | None:
    """A plan that holds selections back, if it is better than the best so far."""
    model = situation.pricing.model
    if situation.best is None or not situation.looking or not model.workload.selections:
        return None

    def changes(tree: Tree) -> Iterator[Tree]:
        """The variants of an operator that hold selections of its children back, or no longer do."""
        for at, child in enumerate(tree.children):
            if isinstance(child, Tree) and (child.late or model.inside(child.span)):
                other = replace(child, late=not child.late)
                yield replace(tree, children=(*tree.children[:at], other, *tree.children[at + 1 :]))
        for pair, others in pairs(tree):
            if model.inside(sum(map(span_of, pair))):
                yield replace(tree, children=(Tree(pair, late=True), *others))

    found = climb(situation, changes)
    return None if found is None else replace(situation.best, plan=found)
