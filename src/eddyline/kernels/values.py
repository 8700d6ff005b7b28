"""Values of variable length in a heap: copying them out, hashing them, comparing them.

Value r of a column is heap[starts[r] : starts[r + 1]].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel


@kernel
def lengths(starts: NDArray[np.int64], rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
    """offsets[i + 1] - offsets[i] = length of the value of rows[i]."""
    offsets[0] = 0
    for i in range(rows.size):
        offsets[i + 1] = offsets[i] + starts[rows[i] + 1] - starts[rows[i]]


@kernel
def copy_bytes(
    heap: NDArray[np.uint8], starts: NDArray[np.int64], rows: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """The bytes of the values of `rows`, one after the other."""
    p = 0
    for i in range(rows.size):
        for q in range(starts[rows[i]], starts[rows[i] + 1]):
            out[p] = heap[q]
            p += 1


@kernel
def positions(starts: NDArray[np.int64], rows: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """The numbers of the child values of `rows`, one after the other (lists)."""
    p = 0
    for i in range(rows.size):
        for q in range(starts[rows[i]], starts[rows[i] + 1]):
            out[p] = q
            p += 1


@kernel
def hash_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int32], out: NDArray[np.int64]) -> None:
    """A 64-bit hash of each value data[offsets[i] : offsets[i + 1]] (FNV-1a over bytes, then mixed)."""
    for i in range(out.size):
        h = np.uint64(0xCBF29CE484222325)
        for q in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[q])) * np.uint64(0x100000001B3)
        h ^= h >> np.uint64(29)
        h *= np.uint64(0xBF58476D1CE4E5B9)
        out[i] = np.int64(h ^ (h >> np.uint64(32)))


@kernel
def combine(left: NDArray[np.int64], right: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """Combine two keys into one; equal pairs give equal keys, and unequal pairs seldom do."""
    for i in range(out.size):
        h = np.uint64(left[i]) * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(31))) + np.uint64(right[i])
        h *= np.uint64(0xBF58476D1CE4E5B9)
        out[i] = np.int64(h ^ (h >> np.uint64(29)))


@kernel
def same_bytes(
    heap: NDArray[np.uint8],
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    other_heap: NDArray[np.uint8],
    other_starts: NDArray[np.int64],
    other_rows: NDArray[np.int64],
    out: NDArray[np.bool_],
) -> None:
    """out[i] stays True only if the value of rows[i] here equals the value of other_rows[i] there."""
    for i in range(rows.size):
        if not out[i]:
            continue
        p = starts[rows[i]]
        q = other_starts[other_rows[i]]
        size = starts[rows[i] + 1] - p
        if other_starts[other_rows[i] + 1] - q != size:
            out[i] = False
            continue
        for k in range(size):
            if heap[p + k] != other_heap[q + k]:
                out[i] = False
                break
