"""Trees as the algorithms change them: for each operator's span the spans of its children.

Two changes lead from any tree to any other: `group` puts two children of an operator into a new one below it (a state
more), `dissolve` gives the children of an operator to the one above it (a state less). Each touches two operators only,
and what an operator costs depends on its children alone. So a `Pricing` remembers operators, and to price a changed
tree is to price one or two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from eddyline.optimizer.cost_model import Model
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.plans import Considered, Cost, Ordered, PricedPlan
from eddyline.plan.tree import Tree, span_of

Shape = Mapping[int, tuple[int, ...]]
"""By span of the operator, the spans of its children in increasing order."""

Order = Callable[[Model, Sequence[int]], Ordered]


class PricedOperator(NamedTuple):
    """What an operator costs, the SteMs of its children included, and the orders of its probes."""

    cpu: float
    memory: float
    ordered: Ordered


class Pricing:
    """Prices of operators, each computed once."""

    def __init__(self, model: Model, order: Order = mjoin_ordering) -> None:
        self.model, self._order = model, order
        self._known: dict[tuple[int, ...], PricedOperator] = {}
        self.effort = 0
        """Squares of the numbers of children of all operators priced: about what ordering them took."""

    @property
    def priced(self) -> int:
        """How many operators were priced."""
        return len(self._known)

    def operator(self, children: tuple[int, ...]) -> PricedOperator:
        """What an operator over these children costs."""
        known = self._known.get(children)
        if known is None:
            model, span, memory = self.model, sum(children), 0.0
            self.effort += len(children) ** 2
            ordered = self._order(model, children)
            cpu = ordered.cpu
            for child in children:
                cpu += model.stem_cpu(child, span)
                memory += model.stem_memory(child, span)
            known = self._known[children] = PricedOperator(cpu, memory, ordered)
        return known

    def cost(self, shape: Shape) -> Cost:
        """Of a whole tree, the same to the last bit in whichever order its operators are listed."""
        operators = [self.operator(children) for children in shape.values()]
        return Cost(fsum(o.cpu for o in operators), fsum(o.memory for o in operators))

    def change(self, old: Sequence[tuple[int, ...]], new: Sequence[tuple[int, ...]]) -> Cost:
        """By how much the cost changes if some operators are replaced by others."""
        before, after = [self.operator(c) for c in old], [self.operator(c) for c in new]
        return Cost(
            sum(o.cpu for o in after) - sum(o.cpu for o in before),
            sum(o.memory for o in after) - sum(o.memory for o in before),
        )

    def planned(self, shape: Shape, considered: Sequence[Considered] = ()) -> PricedPlan:
        """The shape as a plan."""
        orderings = {
            (span, child): order
            for span, children in shape.items()
            for child, order in self.operator(children).ordered.orders.items()
        }
        return PricedPlan(tree_of(shape), orderings, self.cost(shape), tuple(considered), self.priced)


def mjoin_shape(sources: int) -> Shape:
    """One operator over all."""
    return {(1 << sources) - 1: tuple(1 << i for i in range(sources))}


def shape_of(tree: Tree) -> Shape:
    """A tree as a shape.

    >>> shape_of(Tree((Tree((0, 1)), 2)))
    {3: (1, 2), 7: (3, 4)}
    """
    return {op.span: tuple(sorted(map(span_of, op.children))) for op in (*tree.below(), tree)}


def tree_of(shape: Shape) -> Tree:
    """A shape as a tree.

    >>> tree_of({7: (3, 4), 3: (1, 2)})
    Tree(children=(Tree(children=(0, 1)), 2))
    """

    def node(span: int) -> Tree:
        children = sorted(shape[span], key=lambda child: child & -child)
        return Tree(tuple(node(c) if c & (c - 1) else c.bit_length() - 1 for c in children))

    return node(max(shape))


def grouped(children: tuple[int, ...], left: int, right: int) -> tuple[int, ...]:
    """The children of an operator once two of them are one."""
    return tuple(sorted([*(c for c in children if c not in (left, right)), left | right]))


def group(shape: Shape, operator: int, left: int, right: int) -> dict[int, tuple[int, ...]]:
    """A new operator for two children of one that has more than two."""
    pair = (left, right) if left < right else (right, left)
    return {**shape, operator: grouped(shape[operator], left, right), left | right: pair}


def dissolved(shape: Shape, operator: int, child: int) -> tuple[int, ...]:
    """The children of an operator once those of an operator below it are its own."""
    return tuple(sorted([*(c for c in shape[operator] if c != child), *shape[child]]))


def dissolve(shape: Shape, operator: int, child: int) -> dict[int, tuple[int, ...]]:
    """The operator `child` becomes part of the one above it."""
    changed = {**shape, operator: dissolved(shape, operator, child)}
    del changed[child]
    return changed


def states(shape: Shape) -> list[tuple[int, int]]:
    """(operator, child) for each intermediate state."""
    return [(span, child) for span, children in shape.items() for child in children if child & (child - 1)]
