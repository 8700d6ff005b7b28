"""A sweep: makes the missing results of groups from the rows in the log, in stages and in slices that fit in memory.

First the sources that lead are joined with each other. Their rows in a result are of one group, so a slice is some of
the groups, and each tuple is made in one slice. Of its rows those are left out whose key another source does not have
(logged_rows.py). Rows that are too many all the same are divided:

- into sub-partitions of the hash. All keys of a result by which rows have groups are equal, so each tuple is made in
  one of them. Several small ones are joined together;
- one sub-partition, as of a key that most rows have, into blocks of the rows of each source. Each tuple is made by one
  combination of blocks, and all combinations are gone through.

Then each source that follows is joined with the tuples that there are, one source in each stage. The tuples wait on
disk in the order of the groups of the key by which the next stage joins them (unfinished.py). A slice is some of
these groups: the rows of the source whose key a tuple has are built, and the tuples probe them, so only the rows need
room. If they are too many, they are divided into blocks, each of which all tuples of the groups probe.

The last stage makes results. There a tuple without a new component probes only new rows: other results are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, prod
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.engine.intake import event_times
from eddyline.engine.slot import Slot
from eddyline.engine.split import codes_along, wanted
from eddyline.engine.sweep.clean_up import CleanUp, JoinedRows, Origin
from eddyline.engine.sweep.logged_places import LoggedPlaces
from eddyline.engine.sweep.logged_rows import CodedRows, LoggedRows, cut, ends_of, having, matching, together
from eddyline.engine.sweep.staged_tuples import UnfinishedTuples
from eddyline.plan.later_layout import later_layout
from eddyline.plan.plan import plan_of
from eddyline.plan.spill_axis import Follow
from eddyline.spill.generations import NEVER, Generations
from eddyline.state.layout import Layout

Ints = NDArray[np.int64]

PARKED = 1 << 23
"""The most bytes of tuples that are collected before they are parked."""


class SweptLog(Protocol):
    """The rows that a slot has in the log."""

    @property
    def mapped(self) -> bool:
        """Whether rows take no memory of this process until they are copied."""

    @property
    def rows_windows(self) -> Mapping[int, LoggedPlaces]:
        """The places of the rows of each source with a ROWS window."""

    def rows(self, source: int, groups: Ints) -> Iterator[LoggedRows]:
        """All rows of a source of these groups, which are in order; always in the same order."""

    def sizes(self, source: int) -> NDArray[np.float64]:
        """By group of a source, from its first one on, about the bytes that its rows take in a sweep."""


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
        held = slot.state_bytes + sum(places.nbytes for places in log.rows_windows.values())
        free = max(int(self._tuning.sweep_share * memory), int(self._tuning.sweep_fill * memory) - held)
        self._size = min(self._tuning.sweep_bytes, max(self._tuning.sweep_least, free))
        self._at_a_time = min(1 << 16, max(1 << 10, self._size >> 9))
        """Rows that go round an eddy at a time: a slice has a few hundred times as many bytes."""
        self._spread = self._tuning.sweep_spread if log.mapped else 1
        self._plan = plan_of(slot.query, self._axis.tree, tables_first=False)
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
        return CleanUp(self._slot, self._plan, layouts, self._log.rows_windows, park, self._at_a_time)

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
        for some in (
            np.split(groups, ends_of(sizes[groups], self._tuning.sweep_spread * self._size)) if groups.size else ()
        ):
            self._divided(clean_up, self._matching(some))
            self._watch(float(sizes[some].sum() / sizes[groups].sum()) / (1 + len(self._axis.follow)))
        self.results += clean_up.results
        clean_up.close()

    def _matching(self, groups: Ints) -> dict[int, list[CodedRows]]:
        """The rows of these groups that may be in a tuple of the sources that lead; if their tuples are results, in a
        missing one."""
        given = {s: [self._coded(s, rows) for rows in self._log.rows(s, groups)] for s in self._leading}
        if len(self._leading) == 1:
            return given
        return matching(given, None if self._axis.follow else lambda rows: rows.came >= self._clean(rows))

    def _coded(self, source: int, rows: LoggedRows) -> CodedRows:
        return CodedRows(rows, rows.of_them(codes_along(self._axis, self._plan, source, rows.stored)))

    def _divided(self, clean_up: CleanUp, given: Mapping[int, list[CodedRows]]) -> None:
        """Join rows, some sub-partitions at a time if they are too many."""
        size = sum(part.rows.nbytes for parts in given.values() for part in parts)
        if size <= self._size:
            self._join(clean_up, {source: [part.rows for part in parts] for source, parts in given.items()})
            return
        parts = min(self._tuning.most_parts, 4 * ceil(size / self._size))
        sizes = np.zeros(parts)
        for part in (part for of_source in given.values() for part in of_source):
            sizes += np.bincount(part.codes % parts, minlength=parts) * (part.rows.nbytes / max(1, part.codes.size))
        filled = np.flatnonzero(sizes)
        for numbers in np.split(filled, ends_of(sizes[filled], self._size)):
            here = np.isin(np.arange(parts), numbers)
            portion = {s: [p.only(here[p.codes % parts]).rows for p in of_source] for s, of_source in given.items()}
            portion = {s: [rows for rows in of_source if rows.came.size] for s, of_source in portion.items()}
            if sizes[numbers].sum() > self._size:
                self._by_blocks(clean_up, portion)
            else:
                self._join(clean_up, portion)

    def _by_blocks(self, clean_up: CleanUp, given: Mapping[int, list[LoggedRows]]) -> None:
        """Go through all combinations of blocks of rows of each source."""
        rows = {source: sum(part.came.size for part in parts) for source, parts in given.items()}
        sizes = {source: sum(part.nbytes for part in parts) for source, parts in given.items()}
        blocks = dict.fromkeys(given, 1)
        while (
            sum(sizes[s] / blocks[s] for s in blocks) > self._size
            and 2 * prod(blocks.values()) <= self._tuning.most_blocks
        ):
            largest = max(blocks, key=lambda s: sizes[s] / blocks[s])
            if blocks[largest] >= rows[largest]:
                break
            blocks[largest] *= 2
        lengths = {source: ceil(rows[source] / blocks[source]) for source in blocks}

        def combine(sources: list[int], chosen: Mapping[int, list[LoggedRows]]) -> None:
            if not sources:
                self._join(clean_up, chosen)
                return
            source, *others = sources
            for first in range(0, rows[source], max(1, lengths[source])):
                combine(others, {**chosen, source: cut(given[source], first, first + lengths[source])})

        combine(sorted(blocks, key=lambda s: blocks[s]), {})

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
        ends = [] if follow.on is None else ends_of(sizes, self._spread * self._size)
        for groups in np.split(np.arange(self._axis.size), ends):
            if groups.size and before.has(groups):
                rows: Iterable[LoggedRows] = self._log.rows(source, first + groups)
                if follow.on is not None:
                    rows = having([self._coded(source, some) for some in rows], before.codes(groups))
                for block in self._blocks(rows):
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

    def _blocks(self, given: Iterable[LoggedRows]) -> Iterator[list[LoggedRows]]:
        """As many rows at a time as fit."""
        block, size = list[LoggedRows](), 0.0
        for rows in given:
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
            is_new = some.came >= (self._clean(some) if self._axis.has(source) else self._since)
            if not is_new.all():
                old.append(some.only(~is_new))
            if is_new.any():
                new.append(some.only(is_new))
        return self._as_joined(source, old), self._as_joined(source, new)

    def _clean(self, rows: LoggedRows) -> Ints:
        """Until when the group of each row, which leads, is clean."""
        return self._generations.clean_of(rows.groups)

    def _as_joined(self, source: int, parts: Sequence[LoggedRows]) -> list[JoinedRows]:
        return [self._of_log(source, rows) for rows in together(parts, self._slot.tuning.state.text_bytes)]

    def _of_log(self, source: int, rows: LoggedRows) -> JoinedRows:
        time = self._slot.query.sources[source].stream.time
        values, which = wanted(self._plan, source, rows.batch, ErrorCount())
        times = np.zeros(rows.came.size, np.int64) if time is None else event_times(rows.batch.column(time))
        clean = self._clean(rows) if self._axis.has(source) else np.full(rows.came.size, NEVER)
        left = self._generations.left_at(rows.groups, rows.came)
        found = JoinedRows(values, times, Origin.of(rows.came, left, clean), rows.places)
        return found if which is None else found.only(which)
