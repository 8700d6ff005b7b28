"""Fixed: a static plan. First come selections, as soon as they can be evaluated, in the order in which they are
written. Then come probes in the order that the optimizer found best for the operator; without one, in the order of
FROM.

The optimizer gives an order for each child that may start, and tuples do not know which child started them. That does
not matter: once some children are reached, the best continuation is the same whichever of them started (see
optimizer/best_ordering.py). So the first order that begins with the reached children gives the next one. If no order
does, because ties were broken differently or a step of an order is not allowed, the next missing child of the first
order is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import or_

from eddyline.plan.steps import Probe
from eddyline.routing.policies.policy import Policy
from eddyline.routing.routing_arrays import Entry, Traffic


class Fixed(Policy):
    """Takes the first step of the given order."""

    def __init__(self) -> None:
        self._orders: dict[int, list[tuple[int, ...]]] = {}
        """For the span of each operator: all its children, in the orders in which they may be reached."""

    def follow(self, orderings: Mapping[tuple[int, int], tuple[int, ...]]) -> None:
        """Use these orders from now on."""
        self._orders = {}
        for (operator, start), order in orderings.items():
            self._orders.setdefault(operator, []).append((start, *order))

    def decide(self, entry: Entry) -> Traffic:
        """The first allowed step of the order."""
        first, span = entry.steps[0], entry.signature[0]
        inside = [operator for operator in self._orders if not span & ~operator and span != operator]
        if not inside or not isinstance(first.step, Probe):
            return first
        orders = self._orders[min(inside, key=int.bit_count)]
        alike = [order for order in orders if span in accumulate(order, or_)]
        for child in (*alike, *orders)[0]:
            for traffic in entry.steps:
                if isinstance(traffic.step, Probe) and traffic.step.span == child:
                    return traffic
        return first
