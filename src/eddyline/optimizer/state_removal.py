"""state-removal: from a tree towards the multi-way join, a state at a time, until the plan is qualified.

Each step dissolves the operator whose state has the smallest ratio of additional CPU to freed memory. The ratio may be
negative: keeping such a state costs more CPU than computing its tuples again, and memory as well. Where memory is freed
at no additional CPU, the state whose removal saves most CPU is best; so among negative ratios the CPU alone decides.
Memory may also grow, if the operator above then needs more indexes; such a state is removed last.

Prices of operators are cached (pricing.py): a step changes two operators, and only their neighbours are new.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from eddyline.optimizer.plans import Cost
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import Shape, dissolve, dissolved, states


def state_removal(pricing: Pricing, shape: Shape) -> Iterator[tuple[Shape, Cost]]:
    """The trees after each removal; the last is a multi-way join. The caller stops when a tree is good enough."""
    while len(shape) > 1:
        changes = {
            (operator, child): pricing.change([shape[operator], shape[child]], [dissolved(shape, operator, child)])
            for operator, child in states(shape)
        }
        shape = dissolve(shape, *min(changes, key=lambda state: _quality(changes[state])))
        yield shape, pricing.cost(shape)


def _quality(change: Cost) -> tuple[bool, float]:
    if change.cpu <= 0:
        return False, change.cpu
    return True, change.cpu / -change.memory if change.memory < 0 else inf
