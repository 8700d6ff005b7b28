"""A sweep: makes the missing results of groups from the rows in the log, in stages and in slices that fit in memory.

First the sources that lead are joined with each other. Their rows in a result are of one group, so a slice is some of
the groups, and each tuple is made in one slice. A group that is too large by itself is divided:

- into sub-partitions of the hash. All keys of a result by which rows have groups are equal, so each tuple is made in
  one of them. Several small ones are one slice;
- one sub-partition, as of a key that most rows have, into blocks of the rows of each source. Each tuple is made by one
  combination of blocks, and all combinations are gone through.

Then each source that follows is joined with the tuples that there are, one source in each stage. The tuples wait on
disk in the order of the groups of the key by which the next stage joins them (unfinished.py). A slice is some of
these groups: the rows of the source are built, and the tuples probe them, so only the rows need room. A group that is
too large is divided into blocks, each of which all tuples of the group probe.

The last stage makes results. There a tuple without a new component probes only new rows: other results are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, prod
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.engine.clean_up import CleanUp, JoinedRows, Origin
from eddyline.engine.intake import event_times
from eddyline.engine.slot import Slot
from eddyline.engine.split import sub_partitions, wanted
from eddyline.engine.unfinished import UnfinishedTuples
from eddyline.plan.later_layout import later_layout
from eddyline.plan.partition import Follow
from eddyline.plan.plan import plan_of
from eddyline.spill.generations import NEVER, Generations
from eddyline.state.layout import Layout

Ints = NDArray[np.int64]

PARKED = 1 << 23
"""The most bytes of tuples that are collected before they are parked."""


@dataclass(frozen=True)
class LoggedRows:
    """Rows of one source from the log, their groups, and the epochs in which they came."""

    batch: pa.RecordBatch
    groups: Ints
    came: Ints

    def only(self, which: NDArray[np.bool_]) -> LoggedRows:
        """Some of the rows."""
        if which.all():
            return self
        return LoggedRows(self.batch.filter(pa.array(which)), self.groups[which], self.came[which])

    def slice(self, first: int, last: int) -> LoggedRows:
        """Rows first..last-1."""
        return LoggedRows(self.batch.slice(first, last - first), self.groups[first:last], self.came[first:last])

    @property
    def nbytes(self) -> int:
        """About the bytes that they take in a sweep: their values are here and in a SteM until all are stored."""
        return round(size_of(self.batch.nbytes, self.came.size))


def size_of(values: float, rows: int) -> float:
    """About the bytes that rows take in a sweep: their values in SteMs, while those of one source are in Arrow arrays
    too; for each row its origin, group, codes of keys and indexes, which are there twice while they grow."""
    return 2 * values + 90 * rows


class SweptLog(Protocol):
    """The rows that a slot has in the log."""

    def rows(self, source: int, groups: Ints) -> Iterator[LoggedRows]:
        """All rows of a source of these groups, which are in order; always in the same order."""

    def sizes(self, source: int) -> NDArray[np.float64]:
        """By group of a source, from its first one on, about the bytes that its rows take in a sweep."""


@dataclass(frozen=True)
class _Slice:
    """Some groups, in order; of these the `chosen` sub-partitions, if there are some. By source `codes` has the
    sub-partition of each row, for each batch that the log gives of the groups."""

    groups: Ints
    chosen: NDArray[np.bool_] | None = None
    codes: Mapping[int, Sequence[NDArray[np.uint16]]] = field(default_factory=dict)


class Sweep:
    """Sweeps groups of a slot."""

    def __init__(
        self,
        slot: Slot,
        generations: Generations,
        log: SweptLog,
        relieve: Callable[[], None] = lambda: None,
        watch: Callable[[float], None] = lambda share: None,
    ) -> None:
        """`relieve` is called when there may be many results, `watch` when a share of the work is done."""
        assert slot.executor.spill_axis is not None
        self._slot, self._axis, self._generations, self._log = slot, slot.executor.spill_axis, generations, log
        self._relieve, self._watch, self._tuning = relieve, watch, slot.tuning.engine
        memory = slot.settings.memory or 1 << 60
        free = max(int(self._tuning.sweep_share * memory), int(self._tuning.sweep_fill * memory) - slot.state_bytes)
        self._size = min(self._tuning.sweep_bytes, max(self._tuning.sweep_least, free))
        self._at_a_time = min(1 << 16, max(1 << 10, self._size >> 9))
        """Rows that go round an eddy at a time: a slice has a few hundred times as many bytes."""
        self._plan = plan_of(slot.query, self._axis.tree)
        self._leading = [source for source in range(len(slot.query.sources)) if self._axis.has(source)]
        self._since = 0
        """The first epoch until which one of the swept groups is clean."""
        self.results = 0
        """The missing results that were made."""

    def run(self, groups: Ints) -> None:
        """Make the missing results of these groups; they go to those of the slot."""
        if not groups.size:
            return
        self._since = min(self._generations.clean[group] for group in groups.tolist())
        waiting = self._waiting(0)
        try:
            self._lead(np.sort(groups), waiting)
            for number, follow in enumerate(self._axis.follow):
                assert waiting is not None
                before, waiting = waiting, self._waiting(number + 1)
                before.finish()
                self._extend(follow, before, waiting)
                before.close()
        finally:
            if waiting is not None:
                waiting.close()

    def _clean_up(self, layouts: Mapping[int, Layout], waiting: UnfinishedTuples | None) -> CleanUp:
        """One for the sources with these layouts. Their tuples wait for the next stage, if there is one."""
        park = None if waiting is None else waiting.add
        return CleanUp(self._slot, self._plan, layouts, park, self._at_a_time)

    def _layout(self, source: int, waiting: UnfinishedTuples | None) -> Layout:
        """What is kept of the rows of a source from the log; all of it can be read again if they wait."""
        layout = self._plan.layouts[source]
        return layout if waiting is None else replace(layout, stored=layout.needed)

    def _waiting(self, stage: int) -> UnfinishedTuples | None:
        """The place of the tuples that a stage joins with a source that follows; None after the last one."""
        if stage == len(self._axis.follow):
            return None
        before = [*self._leading, *(follow.source for follow in self._axis.follow[:stage])]
        span = sum(1 << source for source in before)
        layouts = {source: later_layout(self._plan, source, span) for source in before}
        place = self._slot.settings.spill_dir, min(PARKED, self._size // 16), self._at_a_time
        return UnfinishedTuples(self._axis.follow[stage], self._axis.size, layouts, *place)

    # The sources that lead

    def _lead(self, groups: Ints, waiting: UnfinishedTuples | None) -> None:
        """Join the sources that lead."""
        clean_up = self._clean_up({source: self._layout(source, waiting) for source in self._leading}, waiting)
        sizes = sum((self._log.sizes(source) for source in self._leading), np.zeros(self._axis.size))
        groups = groups[sizes[groups] > 0]
        for some in np.split(groups, _ends(sizes[groups], self._size)) if groups.size else ():
            size = float(sizes[some].sum())
            if size > self._size:
                self._divided(clean_up, some, size)
            else:
                self._join(clean_up, self._loaded(_Slice(some)))
            self._watch(size / sizes[groups].sum() / (1 + len(self._axis.follow)))
        self.results += clean_up.results
        clean_up.close()

    def _divided(self, clean_up: CleanUp, group: Ints, size: float) -> None:
        """Sub-partitions of a large group, several together where they are small."""
        parts = min(self._tuning.most_parts, 4 * ceil(size / self._size))
        sizes = np.zeros(parts)
        codes: dict[int, list[NDArray[np.uint16]]] = {source: [] for source in self._leading}
        for source, of_source in codes.items():
            for rows in self._log.rows(source, group):
                some = sub_partitions(self._axis, self._plan, source, rows.batch, parts)
                sizes += np.bincount(some, minlength=parts) * (rows.nbytes / max(1, some.size))
                of_source.append(some.astype(np.uint16))  # there are at most `most_parts`
        filled = np.flatnonzero(sizes)
        for chosen in np.split(filled, _ends(sizes[filled], self._size)):
            portion = _Slice(group, np.isin(np.arange(parts), chosen), codes)
            if sizes[chosen].sum() > self._size:
                self._by_blocks(clean_up, portion)
            else:
                self._join(clean_up, self._loaded(portion))

    def _by_blocks(self, clean_up: CleanUp, portion: _Slice) -> None:
        """Go through all combinations of blocks of rows of each source."""
        rows, sizes = dict.fromkeys(self._leading, 0), dict.fromkeys(self._leading, 0.0)
        for source in self._leading:
            for some in self._rows(source, portion):
                rows[source] += some.came.size
                sizes[source] += some.nbytes
        blocks = dict.fromkeys(self._leading, 1)
        while (
            sum(sizes[s] / blocks[s] for s in blocks) > self._size
            and 2 * prod(blocks.values()) <= self._tuning.most_blocks
        ):
            largest = max(blocks, key=lambda s: sizes[s] / blocks[s])
            if blocks[largest] >= rows[largest]:
                break
            blocks[largest] *= 2
        lengths = {source: ceil(rows[source] / blocks[source]) for source in blocks}

        def combine(sources: list[int], given: Mapping[int, list[LoggedRows]]) -> None:
            if not sources:
                self._join(clean_up, given)
                return
            source, *others = sources
            for first in range(0, rows[source], max(1, lengths[source])):
                block = _cut(self._rows(source, portion), first, first + lengths[source])
                combine(others, {**given, source: block})

        combine(sorted(blocks, key=lambda s: blocks[s]), {})

    def _loaded(self, portion: _Slice) -> dict[int, list[LoggedRows]]:
        return {source: list(self._rows(source, portion)) for source in self._leading}

    def _rows(self, source: int, portion: _Slice) -> Iterator[LoggedRows]:
        found = self._log.rows(source, portion.groups)
        if portion.chosen is None:
            yield from found
            return
        for rows, codes in zip(found, portion.codes[source], strict=True):
            if (which := portion.chosen[codes]).any():
                yield rows.only(which)

    def _join(self, clean_up: CleanUp, given: Mapping[int, list[LoggedRows]]) -> None:
        """Join rows of the sources that lead. If their tuples are results, rows that came before their group was clean
        do not probe."""
        if not all(given.values()):  # a result has a row of each source
            return
        clean_up.begin(self._leading)
        for source, parts in given.items():
            old, new = self._kept(source, parts)
            clean_up.store(source, *old)
            if not self._axis.follow:
                clean_up.build(source)
            clean_up.store(source, *new)
        for source in self._leading if len(self._leading) > 1 else ():
            clean_up.feed(source)
        if len(self._leading) == 1:
            clean_up.pass_on(self._leading[0])
        self._end(clean_up)

    def _end(self, clean_up: CleanUp) -> None:
        """After a slice."""
        clean_up.end()
        for pool in (pa.default_memory_pool(), pa.system_memory_pool()):
            pool.release_unused()
        self._relieve()

    # The sources that follow

    def _extend(self, follow: Follow, before: UnfinishedTuples, waiting: UnfinishedTuples | None) -> None:
        """Join the tuples that wait with the rows of a source."""
        source, first = follow.source, self._axis.first(follow.source)
        clean_up = self._clean_up({**before.layouts(waiting), source: self._layout(source, waiting)}, waiting)
        sizes = self._log.sizes(source)
        ends = [] if follow.on is None else _ends(sizes, self._size)
        for groups in np.split(np.arange(self._axis.size), ends):
            if groups.size and before.has(groups):
                for block in self._blocks(source, first + groups):
                    self._join_with(clean_up, source, block, before, groups, waiting is None)
            self._watch(sizes[groups].sum() / max(1.0, sizes.sum()) / (1 + len(self._axis.follow)))
        self.results += clean_up.results
        clean_up.close()

    def _join_with(
        self, clean_up: CleanUp, source: int, rows: list[LoggedRows], before: UnfinishedTuples, groups: Ints, last: bool
    ) -> None:
        """Let the tuples of these groups probe rows of a source. If it is the `last`, tuples without a new component
        probe only new rows."""
        clean_up.begin([source])
        old, new = self._kept(source, rows)
        clean_up.store(source, *new)
        if not last:
            clean_up.store(source, *old)
        clean_up.build(source)
        for tuples in before.tuples(groups, new=False):
            clean_up.probe(tuples)
        if last:
            clean_up.store(source, *old)
            clean_up.build(source)
        for tuples in before.tuples(groups, new=True):
            clean_up.probe(tuples)
        self._end(clean_up)

    def _blocks(self, source: int, groups: Ints) -> Iterator[list[LoggedRows]]:
        """The rows of a source of these groups, as many at a time as fit."""
        block, size = list[LoggedRows](), 0.0
        for rows in self._log.rows(source, groups):
            if block and size + rows.nbytes > self._size:
                yield block
                block, size = [], 0.0
            block.append(rows)
            size += rows.nbytes
        if block:
            yield block

    # Rows

    def _kept(self, source: int, rows: Iterable[LoggedRows]) -> tuple[list[JoinedRows], list[JoinedRows]]:
        """What a SteM keeps of the rows of a source: of those that came before their group was clean, and of others."""
        old, new = list[LoggedRows](), list[LoggedRows]()
        for some in rows:
            is_new = some.came >= self._clean(source, some)
            if not is_new.all():
                old.append(some.only(~is_new))
            if is_new.any():
                new.append(some.only(is_new))
        return self._as_joined(source, old), self._as_joined(source, new)

    def _clean(self, source: int, rows: LoggedRows) -> Ints:
        """Until when the group of each row is clean; for a source that follows, until when the first one is."""
        return self._generations.clean_of(rows.groups) if self._axis.has(source) else np.array([self._since])

    def _as_joined(self, source: int, parts: Sequence[LoggedRows]) -> list[JoinedRows]:
        return [self._of_log(source, rows) for rows in together(parts, self._slot.tuning.state.text_bytes)]

    def _of_log(self, source: int, rows: LoggedRows) -> JoinedRows:
        time = self._slot.query.sources[source].stream.time
        values, which = wanted(self._plan, source, rows.batch, ErrorCount())
        times = np.zeros(rows.came.size, np.int64) if time is None else event_times(rows.batch.column(time))
        clean = self._clean(source, rows) if self._axis.has(source) else np.full(rows.came.size, NEVER)
        left = self._generations.left_at(rows.groups, rows.came)
        found = JoinedRows(values, times, Origin.of(rows.came, left, clean))
        return found if which is None else found.only(which)


def together(parts: Sequence[LoggedRows], most: int) -> Iterator[LoggedRows]:
    """Rows in as few parts as possible, of at most so many bytes: an Arrow array of text cannot have more."""
    sizes = np.array([part.batch.nbytes for part in parts], np.float64)
    ends = [0, *_ends(sizes, most), len(parts)]
    for some in (parts[first:end] for first, end in pairwise(ends) if first < end):
        if len(some) == 1:
            yield some[0]
            continue
        table = pa.Table.from_batches([part.batch for part in some])
        if any(pa.types.is_dictionary(field.type) for field in table.schema):
            table = table.unify_dictionaries()
        (batch,) = table.combine_chunks().to_batches()
        yield LoggedRows(batch, np.concatenate([p.groups for p in some]), np.concatenate([p.came for p in some]))


def _cut(rows: Iterable[LoggedRows], first: int, last: int) -> list[LoggedRows]:
    """Rows first..last-1."""
    found, at = [], 0
    for some in rows:
        begin, end = max(first - at, 0), min(last - at, some.came.size)
        if begin < end:
            found.append(some.slice(begin, end))
        at += some.came.size
        if at >= last:
            break
    return found


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
