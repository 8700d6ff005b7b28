"""state-selection: from the multi-way join towards trees, a state at a time, until the plan is qualified.

A candidate is a pair of children of the top operator; joining them below it makes a state, and tuples of the others
need not join them again. The paper takes the pair with the best ratio of frequency (how often the edge is in the
orderings) to weight (how large the state is) that lowers the CPU at all. We know more: where a pair is probed one after
the other, the orderings say what these probes cost, and that is what a state would save. So candidates are ordered by
the CPU that they should save per byte, the first few are priced, and the best of them is taken.

After each selection operators are merged: if a state below costs both CPU and memory to keep, it goes. This may make
operators of three and more children below the top.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.min_state import state_bytes
from eddyline.optimizer.plans import Cost
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import Shape, dissolve, dissolved, group, grouped


def state_selection(pricing: Pricing, shape: Shape) -> Iterator[tuple[Shape, Cost]]:
    """The trees it comes to after each selection, each with less CPU; the caller stops when one will do."""
    top = max(shape)
    while len(shape[top]) > 2:
        pair = _best(pricing, shape[top])
        if pair is None:
            return
        shape = merged(pricing, group(shape, top, *pair), sum(pair))
        yield shape, pricing.cost(shape)


def _best(pricing: Pricing, children: tuple[int, ...]) -> tuple[int, int] | None:
    """The pair that saves most CPU per byte among the first that save any."""
    best, best_ratio = None, 0.0
    for number, pair in enumerate(_candidates(pricing, children)):
        if number >= pricing.tuning.candidates and best is not None:
            break
        change = pricing.change([children], [grouped(children, *pair), pair])
        ratio = -change.cpu / max(change.memory, 1e-9)
        if ratio > best_ratio:
            best, best_ratio = pair, ratio
    return best


def _candidates(pricing: Pricing, children: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs by the CPU per byte that a state for them should save."""
    model = pricing.model
    saved: dict[tuple[int, int], float] = {}
    for start, order in pricing.operator(children).ordered.orders.items():
        reached, turnover = start, model.turnover(start)
        for left, right in pairwise(order):
            pair = (left, right) if left < right else (right, left)
            saved[pair] = saved.get(pair, 0.0) + turnover * _spared(model, reached, left, right)
            reached |= left
    for at, left in enumerate(children):
        for right in children[at + 1 :]:
            if model.link(left, right)[2]:
                saved.setdefault((left, right), 0.0)
    ratios = {
        pair: (gain - _kept(model, pair[0] | pair[1])) / max(state_bytes(model, pair[0] | pair[1]), 1e-9)
        for pair, gain in saved.items()
    }
    return sorted(ratios, key=ratios.__getitem__, reverse=True)


def _spared(model: CostModel, reached: int, left: int, right: int) -> float:
    """What two probes one after the other cost above one probe of their state, if tuples come once a second."""
    here, between = model.live(reached), model.live(reached | left)
    probes = here * model.probe(model.link(reached, left)[1], left)
    probes += between * (model.costs.match + model.probe(model.link(reached | left, right)[1], right))
    both = left | right
    return probes - here * model.probe(model.link(reached, both)[1], both)


def _kept(model: CostModel, span: int) -> float:
    """CPU to keep a state."""
    return model.stem_cpu(span, model.whole)


def merged(pricing: Pricing, shape: Shape, operator: int) -> Shape:
    """PricedOperator merging: the operators below one become part of it where that costs no more of either resource."""
    for child in shape[operator]:
        if child & (child - 1):
            change = pricing.change([shape[operator], shape[child]], [dissolved(shape, operator, child)])
            if change.cpu <= 0 and change.memory <= 0:
                return merged(pricing, dissolve(shape, operator, child), operator)
    return shape
