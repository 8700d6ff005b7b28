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
    before: int,
    min_live: int,
    at: int,
    place: int,
    out_tuple: NDArray[np.int64],
    out_row: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Matches in a run (keys ascending, key_rows their rows) with least[i] <= key <= most[i], min_live <= row < before
    and low[i] <= times[row] <= high[i]. Returns (n, at, place); `place` is where to go on in the run, -1 to search."""
    timed = low.size > 0
    room = out_tuple.size
    n = 0
    for i in range(at, least.size):
        p = place if place >= 0 else np.searchsorted(keys, least[i])
        place = -1
        while p < keys.size and keys[p] <= most[i]:
            row = key_rows[p]
            if min_live <= row < before and (not timed or (low[i] <= times[row] <= high[i])):
                if n == room:
                    return n, i, p
                out_tuple[n] = i
                out_row[n] = row
                n += 1
            p += 1
    return n, least.size, -1
