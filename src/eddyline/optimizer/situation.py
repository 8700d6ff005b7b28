"""What a rule of the optimizer is told, and what it answers.

A situation is made once for each time that the optimizer looks for a plan. It has one `Pricing`, so all that rules
compare is compared by the same prices, and what one rule priced is known to the next.
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
    """A plan, and why it is proposed now; `sure` if it was measured to be better, so that it needs no trial."""

    plan: PricedPlan
    why: str
    sure: bool = False


@dataclass(frozen=True)
class Situation:
    """The current plan, its prices, and what has happened."""

    tree: Tree
    pricing: Pricing
    limits: ResourceLimits
    why: str
    """Why it is time to propose something."""
    changed: str
    """The statistics that have changed, in words."""
    cpu: float
    """CPU seconds per second of event time that the current plan takes, as measured; 0 if not known."""
    is_better: Callable[[Cost, Cost], bool]
    """Whether the second cost is worth leaving the first."""
    is_lost: Callable[[Tree], bool]
    """Whether a tree was tried, was worse, and is not to be tried again yet."""
    algorithm: str
    """The setting `optimizer`."""
    clock: Callable[[], float]
    lost_trial: Trial | None = None
    """The trial of the current plan, if it is over and the plan lost."""
    goal: Tree | None = None
    """Where the steps of a change lead to, if there are more to come."""
    remembered: Remembered | None = None
    """The plan that the library has for these statistics."""
    looking: bool = False
    """Whether it is time for a search."""
    best: Proposal | None = None
    """What the rules before this one have found."""

    @cached_property
    def current(self) -> PricedPlan:
        """The current plan, priced."""
        return self.pricing.plan(self.tree)

    def rank(self, cost: Cost) -> tuple[float, float, float]:
        """How much is wrong with a cost: what is above a limit first, then CPU."""
        return max(1.0, self.limits.excess(cost)), cost.cpu, cost.memory
