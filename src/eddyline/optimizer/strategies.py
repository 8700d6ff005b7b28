"""The two strategies. mjoin-init starts with the multi-way join and adds states; bjtree-init starts with a binary tree
and removes states. Each stops at a qualified plan; mjoin-init also stops when the memory is used up. If no plan on the
way is qualified, small changes are tried (refine.py).
"""

from __future__ import annotations

from eddyline.optimizer.min_state import min_state
from eddyline.optimizer.plans import Considered, Cost, PricedPlan, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.refine import refine
from eddyline.optimizer.shapes import Shape, mjoin_shape, tree_of
from eddyline.optimizer.state_removal import state_removal
from eddyline.optimizer.state_selection import state_selection


class _Path:
    """The plans that a strategy came to."""

    def __init__(self, pricing: Pricing, limits: ResourceLimits) -> None:
        self._pricing, self._limits = pricing, limits
        self._steps: list[tuple[str, Shape, Cost]] = []

    def take(self, step: str, shape: Shape, cost: Cost) -> bool:
        """Add a plan; returns whether it is qualified."""
        self._steps.append((step, shape, cost))
        return self._limits.allow(cost)

    def refined(self) -> PricedPlan:
        """The plan after small changes to the plans so far, those nearest to the limits first."""
        for shape, cost in refine(self._pricing, [shape for _, shape, _ in self._nearest_first()], self._limits):
            self.take("refine", shape, cost)
        return self.planned()

    def planned(self) -> PricedPlan:
        """The qualified plan, or the one nearest to the limits."""
        considered = [Considered(step, tree_of(shape), cost) for step, shape, cost in self._steps]
        return self._pricing.planned(self._nearest_first()[0][1], considered)

    def _nearest_first(self) -> list[tuple[str, Shape, Cost]]:
        return sorted(self._steps, key=lambda step: self._limits.excess(step[2]))


def mjoin_init(pricing: Pricing, limits: ResourceLimits) -> PricedPlan:
    """Adds states to the multi-way join."""
    path = _Path(pricing, limits)
    shape = mjoin_shape(pricing.model.size)
    if path.take("mjoin-ordering", shape, pricing.cost(shape)):
        return path.planned()
    for tree, cost in state_selection(pricing, shape):
        if path.take("state-selection", tree, cost):
            return path.planned()
        if limits.memory is not None and cost.memory > limits.memory:
            break
    return path.refined()


def bjtree_init(pricing: Pricing, limits: ResourceLimits) -> PricedPlan:
    """Removes states from a binary tree."""
    path = _Path(pricing, limits)
    shape = min_state(pricing)
    if path.take("min-state", shape, pricing.cost(shape)):
        return path.planned()
    for tree, cost in state_removal(pricing, shape):
        if path.take("state-removal", tree, cost):
            return path.planned()
    return path.refined()
