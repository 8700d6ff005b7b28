"""Finds the maximally dominating plans within a given time, and chooses one of them.

The strategies stop at the first qualified plan; this search continues. A small query is searched exhaustively. For
other queries the search starts with the plans that both strategies come to. Then it tries neighbours (see refine.py) of
all plans that no known plan dominates, until there are no new ones or the time is over. The caller passes in the clock,
which is read between plans; the plans of the strategies are compared in any case.

The chosen plan is the one that uses least of the scarcer resource. If neither is declared scarcer, it is the plan whose
larger share of a limit is smallest, so that both resources have room to grow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.plans import Cost, PricedPlan, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.refine import neighbours
from eddyline.optimizer.shapes import Shape, shape_of
from eddyline.optimizer.strategies import bjtree_init, mjoin_init

Resource = Literal["cpu", "memory"]


class Undominated:
    """Plans none of which dominates another."""

    def __init__(self) -> None:
        self.plans: list[tuple[Shape, Cost]] = []

    def add(self, shape: Shape, cost: Cost) -> bool:
        """Add a plan and remove the plans that it dominates; returns False if a known plan is at least as good."""
        if any(other.cpu <= cost.cpu and other.memory <= cost.memory for _, other in self.plans):
            return False
        self.plans = [(s, c) for s, c in self.plans if not cost.dominates(c)]
        self.plans.append((shape, cost))
        return True


def dominating(
    pricing: Pricing, limits: ResourceLimits, clock: Callable[[], float], seconds: float
) -> list[PricedPlan]:
    """The qualified plans that no other known plan dominates, from the least CPU to the least memory."""
    if pricing.model.size <= pricing.tuning.exhaustive_sources:
        return exhaustive(pricing, limits)
    end = clock() + seconds
    found = Undominated()
    open_plans: deque[tuple[Shape, Cost]] = deque()
    for strategy in (mjoin_init, bjtree_init):
        for considered in strategy(pricing, limits).considered:
            plan = shape_of(considered.tree), considered.cost
            if found.add(*plan):
                open_plans.append(plan)
    while open_plans and clock() < end:
        plan = open_plans.popleft()
        if plan not in found.plans:
            continue
        for neighbour in neighbours(pricing, plan[0]):
            if found.add(*neighbour):
                open_plans.append(neighbour)
            if clock() >= end:
                break
    qualified = [(shape, cost) for shape, cost in found.plans if limits.allow(cost)]
    return [pricing.planned(shape) for shape, _ in sorted(qualified, key=lambda plan: plan[1].cpu)]


def choose(plans: Sequence[PricedPlan], limits: ResourceLimits, scarcer: Resource | None = None) -> PricedPlan | None:
    """The plan to take; None if there is none."""
    if not plans:
        return None
    if scarcer == "cpu":
        return min(plans, key=lambda plan: (plan.cost.cpu, plan.cost.memory))
    if scarcer == "memory":
        return min(plans, key=lambda plan: (plan.cost.memory, plan.cost.cpu))
    return min(plans, key=lambda plan: (limits.excess(plan.cost), plan.cost.cpu))
