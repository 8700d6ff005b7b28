"""The situation that a rule of the optimizer gets, and the proposal that it returns.

A situation is made each time that the optimizer looks for a plan. It has one `Pricing`, so all rules compare plans by
the same prices, and share the prices that are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from eddyline.optimizer.library import Remembered
from eddyline.optimizer.plans import Cost, PricedPlan, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.trials import Trial
from eddyline.plan.tree import Tree


@dataclass(frozen=True)
class Proposal:
    """A plan, and the reason why it is proposed now. `sure`: it was measured to be better, so it needs no trial."""

    plan: PricedPlan
    why: str
    sure: bool = False


@dataclass(frozen=True)
class Situation:
    """The current plan, its prices, and the events since the last look."""

    tree: Tree
    pricing: Pricing
    limits: ResourceLimits
    why: str
    """The reason why it is time to propose a plan."""
    changed: str
    """The statistics that have changed, in words."""
    cpu: float
    """CPU seconds per second of event time that the current plan takes, as measured; 0 if unknown."""
    is_better: Callable[[Cost, Cost], bool]
    """Whether the second cost is so much better that leaving a plan with the first may pay."""
    is_lost: Callable[[Tree], bool]
    """Whether a tree was tried, was worse, and must not be tried again yet."""
    algorithm: str
    """The setting `optimizer`."""
    clock: Callable[[], float]
    lost_trial: Trial | None = None
    """The trial of the current plan, if it has ended and the plan lost."""
    goal: Tree | None = None
    """The target of a change in several steps, if steps are left."""
    remembered: Remembered | None = None
    """The plan that the library has for these statistics."""
    looking: bool = False
    """Whether it is time for a search."""
    best: Proposal | None = None
    """The best proposal of the rules before this one."""

    @cached_property
    def current(self) -> PricedPlan:
        """The current plan, priced."""
        return self.pricing.plan(self.tree)

    def rank(self, cost: Cost) -> tuple[float, float, float]:
        """A key that sorts costs from best to worst: by the excess over limits, then by CPU, then by memory."""
        return max(1.0, self.limits.excess(cost)), cost.cpu, cost.memory
