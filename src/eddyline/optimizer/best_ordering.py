"""The best orders of an operator, by dynamic programming over sets of its children.

All starting children meet the same sizes (see cost_model.py): from a set of children on, the remaining work is the same
for each of them, except for a factor. So one table, filled from the whole set down, serves all children. It has 2^m
entries for m children.

Only orders that the engine can run are priced (`CostModel.runnable`): where a child can be probed by key, the engine
offers no product. If it did, the router would have to try products in every operator, and each makes as many tuples as
a SteM holds. Where a product with a small table pays, a state for it below the operator does the same work, and that
state is priced. Selections do not influence the choice among orders; they are priced in the orders that were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.plans import Ordered


def best_ordering(model: CostModel, children: Sequence[int]) -> Ordered:
    """The best orders for children with these spans."""
    return best_orders(model, children, span_sizes(model, children), [model.held(child) for child in children])


def span_sizes(model: CostModel, children: Sequence[int]) -> list[float]:
    """The number of live tuples for each set of children (a bit mask of their numbers)."""
    spans = _spans(children)
    return [0.0, *(model.live(span) for span in spans[1:])]


def best_orders(model: CostModel, children: Sequence[int], sizes: Sequence[float], held: Sequence[float]) -> Ordered:
    """The best orders if each set of children has `sizes` live tuples, and the SteM of each child holds `held`
    tuples."""
    count, match, costs = len(children), model.costs.match, model.costs
    full, spans = (1 << count) - 1, _spans(children)
    probes = [(costs.probe_hash, costs.probe_range, costs.probe_list_row * rows) for rows in held]
    rest, following = [0.0] * (full + 1), [0] * (full + 1)
    for reached in range(full - 1, 0, -1):
        least, chosen, here = inf, 0, sizes[reached]
        missing = [v for v in range(count) if not reached >> v & 1]
        for number in model.runnable(spans[reached], [children[v] for v in missing]):
            v = missing[number]
            then = reached | 1 << v
            access = model.link(spans[reached], children[v])[1]
            cpu = here * probes[v][access] + sizes[then] * match + rest[then]
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
    return Ordered(total, orders)


def _spans(children: Sequence[int]) -> list[int]:
    """The span of each set of children."""
    spans = [0] * (1 << len(children))
    for number in range(1, len(spans)):
        first = number & -number
        spans[number] = spans[number ^ first] | children[first.bit_length() - 1]
    return spans
