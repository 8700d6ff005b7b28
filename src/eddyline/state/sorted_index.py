"""A sorted index over one order-preserving key column of a SteM, for range predicates.

Rows are kept in sorted runs whose sizes fall geometrically (new rows make a small run; runs of like size are merged),
so a row is moved a logarithmic number of times and a probe searches a logarithmic number of runs. A run is an
immutable pair of arrays. Invariant: every row of the SteM at or above the last committed `min_live` is in exactly one
run. Winding back drops the rows that are too new from the runs; merging drops rows that expired by the last commit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels import sorted_runs as kernels
from eddyline.state.column import Column
from eddyline.state.probing import Limits, Matches, chunks

Run = tuple[NDArray[np.int64], NDArray[np.int64]]


class SortedIndex:
    """Keys in order, and the rows that have them."""

    def __init__(self, keys: Column) -> None:
        self._keys = keys
        self._runs: list[Run] = []
        self._clean = 0

    def build(self, first: int, last: int, floor: int) -> None:
        """Insert rows first..last-1; rows below `floor` can never be asked for again."""
        self._runs.append(_run(self._keys.values[first:last], np.arange(first, last)))
        while len(self._runs) > 1 and 2 * self._runs[-1][0].size > self._runs[-2][0].size:
            (keys, rows), (more_keys, more_rows) = self._runs.pop(), self._runs.pop()
            rows = np.concatenate([more_rows, rows])
            keep = rows >= floor
            self._runs.append(_run(np.concatenate([more_keys, keys])[keep], rows[keep]))

    def probe(
        self, least: NDArray[np.int64], most: NDArray[np.int64], times: NDArray[np.int64], limits: Limits
    ) -> Iterator[Matches]:
        """Rows whose key lies between least[i] and most[i], both included."""
        for keys, rows in self._runs:

            def step(
                at: int,
                place: int,
                out_tuple: NDArray[np.int64],
                out_row: NDArray[np.int64],
                keys: NDArray[np.int64] = keys,
                rows: NDArray[np.int64] = rows,
            ) -> tuple[int, int, int]:
                low, high, before, min_live = limits.low, limits.high, limits.before, limits.min_live
                found: tuple[int, int, int] = kernels.probe(
                    keys,
                    rows,
                    times,
                    least,
                    most,
                    low,
                    high,
                    before,
                    min_live,
                    limits.passed,
                    at,
                    place,
                    out_tuple,
                    out_row,
                )
                return found

            yield from chunks(step, least.size, -1, limits.room)

    def pop(self, first: int) -> None:
        """Undo the build of the rows from number `first` on."""
        kept = ((keys[rows < first], rows[rows < first]) for keys, rows in self._runs)
        self._runs = [run for run in kept if run[0].size]

    def release(self, row: int) -> None:
        """Rows below `row` will not be asked for again: dropped once they may be the larger part of the oldest run."""
        if self._runs and 2 * (row - self._clean) > self._runs[0][0].size:
            kept = ((keys[rows >= row], rows[rows >= row]) for keys, rows in self._runs)
            self._runs, self._clean = [run for run in kept if run[0].size], row

    @property
    def nbytes(self) -> int:
        """Bytes held by the runs."""
        return sum(keys.nbytes + rows.nbytes for keys, rows in self._runs)


def _run(keys: NDArray[np.int64], rows: NDArray[np.int64]) -> Run:
    order = np.argsort(keys, kind="stable")
    return keys[order], rows[order]
