"""A sweep: makes the missing results of groups, in slices that fit in memory.

A slice is some of the groups; a clean-up of its own makes its results, and gives its memory back. The rows of a result
that lead are of one group, so each result is made in one slice. The sizes of groups are estimated; a slice
that turns out to be too large is divided:

- several groups: into halves;
- one group: into sub-partitions of the hash. All keys of a result by which rows have groups are equal, so each result
  is made in one of them. Several small ones are one slice;
- one sub-partition, as of a key that most rows have: into blocks of the rows of each source. Each result is made by
  one combination of blocks, and all combinations are gone through.

Rows of a source that follows, if some are on disk, are gone through for each slice, block by block.

So at most one slice is in memory, apart from a group that no block can divide further (`most_blocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.engine.clean_up import CleanUp, RowsFromLog
from eddyline.engine.intake import event_times
from eddyline.engine.slot import Slot
from eddyline.engine.split import groups_along, wanted
from eddyline.plan.plan import plan_of
from eddyline.spill.generations import Generations

Ints = NDArray[np.int64]

ReadRows = Callable[[int, Ints], Iterator[tuple[pa.RecordBatch, Ints]]]
"""(source, groups in order) -> all its rows of these groups, and maybe of others, with the epochs in which they came;
always in the same order."""


@dataclass(frozen=True)
class _Slice:
    """Which rows a clean-up takes: those of some groups, in order; of these the `chosen` sub-partitions of `parts`."""

    groups: Ints
    parts: int = 1
    chosen: Ints | None = None

    def has(self, codes: Ints, groups: int) -> NDArray[np.bool_]:
        """Which rows it has, by their hashes modulo parts times groups."""
        keep = np.isin(codes % groups, self.groups)
        return keep if self.chosen is None else keep & np.isin(codes // groups, self.chosen)


class Sweep:
    """Sweeps groups of a slot."""

    def __init__(
        self,
        slot: Slot,
        generations: Generations,
        read: ReadRows,
        relieve: Callable[[], None] = lambda: None,
        leaving: Collection[int] = (),
        watch: Callable[[float], None] = lambda share: None,
    ) -> None:
        """`relieve` is called when there may be many results, `watch` when a share of the groups is done. The groups
        `leaving` are about to leave memory; they have left it if this is not the first attempt at the batch."""
        assert slot.executor.spill_axis is not None
        self._slot, self._axis, self._generations = slot, slot.executor.spill_axis, generations
        self._read, self._relieve, self._watch, tuning = read, relieve, watch, slot.tuning.engine
        share = int(tuning.sweep_share * (slot.settings.memory or 1 << 60))
        self._size = min(tuning.sweep_bytes, max(tuning.sweep_least, share))
        self._plan = plan_of(slot.query)
        self.results = 0
        """The missing results that were made."""
        sources = range(len(slot.query.sources))
        self._sources = [source for source in sources if self._axis.has(source)]
        """Those that lead."""
        out = {source for group in {*generations.left, *leaving} for source in self._axis.sources(group)}
        self._following = [source for source in sources if source in out and not self._axis.has(source)]
        """Those that follow and may have rows that are not in memory."""
        if self._following:
            self._size //= 2

    def run(self, groups: Ints, sizes: NDArray[np.float64] | None = None) -> None:
        """Make the missing results of these groups; they go to those of the slot. `sizes` are estimates of the bytes
        that the rows of each of all groups take in memory."""
        groups = np.sort(groups)
        ends = [] if sizes is None else _ends(sizes[groups], self._size)
        for some in np.split(groups, ends):
            if some.size:
                self._sweep(_Slice(some))
                self._watch(some.size / groups.size)

    def _sweep(self, portion: _Slice) -> None:
        given = self._loaded(portion)
        if given is not None:
            self._clean(portion, given)
            del given
            _give_back()
        elif portion.groups.size > 1:
            for half in np.array_split(portion.groups, 2):
                self._sweep(_Slice(half))
        elif portion.chosen is None:
            for some in self._parts(portion.groups):
                self._sweep(some)
        elif portion.chosen.size > 1:  # they were small enough when they were counted
            for chosen in np.array_split(portion.chosen, 2):
                self._sweep(_Slice(portion.groups, portion.parts, chosen))
        else:
            self._by_blocks(portion)

    def _clean(self, portion: _Slice, given: Mapping[int, list[RowsFromLog]]) -> None:
        """Make the missing results of rows that are loaded: with all rows of the sources that follow."""
        others = [source for source in self._following if source not in given]
        if others and all(given.values()):
            for block in self._blocks(others[0]):
                self._clean(portion, {**given, others[0]: block})
        elif all(given.values()):  # a result has a row of each source
            clean_up = CleanUp(self._slot, self._generations, tuple(given), self._relieve)
            try:
                clean_up.run(given, portion.groups)
                self.results += clean_up.results
            finally:
                clean_up.close()
            self._relieve()

    def _blocks(self, source: int) -> Iterator[list[RowsFromLog]]:
        """All rows of a source that follows, as many at a time as fit."""
        block, size = list[RowsFromLog](), 0
        for rows in self._rows(source, _Slice(np.empty(0, np.int64))):
            if block and size + rows.nbytes > self._size // len(self._following):
                yield block
                block, size = [], 0
            block.append(rows)
            size += rows.nbytes
        yield block

    def _loaded(self, portion: _Slice) -> dict[int, list[RowsFromLog]] | None:
        """The rows of a slice by source; None if they are too large."""
        given: dict[int, list[RowsFromLog]] = {}
        size = 0
        for source in self._sources:
            given[source] = []
            for rows in self._rows(source, portion):
                given[source].append(rows)
                size += rows.nbytes
                if size > self._size and sum(len(some.times) for parts in given.values() for some in parts) > 1:
                    return None
        return given

    def _parts(self, group: Ints) -> Iterator[_Slice]:
        """Sub-partitions of a group, several together where they are small."""
        whole = sum(rows.nbytes for source in self._sources for rows in self._rows(source, _Slice(group)))
        parts = min(self._slot.tuning.engine.most_parts, 4 * ceil(whole / self._size))
        sizes = np.zeros(parts)
        for source in self._sources:
            for rows in self._rows(source, _Slice(group, parts, np.arange(parts))):
                sizes += np.bincount(rows.parts, minlength=parts) * (rows.nbytes / rows.times.size)
        for chosen in np.split(np.arange(parts), _ends(sizes, self._size)):
            if chosen.size:
                yield _Slice(group, parts, chosen)

    def _by_blocks(self, portion: _Slice) -> None:
        """Go through all combinations of blocks of rows of each source."""
        rows, sizes = dict.fromkeys(self._sources, 0), dict.fromkeys(self._sources, 0)
        for source in self._sources:
            for some in self._rows(source, portion):
                rows[source] += some.times.size
                sizes[source] += some.nbytes
        blocks = dict.fromkeys(self._sources, 1)
        while (
            sum(sizes[s] / blocks[s] for s in blocks) > self._size
            and 2 * prod(blocks.values()) <= self._slot.tuning.engine.most_blocks
        ):
            largest = max(blocks, key=lambda s: sizes[s] / blocks[s])
            if blocks[largest] >= rows[largest]:
                break
            blocks[largest] *= 2
        lengths = {source: ceil(rows[source] / blocks[source]) for source in blocks}

        def combine(sources: list[int], given: Mapping[int, list[RowsFromLog]]) -> None:
            if not sources:
                self._clean(portion, given)
                return
            source, *others = sources
            for first in range(0, rows[source], max(1, lengths[source])):
                block = self._block(source, portion, first, first + lengths[source])
                combine(others, {**given, source: block})

        combine(sorted(blocks, key=lambda s: blocks[s]), {})
        _give_back()

    def _block(self, source: int, portion: _Slice, first: int, last: int) -> list[RowsFromLog]:
        """Rows first..last-1 of those that a slice has of a source."""
        found, at = [], 0
        for rows in self._rows(source, portion):
            begin, end = max(first - at, 0), min(last - at, rows.times.size)
            if begin < end:
                found.append(rows.slice(begin, end))
            at += rows.times.size
            if at >= last:
                break
        return found

    def _rows(self, source: int, portion: _Slice) -> Iterator[RowsFromLog]:
        """The rows that a slice has of a source."""
        time = self._slot.query.sources[source].stream.time
        for batch, came in self._read(source, portion.groups):
            groups = groups_along(self._axis, self._plan, source, batch, portion.parts)
            parts = np.zeros(groups.size, np.int64)
            if self._axis.has(source):
                keep = portion.has(groups, self._axis.size)
                if not keep.any():
                    continue
                batch, came = batch.filter(pa.array(keep)), came[keep]
                parts, groups = groups[keep] // self._axis.size, groups[keep] % self._axis.size
            values, which = wanted(self._plan, source, batch, ErrorCount())
            times = np.zeros(batch.num_rows, np.int64) if time is None else event_times(batch.column(time))
            found = RowsFromLog(values, times, groups, came, parts)
            found = found if which is None else found.only(which)
            if found.times.size:
                yield found


def _give_back() -> None:
    """Return freed memory to the system: that of Arrow, and that of all else."""
    for pool in (pa.default_memory_pool(), pa.system_memory_pool()):
        pool.release_unused()


def _ends(sizes: NDArray[np.float64], most: float) -> list[int]:
    """Where to cut a list so that no part is larger than `most`, unless it has a single element.

    >>> _ends(np.array([3.0, 3.0, 9.0, 1.0, 1.0]), 6)
    [2, 3]
    """
    ends, total = [], 0.0
    for at, size in enumerate(sizes.tolist()):
        if total and total + size > most:
            ends.append(at)
            total = 0.0
        total += size
    return ends
