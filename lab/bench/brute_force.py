"""The slow twins: they enumerate every order and every tree. Tests and acceptance bars compare the algorithms with
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from eddyline.optimizer.cost_model import HASH, CostModel
from eddyline.optimizer.exhaustive import partitions
from eddyline.optimizer.plans import Cost


def least_order(model: CostModel, children: Sequence[int], start: int) -> float:
    """The CPU of the best order for one child, found by enumerating all orders that the engine can run."""
    turnover, match = model.turnover(start), model.costs.match

    def go_on(reached: int, left: list[int], spent: float) -> float:
        if not left:
            return spent
        least = inf
        for child in _offered(model, reached, left):
            then = reached | child
            probe = model.probe(model.link(reached, child)[1], child)
            step = model.live(reached) * probe + model.live(then) * match
            least = min(least, go_on(then, [c for c in left if c != child], spent + turnover * step))
        return least

    return go_on(start, [c for c in children if c != start], 0.0)


def _offered(model: CostModel, reached: int, left: list[int]) -> list[int]:
    """The children that the engine offers next: those probed by key; else those linked by a predicate; else all."""
    links = {child: model.link(reached, child) for child in left}
    keyed = [child for child in left if links[child][1] == HASH]
    return keyed or [child for child in left if links[child][2]] or left


def least_orders(model: CostModel, children: Sequence[int]) -> float:
    """The CPU of the best orders for all children of an operator."""
    return sum(least_order(model, children, start) for start in children)


def all_trees(model: CostModel) -> list[Cost]:
    """The costs of all hybrid trees, each with its best orders."""
    known: dict[int, list[Cost]] = {}

    def trees(span: int) -> list[Cost]:
        if not span & (span - 1):
            return [Cost(0.0, 0.0)]
        if span not in known:
            known[span] = [
                cost for children in partitions(span) if len(children) > 1 for cost in _combined(model, children, trees)
            ]
        return known[span]

    return trees(model.whole)


def _combined(model: CostModel, children: Sequence[int], trees: Callable[[int], list[Cost]]) -> list[Cost]:
    span = sum(children)
    cpu = least_orders(model, children) + sum(model.stem_cpu(c, span) for c in children)
    costs = [Cost(cpu, sum(model.stem_memory(c, span) for c in children))]
    for child in children:
        costs = [Cost(a.cpu + b.cpu, a.memory + b.memory) for a in costs for b in trees(child)]
    return costs


def least_binary_memory(model: CostModel) -> float:
    """The least memory of all binary trees without products, found by enumeration."""
    known: dict[int, list[float]] = {}

    def trees(span: int) -> list[float]:
        if not span & (span - 1):
            return [0.0]
        if span not in known:
            known[span] = [
                model.stem_memory(left, span) + model.stem_memory(right, span) + a + b
                for left, right in _splits(model, span)
                for a in trees(left)
                for b in trees(right)
            ]
        return known[span]

    return min(trees(model.whole))


def _splits(model: CostModel, span: int) -> list[tuple[int, int]]:
    first = span & -span
    others = span ^ first
    left = [first | part for part in range(others) if not part & ~others]
    return [(half, span ^ half) for half in left if model.link(half, span ^ half)[2]]
