"""A sorted index over one order-preserving key column of a SteM, for range predicates.

Rows are kept in sorted runs whose sizes fall geometrically: new rows make a small run, and runs of similar size are
merged. So a row is moved a logarithmic number of times, and a probe searches a logarithmic number of runs. Only the
last runs are ever merged, so the runs are a stack, stored one after the other in a column of keys and a column of rows.
A merge overwrites the runs that it read, which is allowed because a probe is finished before the next build. Invariant:
every row of the SteM at or above the last committed `min_live` is in exactly one run, unless there are no runs. For at
most `unsorted_rows` (tuning.py) rows the index has no runs, and a probe scans the list of rows instead. A wind-back
removes rows that are too new from the runs; a merge removes rows that had expired by the last commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.kernels import sorted_runs as kernels
from eddyline.state.arena import Arena
from eddyline.state.column import Column, ColumnSnapshot
from eddyline.state.probing import Limits, Matches, chunks, scanned

SortedRun = tuple[NDArray[np.int64], NDArray[np.int64]]


class SortedIndexSnapshot(Snapshot, frozen=True):
    """The places of the runs."""

    keys: ColumnSnapshot
    rows: ColumnSnapshot
    starts: tuple[int, ...]
    clean: int


class SortedIndex:
    """Keys in order, each with its row."""

    def __init__(self, arena: Arena, keys: Column) -> None:
        self._keys, self._unsorted = keys, arena.tuning.unsorted_rows
        self._run_keys, self._run_rows = Column(arena, "i8"), Column(arena, "i8")
        self._starts: list[int] = []
        """The position at which each run begins."""
        self._clean = 0

    @property
    def is_list(self) -> bool:
        """Whether there are too few rows to be sorted."""
        return not self._starts

    @property
    def _runs(self) -> list[SortedRun]:
        keys, rows = self._run_keys.values, self._run_rows.values
        return [(keys[first:end], rows[first:end]) for first, end in pairwise([*self._starts, self._run_rows.rows])]

    def build(self, first: int, last: int, floor: int) -> None:
        """Insert rows first..last-1. Rows below `floor` can never be probed again."""
        if self.is_list:
            if last - floor <= self._unsorted:
                return
            first = floor  # the list becomes the first run
        runs, keys, rows = self._runs, self._keys.values[first:last], np.arange(first, last)
        while runs and 2 * rows.size > runs[-1][1].size:
            old_keys, old_rows = runs.pop()
            keep = old_rows >= floor
            keys, rows = np.concatenate([old_keys[keep], keys]), np.concatenate([old_rows[keep], rows])
        order = np.argsort(keys, kind="stable")
        self._put(len(runs), keys[order], rows[order])

    def renew(self, old: int, numbers: NDArray[np.int64], last: int) -> None:
        """Hold the rows from number `old` on under other numbers, the next ones up to last-1: `numbers` has that of
        each row, or -1 if it is gone."""
        first = old + numbers.size
        self._keep(0, 0)
        self._clean = first
        self.build(first, last, first)

    def _put(self, number: int, keys: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Write a run in place of those from this number on. Steps that may fail come first."""
        start = self._starts[number] if number < len(self._starts) else self._run_rows.rows
        for column in (self._run_keys, self._run_rows):
            column.reserve(start + rows.size)
        self._starts[number:] = [start]
        for column, values in ((self._run_keys, keys), (self._run_rows, rows)):
            column.truncate(start)
            column.append(values)

    def probe(
        self, least: NDArray[np.int64], most: NDArray[np.int64], times: NDArray[np.int64], limits: Limits
    ) -> Iterator[Matches]:
        """The rows whose key lies between least[i] and most[i], both included."""
        if self.is_list:
            of_row = self._keys.values
            for tuples, found in scanned(times, least.size, limits):
                keep = (of_row[found] >= least[tuples]) & (of_row[found] <= most[tuples])
                if keep.any():
                    yield tuples[keep], found[keep]
            return
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
        self._keep(0, first)

    def release(self, row: int) -> None:
        """Release the rows below `row`: they will not be probed again. They are removed once they may be the larger
        part of the oldest run."""
        if self._starts and 2 * (row - self._clean) > self._runs[0][0].size:
            self._keep(row, self._keys.rows)
            self._clean = row

    def _keep(self, first: int, end: int) -> None:
        """Keep only the rows first..end-1 of every run."""
        kept = [(keys[k], rows[k]) for keys, rows in self._runs for k in [(rows >= first) & (rows < end)]]
        self._starts = []
        for column in (self._run_keys, self._run_rows):
            column.truncate(0)
        for keys, rows in kept:
            if rows.size:
                self._put(len(self._starts), keys, rows)
        for column in (self._run_keys, self._run_rows):
            column.trim()

    def free(self) -> None:
        """Release everything; the index cannot be used any more."""
        self._run_keys.free()
        self._run_rows.free()

    def saved(self) -> SortedIndexSnapshot:
        """A snapshot for another process."""
        keys, rows = self._run_keys.saved(), self._run_rows.saved()
        return SortedIndexSnapshot(keys, rows, tuple(self._starts), self._clean)

    def restore(self, saved: SortedIndexSnapshot) -> None:
        """Restore from a snapshot."""
        self._run_keys.restore(saved.keys)
        self._run_rows.restore(saved.rows)
        self._starts, self._clean = list(saved.starts), saved.clean

    @property
    def nbytes(self) -> int:
        """Bytes held by the runs."""
        return self._run_keys.nbytes + self._run_rows.nbytes
