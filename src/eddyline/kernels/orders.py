"""The cheapest order of what is left to do for a tuple, judged on a sample.

Modules 0..m-1 are left. For some of them it is known, tuple by tuple of a sample, how many tuples each makes of it
(`counts[tuple, column[module]]`: 0 or 1 for a selection, matches for a probe), so products of columns see how modules
go together; of the others only the mean is known (`level`). A module costs `cost` for each tuple and `each` for every
one that it makes. It may be taken if it is in `first`, or when one of `any_of` or all of `all_of` have been.

The sample is small, the traffic on the route of now large: what that says about the modules on it is believed. Going
along the route, among the tuples that came so far the weights of those that pass and of those that fail are scaled so
that the sample says the same, and the matches of probes likewise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel

EXACT = 8
"""Up to so many modules all orders are compared; beyond, the next one is always the one of least rank."""


@kernel
def believe(
    counts: NDArray[np.float64],
    weights: NDArray[np.float64],
    route: NDArray[np.int64],
    selectivity: NDArray[np.float64],
    is_selection: NDArray[np.bool_],
) -> None:
    """Scale `weights` and `counts` so that the columns `route`, in this order, have these selectivities (negative: not
    known), each among what the ones before let through."""
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
                    if alive[i] > 0.0:  # of the others it says nothing
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
    """Fill `order` with the cheapest order (its length is returned: modules that can never be taken are left out) and
    `values[m]` with what a tuple costs if it takes module m first and the best order then, infinite if it may not."""
    modules = cost.size
    if modules > EXACT:
        return _greedy(counts, weights, column, level, cost, each, first, any_of, all_of, values, order)
    n = weights.size
    sets = 1 << modules
    reach = np.empty(sets)
    alive = np.empty((sets, n))
    factor = np.ones(sets)
    total = 1e-300
    for i in range(n):  # a row at once would compile for seconds: what to say if its length were another
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
    """The same by rank, for each first module: (selectivity among what is left - 1) / cost, the least first."""
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
    """What each sample costs that takes the modules in this order."""
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
    """Everything at once: samples of these ages count half after `half` rows; those that came through the columns
    `done` count; the traffic on `route`, from there on, is believed. Fills `order` with the cheapest, and returns its
    length, its cost, how much less that is than the cost of the order `current`, and the standard error of that."""
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
