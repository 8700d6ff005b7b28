"""The results of the algorithms: a tree with its orderings, its cost, and the other plans that were considered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from eddyline.plan.tree import Tree

Orderings = Mapping[tuple[int, int], tuple[int, ...]]
"""(span of the operator, span of the child that starts) -> the spans of the other children in the order of probes."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds per second of event time, and bytes of state."""

    cpu: float
    memory: float

    def dominates(self, other: Cost) -> bool:
        """Whether this cost is less in one resource and no more in the other.

        >>> Cost(1.0, 5.0).dominates(Cost(1.0, 6.0)), Cost(1.0, 5.0).dominates(Cost(2.0, 4.0))
        (True, False)
        """
        return self != other and self.cpu <= other.cpu and self.memory <= other.memory


@dataclass(frozen=True)
class ResourceLimits:
    """The CPU and memory that a plan may use; None is no limit. A plan within both limits is *qualified*."""

    cpu: float | None = None
    memory: float | None = None

    def allow(self, cost: Cost) -> bool:
        """Whether a plan with this cost is qualified."""
        return self.excess(cost) <= 1.0

    def excess(self, cost: Cost) -> float:
        """The larger of the two shares of limits that a cost uses: above 1 the plan is not qualified. 0 without
        limits."""
        return max(_share(cost.cpu, self.cpu), _share(cost.memory, self.memory))


NO_LIMITS = ResourceLimits()


def _share(used: float, limit: float | None) -> float:
    if limit is None:
        return 0.0
    return used / limit if limit > 0 else (inf if used > 0 else 0.0)


@dataclass(frozen=True)
class Ordered:
    """CPU seconds per second of all probes of an operator, and for each child the order in which its tuples probe the
    others."""

    cpu: float
    orders: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class Considered:
    """A plan that an algorithm considered, and the step that led to it."""

    step: str
    tree: Tree
    cost: Cost


@dataclass(frozen=True)
class PricedPlan:
    """A plan. `considered` are the plans that led to it; `priced` is how many operators were priced on the way."""

    tree: Tree
    orderings: Orderings
    cost: Cost
    considered: tuple[Considered, ...] = ()
    priced: int = 0
