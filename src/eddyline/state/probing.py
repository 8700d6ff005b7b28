"""The common part of all probes: the limits of rows that may match, and matches in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels import scan

Matches = tuple[NDArray[np.int64], NDArray[np.int64]]
"""For each match: the number of the tuple in its packet, and the row that it matched."""

NO_BOUND: NDArray[np.int64] = np.empty(0, np.int64)
"""`low` and `high` of a probe without a bound on time."""


class Limits(NamedTuple):
    """The rows that may match: built before the tuple that started the probing (`before`; one element if it is the same
    for all tuples), not expired (`min_live`), and within each tuple's time interval `low`..`high`. A piece has at most
    `room` matches. `passed[0]` counts the rows that were visited and were too new. `newest` is, for each `block` of
    rows, the newest time up to its end, if known: it may avoid visits to older rows."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    before: NDArray[np.int64]
    min_live: int
    room: int
    passed: NDArray[np.int64]
    newest: NDArray[np.int64] = NO_BOUND
    block: int = 1


ProbeKernel = Callable[[int, int, NDArray[np.int64], NDArray[np.int64]], tuple[int, int, int]]
"""A kernel that starts at (at, cursor), writes into two output arrays, and returns (matches, at, cursor)."""


def chunks(step: ProbeKernel, tuples: int, begin: int, room: int) -> Iterator[Matches]:
    """Run a probe kernel until it has seen all tuples. The first piece has room for one or two matches per tuple; later
    pieces have `room`."""
    at, cursor = 0, begin
    size = min(room, 2 * tuples + 64)
    while at < tuples:
        out_tuple, out_row = np.empty(size, np.int64), np.empty(size, np.int64)
        n, at, cursor = step(at, cursor, out_tuple, out_row)
        if n:
            yield out_tuple[:n], out_row[:n]
        size = room


def scanned(times: NDArray[np.int64], tuples: int, limits: Limits) -> Iterator[Matches]:
    """Every row within the limits, for each tuple: a probe without an index."""
    low, high, before, min_live, passed = limits.low, limits.high, limits.before, limits.min_live, limits.passed

    def step(at: int, row: int, out_tuple: NDArray[np.int64], out_row: NDArray[np.int64]) -> tuple[int, int, int]:
        found: tuple[int, int, int] = scan.probe(
            times, low, high, before, min_live, passed, tuples, at, row, out_tuple, out_row
        )
        return found

    return chunks(step, tuples, -1, limits.room)
