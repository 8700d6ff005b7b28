"""Search: the best shape, without marks, by the algorithm that the setting `optimizer` names."""

from __future__ import annotations

from dataclasses import replace

from eddyline.optimizer.dominating import choose, dominating
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.plans import Considered, PricedPlan
from eddyline.optimizer.situation import Proposal, Situation
from eddyline.optimizer.strategies import bjtree_init, mjoin_init


def search(situation: Situation) -> Proposal | None:
    """The plan that the algorithm finds."""
    if not situation.looking:
        return None
    why = f"{situation.why}; {situation.changed}" if situation.changed else situation.why
    return Proposal(_found(situation), why)


def _found(situation: Situation) -> PricedPlan:
    pricing, limits, algorithm = situation.pricing, situation.limits, situation.algorithm
    if algorithm == "mjoin-init":
        return mjoin_init(pricing, limits)
    if algorithm == "bjtree-init":
        return bjtree_init(pricing, limits)
    if algorithm == "exhaustive":
        plans = exhaustive(pricing, limits)
    else:
        plans = dominating(pricing, limits, situation.clock, pricing.tuning.search_seconds)
    best = choose([plan for plan in plans if not situation.is_lost(plan.tree)], limits, "cpu")
    if best is None:
        return mjoin_init(pricing, limits)
    return replace(best, considered=tuple(Considered("not dominated", plan.tree, plan.cost) for plan in plans))
