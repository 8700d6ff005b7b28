"""A library of plans by the statistics for which a search found them (dissertation, 26.1.4).

Statistics of streams recur: a morning resembles the morning before. A point holds the statistics of a search, each
rounded to a power of the factor by which a statistic must change to count. Statistics are *near* a point if none of
them is more than one such step away. If several points are near, the most recently used one is taken. If there are more
points than the library keeps, the least recently used one is dropped. A recalled plan is priced anew before it is
taken, so a wrong match may cost performance, but never correctness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eddyline.codec import Snapshot
from eddyline.optimizer.plans import Cost
from eddyline.optimizer.shapes import tree_of_text, tree_text
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.plan.tree import Tree

NOTHING = 1e-12
"""The least value of a statistic: smaller values count as this one."""

StatisticsPoint = tuple[int, ...]
"""The statistics of a query, each rounded to a step of its logarithm (`Library._point`)."""


class Remembered(NamedTuple):
    """A plan, and its predicted cost when it was found."""

    tree: Tree
    cost: Cost


class RememberedSnapshot(Snapshot, frozen=True):
    """A point, and the plan that was found there."""

    point: StatisticsPoint
    tree: str
    cpu: float
    memory: float


class Library:
    """The plans remembered for one query. Its statistics have the same names in the same order every time."""

    def __init__(self, tuning: OptimizerTuning = DEFAULT) -> None:
        self._tuning = tuning
        self._plans: dict[StatisticsPoint, Remembered] = {}
        """The plans in the order of their last use; the most recent is at the end."""

    def __len__(self) -> int:
        return len(self._plans)

    def has_other(self, tree: Tree) -> bool:
        """Whether the library has any plan other than this tree."""
        return any(known.tree != tree for known in self._plans.values())

    def remember(self, figures: Mapping[str, float], tree: Tree, cost: Cost) -> None:
        """Remember the plan that a search found for these statistics."""
        here = self._point(figures)
        self._plans.pop(here, None)
        self._plans[here] = Remembered(tree, cost)
        if len(self._plans) > self._tuning.library_size:
            del self._plans[next(iter(self._plans))]

    def recall(self, figures: Mapping[str, float]) -> Remembered | None:
        """The plan that was found for statistics near these; None if there is none."""
        here = self._point(figures)
        for point in reversed(self._plans):
            if len(point) == len(here) and all(abs(a - b) <= 1 for a, b in zip(point, here, strict=True)):
                self._plans[point] = found = self._plans.pop(point)
                return found
        return None

    def saved(self) -> tuple[RememberedSnapshot, ...]:
        """A snapshot for another process."""
        return tuple(
            RememberedSnapshot(point, tree_text(tree), cost.cpu, cost.memory)
            for point, (tree, cost) in self._plans.items()
        )

    def restore(self, saved: Sequence[RememberedSnapshot]) -> None:
        """Restore from a snapshot."""
        self._plans = {s.point: Remembered(tree_of_text(s.tree), Cost(s.cpu, s.memory)) for s in saved}

    def _point(self, figures: Mapping[str, float]) -> StatisticsPoint:
        step = self._tuning.library_step
        return tuple(round(math.log(max(value, NOTHING), step)) for value in figures.values())
