"""The best orders of an operator, products included, by dynamic programming over sets of its children.

All children that start meet the same sizes (see cost_model.py): what remains to be done from a set of children on is
the same for each of them, but for a factor. So one table, from the whole set down, serves all. It has 2^m entries for m
children. Selections are priced in the orders that were found, and do not choose among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from eddyline.optimizer.cost_model import Model
from eddyline.optimizer.plans import Ordered


def best_ordering(model: Model, children: Sequence[int]) -> Ordered:
    """The best orders there are, products included."""
    count, match = len(children), model.costs.match
    full = (1 << count) - 1
    spans = [0] * (full + 1)
    live = [0.0] * (full + 1)
    for number in range(1, full + 1):
        first = number & -number
        spans[number] = spans[number ^ first] | children[first.bit_length() - 1]
        live[number] = model.live(spans[number])
    probes = [[model.probe(access, child) for access in range(3)] for child in children]
    rest, following = [0.0] * (full + 1), [0] * (full + 1)
    for reached in range(full - 1, 0, -1):
        least, chosen, here = inf, 0, live[reached]
        for v in range(count):
            if not reached >> v & 1:
                then = reached | 1 << v
                access = model.link(spans[reached], children[v])[1]
                cpu = here * probes[v][access] + live[then] * match + rest[then]
                if cpu < least:
                    least, chosen = cpu, v
        rest[reached], following[reached] = least, chosen
    orders, total = {}, 0.0
    for v, child in enumerate(children):
        total += rest[1 << v] * model.turnover(child)
        order, reached = [], 1 << v
        while reached != full:
            order.append(children[following[reached]])
            reached |= 1 << following[reached]
        orders[child] = tuple(order)
        total += model.selection_cpu(child, order)
    return Ordered(total, orders)
