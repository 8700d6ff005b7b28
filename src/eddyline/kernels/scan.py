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
    before: NDArray[np.int64],
    min_live: int,
    passed: NDArray[np.int64],
    tuples: int,
    at: int,
    chain: int,
    out_tuple: NDArray[np.int64],
    out_row: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Every row min_live..before-1 with low <= times[row] <= high (no bound where they are empty; `before` has one
    element if it is the same for all), for tuples at.. of a packet of `tuples`. `passed[0]` counts the rows passed over
    because they were too new. Returns (n, at, chain) as the hash probe does; `chain` is the row to continue with, -1 to
    begin."""
    timed = low.size > 0
    each = before.size > 1
    end = before[0]
    room = out_tuple.size
    n = too_new = 0
    for i in range(at, tuples):
        first = min_live if chain < 0 else chain
        chain = -1
        if each:
            end = before[i]
        for row in range(first, end):
            if timed and times[row] > high[i]:
                too_new += 1
            elif not timed or times[row] >= low[i]:
                if n == room:
                    passed[0] += too_new
                    return n, i, row
                out_tuple[n] = i
                out_row[n] = row
                n += 1
    passed[0] += too_new
    return n, tuples, -1


@kernel
def first_at_least(values: NDArray[np.int64], first: int, last: int, bound: int) -> int:
    """The first row in first..last-1 whose value is at least `bound`, or `last`: expiry may go up to it. Every row is
    passed once in its life, so expiry costs a constant amount per row."""
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
    first: bool,
) -> None:
    """Narrow each tuple's time interval to at most `back` before and at most `on` after one of its components. For the
    `first` component the interval is set instead."""
    if first:
        for i in range(rows.size):
            t = times[rows[i]]
            low[i] = t - back
            high[i] = t + on
    else:
        for i in range(rows.size):
            t = times[rows[i]]
            low[i] = max(low[i], t - back)
            high[i] = min(high[i], t + on)


@kernel
def apart(
    keep: NDArray[np.bool_],
    times: NDArray[np.int64],
    rows: NDArray[np.int64],
    other_times: NDArray[np.int64],
    other_rows: NDArray[np.int64],
    most: int,
    other_most: int,
) -> None:
    """Keep the pairs of rows in which the time of the row is at most `most` after and at most `other_most` before the
    time of the other row."""
    for i in range(rows.size):
        if keep[i]:
            later = times[rows[i]] - other_times[other_rows[i]]
            keep[i] = later <= most and -later <= other_most
