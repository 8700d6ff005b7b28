"""Prices of plans: of operators, each computed once, and of trees of operators.

The cost of an operator depends on the tuples of its children, not on how these were made. So a `Pricing` caches
operators, and pricing a changed tree means pricing one or two operators. The spans of its children identify an operator
without marks over children without marks. The algorithms look at thousands of those, so `operator` prices them in a
faster way than operator_price.py, which prices all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import NamedTuple

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.operator_price import ChildTuples, OperatorPrice
from eddyline.optimizer.plans import Considered, Cost, Ordered, Orderings, PricedPlan
from eddyline.optimizer.shapes import Shape, canonical, tree_of
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.plan.tree import Tree, state_of

Order = Callable[[CostModel, Sequence[int]], Ordered]


class PricedOperator(NamedTuple):
    """The cost of an operator, including the SteMs of its children, and the orders of its probes."""

    cpu: float
    memory: float
    ordered: Ordered


@dataclass(frozen=True)
class Node:
    """An operator of a tree, with its price."""

    tree: Tree
    price: OperatorPrice
    orders: dict[int, tuple[int, ...]]
    cost: Cost


class PricedTree:
    """The operators of a tree by their states, each after the operators below it."""

    def __init__(self, tree: Tree, nodes: dict[int, Node]) -> None:
        self.tree, self.nodes = tree, nodes

    @property
    def cost(self) -> Cost:
        """The cost of the whole tree. The order of its operators does not change a single bit of it."""
        costs = [node.cost for node in self.nodes.values()]
        return Cost(fsum(cost.cpu for cost in costs), fsum(cost.memory for cost in costs))

    @property
    def orderings(self) -> Orderings:
        """The orders of all operators that join."""
        return {
            (node.tree.span, start): order
            for node in self.nodes.values()
            if len(node.tree.children) > 1
            for start, order in node.orders.items()
        }

    @property
    def selecting(self) -> float:
        """CPU seconds per second of event time that go to selections."""
        return sum(node.price.selecting(node.orders) for node in self.nodes.values())

    @cached_property
    def above(self) -> dict[int, tuple[OperatorPrice, ChildTuples]]:
        """For the state of each child: the operator above it, and the tuples that the child gives to it."""
        return {
            state_of(child): (node.price, given)
            for node in self.nodes.values()
            for child, given in zip(node.tree.children, node.price.children, strict=True)
        }


class Pricing:
    """Prices by one model, cached."""

    def __init__(self, model: CostModel, order: Order = mjoin_ordering, tuning: OptimizerTuning = DEFAULT) -> None:
        self.model, self._order, self.tuning = model, order, tuning
        self._known: dict[tuple[int, ...], PricedOperator] = {}
        self._marked: dict[tuple[tuple[ChildTuples, ...], bool, bool], Node] = {}
        self._is_plain = not model.workload.selections and model.workload.grouping is None
        self.effort = 0
        """The sum of squared numbers of children over all operators priced: about proportional to the work of ordering
        them."""

    @property
    def priced(self) -> int:
        """How many operators were priced."""
        return len(self._known) + len(self._marked)

    def operator(self, children: tuple[int, ...]) -> PricedOperator:
        """The price of an operator without marks over children with these spans."""
        known = self._known.get(children)
        if known is None:
            model, span, memory = self.model, sum(children), 0.0
            self.effort += len(children) ** 2
            ordered = self._order(model, children)
            if self._is_plain:
                cpu = ordered.cpu
                for child in children:
                    cpu += model.stem_cpu(child, span)
                    memory += model.stem_memory(child, span)
            else:
                price = OperatorPrice(model, [self._given(child) for child in children])
                cpu, memory = _priced(price, ordered.orders)
                ordered = Ordered(cpu - sum(map(price.stem_cpu, price.children)), ordered.orders)
            known = self._known[children] = PricedOperator(cpu, memory, ordered)
        return known

    def _given(self, span: int) -> ChildTuples:
        """All tuples of a span, made by a tree without marks."""
        return ChildTuples(span, True, self.model.inside(span)) if span & (span - 1) else ChildTuples(span)

    def cost(self, shape: Shape) -> Cost:
        """The cost of a whole tree without marks. The order of its operators does not change a single bit of it."""
        operators = [self.operator(children) for children in shape.values()]
        return Cost(fsum(o.cpu for o in operators), fsum(o.memory for o in operators))

    def change(self, old: Sequence[tuple[int, ...]], new: Sequence[tuple[int, ...]]) -> Cost:
        """The change of the cost if some operators are replaced by others."""
        before, after = [self.operator(c) for c in old], [self.operator(c) for c in new]
        return Cost(
            sum(o.cpu for o in after) - sum(o.cpu for o in before),
            sum(o.memory for o in after) - sum(o.memory for o in before),
        )

    def planned(self, shape: Shape, considered: Sequence[Considered] = ()) -> PricedPlan:
        """The plan of a shape."""
        orderings = {
            (span, child): order
            for span, children in shape.items()
            for child, order in self.operator(children).ordered.orders.items()
        }
        return PricedPlan(tree_of(shape), orderings, self.cost(shape), tuple(considered), self.priced)

    def plan(self, tree: Tree, considered: Sequence[Considered] = ()) -> PricedPlan:
        """The plan of a tree, with its marks."""
        priced = self.tree(tree)
        return PricedPlan(canonical(tree), priced.orderings, priced.cost, tuple(considered), self.priced)

    def tree(self, tree: Tree) -> PricedTree:
        """The prices of all operators of a tree, with its marks."""
        nodes: dict[int, Node] = {}
        for operator in (*tree.below(), tree):
            given = [
                nodes[state_of(c)].price.given if isinstance(c, Tree) else ChildTuples(1 << c)
                for c in operator.children
            ]
            nodes[state_of(operator)] = self._node(operator, given)
        return PricedTree(tree, nodes)

    def _node(self, tree: Tree, given: Sequence[ChildTuples]) -> Node:
        key = tuple(given), tree.late, tree.grouped
        known = self._marked.get(key)
        if known is None:
            price = OperatorPrice(self.model, given, tree.late, tree.grouped)
            self.effort += len(given) ** 2
            orders = self._orders(price)
            known = self._marked[key] = Node(tree, price, orders, Cost(*_priced(price, orders)))
        return Node(tree, known.price, known.orders, known.cost)

    def _orders(self, price: OperatorPrice) -> dict[int, tuple[int, ...]]:
        spans = tuple(child.span for child in price.children)
        if len(spans) == 1:
            return {spans[0]: ()}
        plain = all(child == self._given(child.span) for child in price.children)
        if plain or len(spans) > self.tuning.marked_children:
            return self._order(self.model, tuple(sorted(spans))).orders
        return price.best_orders().orders


def _priced(price: OperatorPrice, orders: dict[int, tuple[int, ...]]) -> tuple[float, float]:
    """CPU and bytes of an operator."""
    probes = fsum(price.order_cpu(start, order) for start, order in orders.items())
    cpu = probes + price.grouping_cpu() + fsum(map(price.stem_cpu, price.children))
    return cpu, fsum(price.held(child) * price.tuple_bytes(child) for child in price.children)
