"""The list: look at every live row. For tiny SteMs, cross products, and predicates that no index serves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel


@kernel
def probe(
    times: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    before: int,
    min_live: int,
    tuples: int,
    at: int,
    chain: int,
    out_tuple: NDArray[np.int64],
    out_row: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Every row min_live..before-1 with low <= times[row] <= high (no bound where they are empty), for tuples at.. of a
    packet of `tuples`. Returns (n, at, chain) as the hash probe does; `chain` is the row to go on with, -1 to begin."""
    timed = low.size > 0
    room = out_tuple.size
    n = 0
    for i in range(at, tuples):
        first = min_live if chain < 0 else chain
        chain = -1
        for row in range(first, before):
            if not timed or (low[i] <= times[row] <= high[i]):
                if n == room:
                    return n, i, row
                out_tuple[n] = i
                out_row[n] = row
                n += 1
    return n, tuples, -1


@kernel
def first_at_least(values: NDArray[np.int64], first: int, last: int, bound: int) -> int:
    """The first row in first..last-1 whose value is at least `bound`, or `last`: how far expiry may go. Every row is
    passed once in its life, so expiry costs the same however many rows have expired."""
    row = first
    while row < last and values[row] < bound:
        row += 1
    return row


@kernel
def narrow(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    times: NDArray[np.int64],
    rows: NDArray[np.int64],
    back: int,
    on: int,
) -> None:
    """Tighten each tuple's time interval by one component: at most `back` before it and at most `on` after it."""
    for i in range(rows.size):
        t = times[rows[i]]
        low[i] = max(low[i], t - back)
        high[i] = min(high[i], t + on)
