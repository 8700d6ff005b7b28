"""Refinement: small changes to a plan that is not qualified yet.

The paper's algorithms go in one direction only, towards trees or towards the multi-way join, so they never reconsider a
state that was chosen early. Alone they miss more than two in a hundred of the qualified plans that exhaustive search
finds. A neighbour of a tree is the result of one `group`, of one `dissolve`, or of a `dissolve` followed by a `group`
in the operator that grew (in a binary tree: a rotation). This is a best-first search: of all known trees, the one with
the smallest excess (the larger share of a limit) is next, and its neighbours become known, until one is qualified or
the effort is spent.

The effort counts each neighbour that is looked at and, for each operator that is priced for the first time, the square
of its number of children, which is about the work of mjoin-ordering. So the result does not depend on the clock.
Nothing is tried if the least that every plan needs is already above a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.plans import Cost, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import Shape, dissolved, grouped, states

Change = tuple[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]]
"""The children of the operators that are removed, and of those that are added."""


_NOTHING: Change = (), ()


def refine(pricing: Pricing, starts: Sequence[Shape], limits: ResourceLimits) -> Iterator[tuple[Shape, Cost]]:
    """The trees that were looked at, in the order of the search."""
    if not limits.allow(_least(pricing.model)):
        return
    tuning, is_small = pricing.tuning, pricing.model.size <= pricing.tuning.small_sources
    most = pricing.effort + (tuning.refine_effort_small if is_small else tuning.refine_effort)
    seen: set[frozenset[tuple[int, ...]]] = set()
    known = [(limits.excess(pricing.cost(shape)), number, shape, _NOTHING) for number, shape in enumerate(starts)]
    heapify(known)
    number = len(known)
    while known and pricing.effort < most:
        _, _, shape, change = heappop(known)
        shape = _changed(shape, change)
        if (key := frozenset(shape.values())) in seen:
            continue
        seen.add(key)
        cost = pricing.cost(shape)
        if change is not _NOTHING:
            yield shape, cost
        if limits.allow(cost):
            return
        for change in _changes(shape):
            number += 1
            heappush(known, (limits.excess(_after(pricing, cost, change)), number, shape, change))
            if pricing.effort > most:
                break


def _least(model: CostModel) -> Cost:
    """The least cost of any plan: rows are held, built and released, and results are made."""
    sources, costs = model.workload.sources, model.costs
    cpu = sum(source.rate for source in sources) * (costs.insert_row + costs.delete_row)
    memory = sum(source.rows * source.row_bytes for source in sources)
    return Cost(cpu + model.rate(model.whole) * costs.match, memory)


def neighbours(pricing: Pricing, shape: Shape) -> Iterator[tuple[Shape, Cost]]:
    """All trees that result from one change of a tree, with their costs."""
    for change in _changes(shape):
        changed = _changed(shape, change)
        yield changed, pricing.cost(changed)


def _after(pricing: Pricing, cost: Cost, change: Change) -> Cost:
    more = pricing.change(*change)
    pricing.effort += 1
    return Cost(cost.cpu + more.cpu, cost.memory + more.memory)


def _changed(shape: Shape, change: Change) -> Shape:
    old, new = change
    return {**{span: c for span, c in shape.items() if c not in old}, **{sum(c): c for c in new}}


def _changes(shape: Shape) -> Iterator[Change]:
    for operator, child in states(shape):
        old, new = [shape[operator], shape[child]], dissolved(shape, operator, child)
        yield old, [new]
        for pair in _pairs(new):
            if sum(pair) != child:
                yield old, [grouped(new, *pair), pair]
    for children in shape.values():
        for pair in _pairs(children):
            yield [children], [grouped(children, *pair), pair]


def _pairs(children: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    if len(children) > 2:
        for at, left in enumerate(children):
            for right in children[at + 1 :]:
                yield left, right
