"""What the algorithms give: a tree with its orderings, what it costs, and what else was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from eddyline.plan.tree import Tree

Orderings = Mapping[tuple[int, int], tuple[int, ...]]
"""By (span of the operator, span of the child that starts), the spans of the other children as they are probed."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds per second of event time, and bytes of state."""

    cpu: float
    memory: float

    def dominates(self, other: Cost) -> bool:
        """Less of one resource and no more of the other.

        >>> Cost(1.0, 5.0).dominates(Cost(1.0, 6.0)), Cost(1.0, 5.0).dominates(Cost(2.0, 4.0))
        (True, False)
        """
        return self != other and self.cpu <= other.cpu and self.memory <= other.memory


@dataclass(frozen=True)
class ResourceLimits:
    """What a plan may use; None is no limit. A plan within both is *qualified*."""

    cpu: float | None = None
    memory: float | None = None

    def allow(self, cost: Cost) -> bool:
        """Whether a plan that costs so much is qualified."""
        return self.excess(cost) <= 1.0

    def excess(self, cost: Cost) -> float:
        """The larger share of a limit that it uses; above 1 it is not qualified. 0 without limits."""
        return max(_share(cost.cpu, self.cpu), _share(cost.memory, self.memory))


NO_LIMITS = ResourceLimits()


def _share(used: float, limit: float | None) -> float:
    if limit is None:
        return 0.0
    return used / limit if limit > 0 else (inf if used > 0 else 0.0)


@dataclass(frozen=True)
class Ordered:
    """CPU seconds per second of all probes of an operator, and by child the order of the others."""

    cpu: float
    orders: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class Considered:
    """A plan that an algorithm had in hand, and by which step it came to it."""

    step: str
    tree: Tree
    cost: Cost


@dataclass(frozen=True)
class PricedPlan:
    """A plan; `considered` are those that led to it, and `priced` is how many operators were priced on the way."""

    tree: Tree
    orderings: Orderings
    cost: Cost
    considered: tuple[Considered, ...] = ()
    priced: int = 0
