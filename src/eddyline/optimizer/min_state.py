"""min-state: a binary tree with small intermediate states.

As in the paper, the join graph is contracted edge by edge: the pair of vertices with the smallest state is joined and
becomes one vertex, until one is left. Size is measured in the bytes that our SteMs hold, not in tuples. The graph with
products is tried too, and its tree is taken if it is no worse in either resource.

The paper's greedy choice is optimal for stars if all windows are equal: the size of a state is then a product of
fan-outs and a weight that depends only on its number of sources. With different windows it is not, because a state
lives as long as its longest window. So a star of up to `star_sources` sources is solved exactly, by dynamic programming
over the sets of leaves that the centre has been joined with. Larger stars take the greedy tree, improved by exchanging
neighbours until nothing is gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import Shape


def min_state(pricing: Pricing, cartesian: bool = True) -> Shape:
    """A binary tree with small states."""
    model = pricing.model
    centre = _centre(model)
    best = contracted(model, products=False) if centre is None else _star(pricing, centre)
    if cartesian:
        other = contracted(model, products=True)
        new, old = pricing.cost(other), pricing.cost(best)
        if new.cpu <= old.cpu and new.memory <= old.memory:
            return other
    return best


def contracted(model: CostModel, products: bool) -> Shape:
    """The tree of greedy contraction, the smallest state first. With `products` any pair counts as an edge; otherwise
    products are a last resort."""
    vertices = [1 << i for i in range(model.size)]
    weights: dict[tuple[int, int], tuple[bool, float]] = {}
    shape: dict[int, tuple[int, ...]] = {}

    def weigh(left: int, right: int) -> None:
        joined = model.link(left, right)[2]
        weights[left, right] = not (products or joined), state_bytes(model, left | right)

    for at, left in enumerate(vertices):
        for right in vertices[at + 1 :]:
            weigh(left, right)
    while weights:
        left, right = min(weights, key=weights.__getitem__)
        both = left | right
        shape[both] = (left, right) if left < right else (right, left)
        vertices = [v for v in vertices if v not in (left, right)]
        weights = {pair: w for pair, w in weights.items() if not (both & pair[0] or both & pair[1])}
        for v in vertices:
            weigh(v, both)
        vertices.append(both)
    return shape


def state_bytes(model: CostModel, span: int) -> float:
    """The bytes of an intermediate state with the indexes by which all other sources reach it; 0 for the result."""
    return model.stem_memory(span, model.whole) if span != model.whole else 0.0


def _centre(model: CostModel) -> int | None:
    """The centre of a star of more than two sources: the source that is part of every predicate. None if there is
    none."""
    edges = model.workload.edges
    if model.size < 3 or len(edges) != model.size - 1:
        return None
    common = {edges[0].left, edges[0].right}.intersection(*({e.left, e.right} for e in edges))
    return common.pop() if len(common) == 1 else None


def _star(pricing: Pricing, centre: int) -> Shape:
    model = pricing.model
    leaves = [1 << i for i in range(model.size) if i != centre]
    if model.size <= pricing.tuning.star_sources:
        return _line(1 << centre, _best_line(model, 1 << centre, leaves))
    greedy = contracted(model, products=False)
    order = sorted(leaves, key=lambda leaf: sum(1 for span in greedy if span & leaf), reverse=True)
    return _line(1 << centre, _exchanged(model, 1 << centre, order))


def _line(centre: int, order: Sequence[int]) -> Shape:
    shape, span = {}, centre
    for leaf in order:
        shape[span | leaf] = (leaf, span) if leaf < span else (span, leaf)
        span |= leaf
    return shape


def _join_bytes(model: CostModel, span: int, leaf: int) -> float:
    """The memory that depends on the order when a leaf is joined to a span: the SteM of the span in that operator."""
    return model.stem_memory(span, span | leaf)


def _best_line(model: CostModel, centre: int, leaves: Sequence[int]) -> list[int]:
    """The best order of leaves. Goes forward over sets of leaves, and keeps the least bytes with which each is
    reached."""
    count = len(leaves)
    least, last = [inf] * (1 << count), [0] * (1 << count)
    least[0] = 0.0
    spans = [centre] * (1 << count)
    for number in range(1 << count):
        if number:
            lowest = number & -number
            spans[number] = spans[number ^ lowest] | leaves[lowest.bit_length() - 1]
        here, span = least[number], spans[number]
        for v, leaf in enumerate(leaves):
            then = number | 1 << v
            if then != number and (bytes_then := here + _join_bytes(model, span, leaf)) < least[then]:
                least[then], last[then] = bytes_then, v
    order, number = [], (1 << count) - 1
    while number:
        order.append(leaves[last[number]])
        number ^= 1 << last[number]
    return order[::-1]


def _exchanged(model: CostModel, centre: int, order: list[int]) -> list[int]:
    def total(line: Sequence[int]) -> float:
        span, bytes_held = centre, 0.0
        for leaf in line:
            bytes_held += _join_bytes(model, span, leaf)
            span |= leaf
        return bytes_held

    best, found = total(order), True
    while found:
        found = False
        for at in range(len(order) - 1):
            other = [*order[:at], order[at + 1], order[at], *order[at + 2 :]]
            if (new := total(other)) < best:
                order, best, found = other, new, True
    return order
