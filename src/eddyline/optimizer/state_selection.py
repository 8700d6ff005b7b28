"""state-selection: from the multi-way join towards trees, a state at a time, until the plan is qualified.

A candidate is a pair of children of the top operator. An operator for the pair below the top makes a state, and tuples
of the other children no longer join the pair themselves. The paper takes, of the pairs that lower the CPU at all, the
one with the best ratio of frequency (how often the edge is in the orderings) to weight (how large the state is). We
know more: where a pair is probed one after the other, the orderings tell what these probes cost, and a state would save
that. So candidates are sorted by the CPU per byte that they should save, the first few are priced, and the best of them
is taken.

After each selection operators are merged: a state below the new operator is removed if keeping it costs both CPU and
memory. This may make operators of three and more children below the top.
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
    """The trees after each selection, each with less CPU. The caller stops when a tree is good enough."""
    top = max(shape)
    while len(shape[top]) > 2:
        pair = _best(pricing, shape[top])
        if pair is None:
            return
        shape = merged(pricing, group(shape, top, *pair), sum(pair))
        yield shape, pricing.cost(shape)


def _best(pricing: Pricing, children: tuple[int, ...]) -> tuple[int, int] | None:
    """The pair that saves most CPU per byte among the first candidates that save any; None if none does."""
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
    """The pairs, sorted by the CPU per byte that a state for them should save."""
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
    """The cost of two consecutive probes minus the cost of one probe of their state, if tuples are replaced once a
    second."""
    here, between = model.live(reached), model.live(reached | left)
    probes = here * model.probe(model.link(reached, left)[1], left)
    probes += between * (model.costs.match + model.probe(model.link(reached | left, right)[1], right))
    both = left | right
    return probes - here * model.probe(model.link(reached, both)[1], both)


def _kept(model: CostModel, span: int) -> float:
    """CPU to keep a state up to date."""
    return model.stem_cpu(span, model.whole)


def merged(pricing: Pricing, shape: Shape, operator: int) -> Shape:
    """Operator merging: dissolve the operators below one where that costs no more of either resource."""
    for child in shape[operator]:
        if child & (child - 1):
            change = pricing.change([shape[operator], shape[child]], [dissolved(shape, operator, child)])
            if change.cpu <= 0 and change.memory <= 0:
                return merged(pricing, dissolve(shape, operator, child), operator)
    return shape
