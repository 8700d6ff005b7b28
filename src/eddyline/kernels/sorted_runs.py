"""Range lookup in one sorted run: for each tuple the rows whose key lies between two bounds, both included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel


@kernel
def probe(
    keys: NDArray[np.int64],
    key_rows: NDArray[np.int64],
    times: NDArray[np.int64],
    least: NDArray[np.int64],
    most: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    before: NDArray[np.int64],
    min_live: int,
    passed: NDArray[np.int64],
    at: int,
    place: int,
    out_tuple: NDArray[np.int64],
    out_row: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Matches in a run with least[i] <= key <= most[i], min_live <= row < before[i] and low[i] <= times[row] <=
    high[i]; `before` has one element if it is the same for all. `passed[0]` counts the rows passed over because they
    were too new. Returns (n, at, place); `place` is where to continue in the run, -1 to search.
    """
    timed = low.size > 0
    each = before.size > 1
    end = before[0]
    room = out_tuple.size
    n = too_new = 0
    for i in range(at, least.size):
        p = place if place >= 0 else np.searchsorted(keys, least[i])
        place = -1
        if each:
            end = before[i]
        while p < keys.size and keys[p] <= most[i]:
            row = key_rows[p]
            if row >= end or (timed and times[row] > high[i]):
                too_new += 1
            elif row >= min_live and (not timed or times[row] >= low[i]):
                if n == room:
                    passed[0] += too_new
                    return n, i, p
                out_tuple[n] = i
                out_row[n] = row
                n += 1
            p += 1
    passed[0] += too_new
    return n, least.size, -1
