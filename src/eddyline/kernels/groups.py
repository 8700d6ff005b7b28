"""Partition groups: a code mixed, modulo the number of groups, and rows counted by group. The formula is part of
durable formats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import at, count, inlined, kernel

BLOCK = 1024


@inlined
def _finalized(code: int) -> np.uint64:
    h = np.uint64(code)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@kernel
def mixed(codes: NDArray[np.int64], groups: int, out: NDArray[np.int64]) -> None:
    """out[i] = the finalizer of SplitMix64 of codes[i], modulo `groups`. For a power of two the remainder is the lowest
    bits: without a division the compiler works on several rows at a time."""
    if groups & (groups - 1) == 0:
        bits = np.uint64(groups - 1)
        for i in range(codes.size):
            out[i] = np.int64(_finalized(codes[i]) & bits)
    else:
        for i in range(codes.size):
            out[i] = np.int64(_finalized(codes[i]) % np.uint64(groups))


@kernel
def among(codes: NDArray[np.int64], groups: int, asked: NDArray[np.bool_], out: NDArray[np.int64]) -> int:
    """Write the numbers of the rows whose group (`mixed`) is asked for; returns how many there are. `out` has room for
    one more than there are rows."""
    n, bits, whole = at(0), np.uint64(groups - 1), groups & (groups - 1) == 0
    for i in range(at(codes.size)):
        code = _finalized(codes[i])
        out[n] = i
        n += at(asked[code & bits if whole else code % np.uint64(groups)])
    return count(n)


@kernel
def add_by_code(codes: NDArray[np.int64], groups: int, number: int, out: NDArray[np.int64]) -> None:
    """out[g] += number, for the group g (`mixed`) of each code. Groups are computed in small blocks."""
    block = np.empty(BLOCK, np.int64)
    for begin in range(0, codes.size, BLOCK):
        some = codes[begin : begin + BLOCK]
        mixed(some, groups, block)
        for i in range(some.size):
            out[at(block[i])] += number


@kernel
def add_by_group(groups: NDArray[np.int64], number: int, out: NDArray[np.int64]) -> None:
    """out[g] += number, for each g of `groups`."""
    for i in range(groups.size):
        out[at(groups[i])] += number
