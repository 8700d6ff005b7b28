"""Exhaustive search: bottom-up dynamic programming over the whole space of hybrid trees, products included.

The costs of operators add up, and the cost of an operator depends only on the spans of its children, not on the trees
below them. So for each span only the trees that no other tree beats in both resources are needed (the *front* of the
span). The search goes through the partitions of every span into children, and combines the fronts of the children. That
is exact, and for 8 sources it visits 21,147 partitions instead of 660,032 trees. The search of the paper kept all trees
and ran out of memory at 8 sources.

Early filtering: a tree for a part of the sources is dropped as soon as its cost, together with the least memory that
the other sources must take, is above a limit. Costs only grow, so no qualified plan is lost. (The paper drops trees
that are above both limits.)

To find the true optimum, the pricing must order operators exactly, too (best_ordering.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import inf
from typing import NamedTuple

from eddyline.optimizer.plans import NO_LIMITS, PricedPlan, ResourceLimits
from eddyline.optimizer.pricing import Pricing


class Point(NamedTuple):
    """A tree on a front."""

    cpu: float
    memory: float
    children: tuple[int, ...]
    chosen: tuple[int, ...]
    """For each child, the number of a point on its front."""


Front = list[Point]
_BASE: Front = [Point(0.0, 0.0, (), ())]


def exhaustive(pricing: Pricing, limits: ResourceLimits = NO_LIMITS) -> list[PricedPlan]:
    """All qualified plans that no other plan dominates, from the least CPU to the least memory."""
    search = _Search(pricing, limits)
    fronts = search.run()
    return [search.planned(point) for point in fronts[pricing.model.whole]]


class _Search:
    def __init__(self, pricing: Pricing, limits: ResourceLimits) -> None:
        self._pricing, self._model = pricing, pricing.model
        self._cpu = inf if limits.cpu is None else limits.cpu
        self._memory = inf if limits.memory is None else limits.memory
        self._fronts: dict[int, Front] = {1 << i: _BASE for i in range(self._model.size)}
        self._least = [source.rows * source.row_bytes for source in self._model.workload.sources]

    def run(self) -> dict[int, Front]:
        """Compute the fronts of all spans, the smaller spans first."""
        whole = self._model.whole
        for span in sorted(range(1, whole + 1), key=int.bit_count):
            if span & (span - 1):
                self._fronts[span] = self._front(span)
        return self._fronts

    def _front(self, span: int) -> Front:
        memory_left = self._memory - self._elsewhere(span)
        points = []
        for children in partitions(span):
            if len(children) < 2:
                continue
            fronts = [self._fronts[child] for child in children]
            if not all(fronts):
                continue
            operator = self._pricing.operator(children)
            if operator.cpu > self._cpu or operator.memory > memory_left:
                continue
            for chosen in product(*(range(len(front)) for front in fronts)):
                cpu, memory = operator.cpu, operator.memory
                for front, number in zip(fronts, chosen, strict=True):
                    cpu += front[number].cpu
                    memory += front[number].memory
                if cpu <= self._cpu and memory <= memory_left:
                    points.append(Point(cpu, memory, children, chosen))
        return _undominated(points)

    def _elsewhere(self, span: int) -> float:
        """The least memory of all sources outside this span."""
        return sum(rows for i, rows in enumerate(self._least) if not span >> i & 1)

    def planned(self, point: Point) -> PricedPlan:
        """The plan of a point."""
        shape: dict[int, tuple[int, ...]] = {}
        self._collect(point, shape)
        return self._pricing.planned(shape)

    def _collect(self, point: Point, shape: dict[int, tuple[int, ...]]) -> None:
        if point.children:
            shape[sum(point.children)] = point.children
            for child, number in zip(point.children, point.chosen, strict=True):
                self._collect(self._fronts[child][number], shape)


def _undominated(points: list[Point]) -> Front:
    front: Front = []
    for point in sorted(points, key=lambda p: (p.cpu, p.memory)):
        if not front or point.memory < front[-1].memory:
            front.append(point)
    return front


def partitions(span: int) -> Iterator[tuple[int, ...]]:
    """All ways to split a span into parts, each in increasing order; the whole as one part is the first.

    >>> sorted(partitions(0b111))
    [(1, 2, 4), (1, 6), (2, 5), (3, 4), (7,)]
    """
    if not span:
        yield ()
        return
    first = span & -span
    others = span ^ first
    subset = others
    while True:
        for rest in partitions(others ^ subset):
            yield tuple(sorted((first | subset, *rest)))
        if not subset:
            return
        subset = (subset - 1) & others
