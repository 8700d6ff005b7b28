"""Recall: the plan that a search found for the same statistics (see library.py), if it is better by current prices."""

from __future__ import annotations

from eddyline.optimizer.situation import Proposal, Situation


def recall(situation: Situation) -> Proposal | None:
    """The plan of the library, if it is better than the current one."""
    known = situation.remembered
    if known is None:
        return None
    found = situation.pricing.plan(known.tree)
    if not situation.is_better(situation.current.cost, found.cost):
        return None
    then = f"this plan was found then, for {known.cost.cpu:.3g} of a core"
    return Proposal(found, f"{situation.why}, {then}; {situation.changed}")
