"""Fixed: a static plan. Selections as soon as they can be evaluated, in the order they are written; then the order that
the optimizer found best for its operator, or sources in the order of FROM where nobody has said anything.

An order is told for each child that may start, and tuples do not know who started them. That does not matter: what is
best after some children were reached is the same for all who reached them (see optimizer/best_ordering.py), so the
first order that begins with these children tells the next one. Where none does, because ties were broken in another
way or a step that an order has is not allowed, the next that is missing is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import or_

from eddyline.plan.plan import Probe
from eddyline.routing.policies.policy import Policy
from eddyline.routing.routing_arrays import Entry, Traffic


class Fixed(Policy):
    """The first step, in the order that was said."""

    def __init__(self) -> None:
        self._orders: dict[int, list[tuple[int, ...]]] = {}
        """By span of an operator, all of its children in the orders in which they may be reached."""

    def follow(self, orderings: Mapping[tuple[int, int], tuple[int, ...]]) -> None:
        """Take these orders from now on."""
        self._orders = {}
        for (operator, start), order in orderings.items():
            self._orders.setdefault(operator, []).append((start, *order))

    def decide(self, entry: Entry) -> Traffic:
        """The first."""
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
