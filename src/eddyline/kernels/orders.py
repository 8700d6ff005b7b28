"""The cheapest order of a tuple's remaining steps, judged on a sample of tuples.

Modules 0..m-1 (probes and selections) are still to be taken. For some modules we know how many tuples each makes of
every sampled tuple (`counts[tuple, column[module]]`: 0 or 1 for a selection, the matches for a probe), so products of
columns show how modules are correlated; for the other modules we know only the mean (`level`). A module costs `cost`
for each tuple that it takes and `each` for each tuple that it makes. A module may be taken if it is in `first`, or
after one module of its `any_of` or all modules of its `all_of`.

The sample is small, and the traffic on the current route is large, so selectivities measured on that route are
believed: module by module along the route, the weights of sampled tuples that pass and that fail, and the matches of
probes, are scaled until the sample shows the measured selectivity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel

EXACT = 8
"""With at most this many modules all orders are compared; with more, the module of least rank comes next."""


@kernel
def believe(
    counts: NDArray[np.float64],
    weights: NDArray[np.float64],
    route: NDArray[np.int64],
    selectivity: NDArray[np.float64],
    is_selection: NDArray[np.bool_],
) -> None:
    """Scale `weights` and `counts` so that the columns `route`, in this order, have these selectivities (negative: not
    known), each among the tuples that the columns before it let through."""
    n = weights.size
    alive = weights.copy()
    for place in range(route.size):
        column = route[place]
        total = 0.0
        passed = 0.0
        for i in range(n):
            total += alive[i]
            passed += alive[i] * counts[i, column]
        said = selectivity[place]
        if said >= 0.0 and passed > 0.0:
            seen = passed / total
            if not is_selection[column]:
                scale = min(max(said / seen, 0.125), 8.0)
                for i in range(n):
                    if alive[i] > 0.0:  # the module was not measured on tuples that failed before it
                        counts[i, column] *= scale
            elif seen < 1.0:
                said = min(max(said, 0.001), 0.999)
                for i in range(n):
                    scale = said / seen if counts[i, column] > 0.0 else (1.0 - said) / (1.0 - seen)
                    if alive[i] > 0.0:
                        alive[i] *= scale
                        weights[i] *= scale
        for i in range(n):
            alive[i] *= counts[i, column]


@kernel
def cheapest(
    counts: NDArray[np.float64],
    weights: NDArray[np.float64],
    column: NDArray[np.int64],
    level: NDArray[np.float64],
    cost: NDArray[np.float64],
    each: NDArray[np.float64],
    first: int,
    any_of: NDArray[np.int64],
    all_of: NDArray[np.int64],
    values: NDArray[np.float64],
    order: NDArray[np.int64],
) -> int:
    """Fill `order` with the cheapest order and return its length (modules that can never be taken are left out). Fill
    `values[m]` with the cost of a tuple that takes module m first and the best order after it; infinite if m may not be
    taken first."""
    modules = cost.size
    if modules > EXACT:
        return _greedy(counts, weights, column, level, cost, each, first, any_of, all_of, values, order)
    n = weights.size
    sets = 1 << modules
    reach = np.empty(sets)
    alive = np.empty((sets, n))
    factor = np.ones(sets)
    total = 1e-300
    for i in range(n):  # assigning a whole row would make Numba compile its shape check, which takes seconds
        alive[0, i] = weights[i]
        total += weights[i]
    reach[0] = 1.0
    for s in range(1, sets):
        m = 0
        while not s >> m & 1:
            m += 1
        rest = s & (s - 1)
        factor[s] = factor[rest]
        if column[m] >= 0:
            mean = 0.0
            for i in range(n):
                alive[s, i] = alive[rest, i] * counts[i, column[m]]
                mean += alive[s, i]
        else:
            factor[s] *= level[m]
            mean = 0.0
            for i in range(n):
                alive[s, i] = alive[rest, i]
                mean += alive[s, i]
        reach[s] = factor[s] * (mean / total if n else 1.0)
    value = np.zeros(sets)
    best = np.full(sets, -1)
    for s in range(sets - 2, -1, -1):
        least = np.inf
        for m in range(modules):
            if not s >> m & 1 and (first >> m & 1 or any_of[m] & s or (all_of[m] and all_of[m] & s == all_of[m])):
                through = reach[s] * cost[m] + reach[s | 1 << m] * each[m] + value[s | 1 << m]
                if s == 0:
                    values[m] = through
                if through < least:
                    least = through
                    best[s] = m
            elif s == 0:
                values[m] = np.inf
        value[s] = least if best[s] >= 0 else 0.0
    s = 0
    length = 0
    while s < sets - 1 and best[s] >= 0:
        order[length] = best[s]
        length += 1
        s |= 1 << best[s]
    return length


@kernel
def _greedy(
    counts: NDArray[np.float64],
    weights: NDArray[np.float64],
    column: NDArray[np.int64],
    level: NDArray[np.float64],
    cost: NDArray[np.float64],
    each: NDArray[np.float64],
    first: int,
    any_of: NDArray[np.int64],
    all_of: NDArray[np.int64],
    values: NDArray[np.float64],
    order: NDArray[np.int64],
) -> int:
    """As `cheapest`, but for each first module the others are ordered by rank, the least first: (selectivity among the
    remaining tuples - 1) / cost."""
    modules, n = cost.size, weights.size
    least = np.inf
    length = 0
    trial = np.empty(modules, np.int64)
    for begin in range(modules):
        values[begin] = np.inf
        if not first >> begin & 1:
            continue
        alive = weights.copy()
        total = 1e-300
        for i in range(n):
            total += alive[i]
        left = total
        factor = 1.0
        taken = 0
        size = 0
        value = 0.0
        while True:
            best = -1
            best_rank = np.inf
            best_selectivity = 1.0
            for m in range(modules):
                if taken >> m & 1 or (size == 0 and m != begin):
                    continue
                if not (first >> m & 1 or any_of[m] & taken or (all_of[m] and all_of[m] & taken == all_of[m])):
                    continue
                selectivity = level[m]
                if column[m] >= 0:
                    passed = 0.0
                    for i in range(n):
                        passed += alive[i] * counts[i, column[m]]
                    selectivity = passed / left if left > 0.0 else 0.0
                rank = (selectivity - 1.0) / (cost[m] + selectivity * each[m])
                if rank < best_rank:
                    best, best_rank, best_selectivity = m, rank, selectivity
            if best < 0:
                break
            value += left / total * factor * (cost[best] + best_selectivity * each[best])
            if column[best] >= 0:
                left = 0.0
                for i in range(n):
                    alive[i] *= counts[i, column[best]]
                    left += alive[i]
            else:
                factor *= best_selectivity
            taken |= 1 << best
            trial[size] = best
            size += 1
        values[begin] = value
        if value < least:
            least = value
            length = size
            for i in range(size):
                order[i] = trial[i]
    return length


@kernel
def price(
    counts: NDArray[np.float64],
    column: NDArray[np.int64],
    level: NDArray[np.float64],
    cost: NDArray[np.float64],
    each: NDArray[np.float64],
    order: NDArray[np.int64],
    prices: NDArray[np.float64],
) -> None:
    """Fill `prices` with the cost of each sampled tuple when it takes the modules in this order."""
    for i in range(prices.size):
        alive = 1.0
        price = 0.0
        for m in order:
            price += alive * cost[m]
            alive *= counts[i, column[m]] if column[m] >= 0 else level[m]
            price += alive * each[m]
        prices[i] = price


@kernel
def judge(
    counts: NDArray[np.float64],
    ages: NDArray[np.int64],
    half: float,
    route: NDArray[np.int64],
    selectivity: NDArray[np.float64],
    is_selection: NDArray[np.bool_],
    done: NDArray[np.int64],
    column: NDArray[np.int64],
    level: NDArray[np.float64],
    cost: NDArray[np.float64],
    each: NDArray[np.float64],
    first: int,
    any_of: NDArray[np.int64],
    all_of: NDArray[np.int64],
    current: NDArray[np.int64],
    order: NDArray[np.int64],
) -> tuple[int, float, float, float]:
    """Compare the cheapest order with the order `current`. A sample's weight halves every `half` rows of its age; only
    samples that pass the columns `done` count; the selectivities measured on `route` after `done` are believed. Fills
    `order` with the cheapest order, and returns its length, its cost, how much less that is than the cost of `current`,
    and the standard error of that difference."""
    counts = counts.copy()
    weights = np.exp2(-ages / half)
    for place in range(done.size):
        for i in range(weights.size):
            weights[i] *= counts[i, done[place]]
    believe(counts, weights, route, selectivity, is_selection)
    values = np.empty(cost.size)
    length = cheapest(counts, weights, column, level, cost, each, first, any_of, all_of, values, order)
    if weights.size == 0:
        counts, weights = np.zeros((1, counts.shape[1])), np.ones(1)
    best, now = np.empty(weights.size), np.empty(weights.size)
    price(counts, column, level, cost, each, order[:length], best)
    price(counts, column, level, cost, each, current, now)
    total = weights.sum() + 1e-300
    gain = (weights * (now - best)).sum() / total
    error = np.sqrt((weights**2 * (now - best - gain) ** 2).sum()) / total
    return length, (weights * best).sum() / total, gain, error
