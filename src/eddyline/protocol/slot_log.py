"""The rows of a commit that one slot has, for sweeps: by source and group.

The rows of a section are in the order of the groups of one source, so those of some groups are a few ranges of it.
A section of a local file is mapped and read once for all slices; what is kept of it is where each group begins.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.engine.intake import event_times
from eddyline.engine.split import Split, groups_along, rows_along
from eddyline.engine.sweep.logged_places import CountedSpan, LoggedPlaces
from eddyline.engine.sweep.logged_rows import LoggedRows, size_of
from eddyline.plan.bounds import FOREVER
from eddyline.plan.spill_axis import SpillAxis
from eddyline.protocol.ledger import Released
from eddyline.state.log.segment import Section, Segment

Ints = NDArray[np.int64]

EPOCH = "\0epoch"
"""The column that says in which epoch a row came; no name that a stream could have."""


def epochs(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Ints]:
    """Logged rows, and the epochs in which they came."""
    if EPOCH not in batch.schema.names:  # from before the first group left
        return batch, np.zeros(batch.num_rows, np.int64)
    return batch.drop_columns([EPOCH]), batch.column(EPOCH).to_numpy()


class SlotLog:
    """The rows of a commit that one slot has."""

    def __init__(
        self,
        segments: Sequence[Segment],
        split: Split,
        axis: SpillAxis,
        first: Mapping[str, int],
        number: int,
        least: Mapping[str, int],
        released: Released | None = None,
        counted: Mapping[int, CountedSpan] | None = None,
    ) -> None:
        """`first` has by stream the source by whose groups its rows are ordered; rows older than `least` are left out.
        In a query with a ROWS window, `released` tells in which epochs rows came and which wait, and `counted` by
        source with such a window which rows of its stream are in the log."""
        self._split, self._axis, self._number, self._least = split, axis, number, least
        self._streams = {n: s.stream.name for n, s in enumerate(split.plan.query.sources)}
        self._first = first
        self.mapped = all(segment.mapped for segment in segments)
        """Whether rows take no memory of this process until they are copied."""
        self._ranges: dict[str, Ints] = {}
        """By stream the range of groups of each section."""
        self._sections = {
            stream: [
                _LoggedSection(self, stream, segment, section, number)
                for number, (segment, section) in enumerate((s, part) for s in segments for part in s.sections(stream))
            ]
            for stream in split.streams
        }
        self._released = released
        self.rows_windows = {source: self._places(source, span) for source, span in (counted or {}).items()}
        """The places of the rows of each source with a ROWS window."""

    def _places(self, source: int, span: CountedSpan) -> LoggedPlaces:
        def pieces() -> Iterator[tuple[Hashable, pa.RecordBatch]]:
            for section in self._sections[self._streams[source]]:
                for number, batch in enumerate(section.batches()):
                    yield (section.number, number), batch

        return LoggedPlaces(self._split.plan.query, source, pieces, span)

    def rows(self, source: int, groups: Ints, copied: bool = False) -> Iterator[LoggedRows]:
        """All rows of a source of these groups, which are in order. With `copied` they are copied out of the log as
        soon as their group is known: that is less work where all of them are needed."""
        stream, first = self._streams[source], self._axis.first(source)
        asked = groups - first
        runs = np.split(asked, np.flatnonzero(np.diff(asked) > 1) + 1) if asked.size else []
        time, least = self._split.streams[stream].time, self._least.get(stream, -FOREVER)
        by_range = self._by_range(source)
        for section in self._having(stream, asked) if by_range else self._sections[stream]:
            ordered = by_range and section.starts is not None
            if by_range and not section.may_have_of(asked + self.first(stream)):
                continue
            for found in section.ranges(source, runs) if ordered else section.some(source, asked):
                found = found.copied if copied else found
                if time is not None and section.has_older(least):
                    found = found.only(found.of_them(event_times(found.stored.column(time))) >= least)
                if time is not None and self._released is not None:
                    found = _came_in_order(found, time, self._released)
                if not found.came.size:
                    continue
                which = self._split.share(source, found.batch, self._number)
                found = found if which is None else found.only(which)
                if found.came.size:
                    yield replace(found, groups=found.groups + first)

    def _having(self, stream: str, asked: Ints) -> list[_LoggedSection]:
        """The sections that may have rows of these groups, counted from the first of the source that orders them."""
        sections, first = self._sections[stream], self.first(stream)
        if not asked.size:
            return []
        if stream not in self._ranges:
            self._ranges[stream] = np.array([section.range for section in sections], np.int64).reshape(-1, 2) - first
        begins, ends = self._ranges[stream].T
        least = asked[np.minimum(asked.searchsorted(begins), asked.size - 1)]
        return [sections[n] for n in np.flatnonzero((begins <= least) & (least <= ends))]

    def _by_range(self, source: int) -> bool:
        stream = self._streams[source]
        return stream in self._first and self._axis.places_alike(source, self._first[stream])

    def sizes(self, source: int) -> NDArray[np.float64]:
        """By group of a source, from its first one on, about the bytes that its rows take in a sweep."""
        found, by_range = np.zeros(self._axis.size), self._by_range(source)
        for section in self._sections[self._streams[source]]:
            row = size_of(section.length / max(1, section.rows)) * self._needed(section)
            if by_range and section.starts is not None:
                known, starts = section.starts
                found[known] += np.diff(starts) * row
            else:
                for batch in section.batches():
                    found += np.bincount(section.groups(source, batch), minlength=found.size) * row
        return found

    def _needed(self, section: _LoggedSection) -> float:
        """About the share of the rows of a section that are not too old."""
        least, (oldest, newest) = self._least.get(section.stream, -FOREVER), section.times
        return 1.0 if oldest >= least else max(0.0, (newest - least + 1) / (newest - oldest + 1))

    def own(self, groups: Ints) -> Ints:
        """Those of these groups of which the slot can have rows."""
        partitioning, axis = self._split.partitioning, self._axis
        places = zip(partitioning.axes, self._split.places, partitioning.coordinates(self._number), strict=True)
        for other, place, here in places:
            if (other.keys, other.row) == (axis.keys, axis.row):
                hot = [key.group for key in self._split.hot if here in key.slots]
                groups = groups[(place[groups] == here) | np.isin(groups, hot)]
        return groups

    def groups(self, source: int, batch: pa.RecordBatch) -> Ints:
        """The groups of rows, from the first one of the source on."""
        return groups_along(self._axis, self._split.plan, source, batch) - self._axis.first(source)

    def some(self, source: int, batch: pa.RecordBatch, asked: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """The rows of groups that are asked for, and their groups, from the first one of the source on."""
        return rows_along(self._axis, self._split.plan, source, batch, asked)

    @property
    def group_count(self) -> int:
        """The number of groups of a source."""
        return self._axis.size

    def first(self, stream: str) -> int:
        """The first group of the source that orders the rows of a stream."""
        return self._axis.first(self._first[stream])

    def starts(self, stream: str, batch: pa.RecordBatch) -> tuple[Ints, Ints] | None:
        """The groups of rows that are in the order of groups, where each of these begins, and the end of the last one;
        None if they are not in order. Groups without rows are left out: of many groups a section has few."""
        groups = self.groups(self._first[stream], epochs(batch)[0])
        if (groups[1:] < groups[:-1]).any():
            return None
        known, firsts = np.unique(groups, return_index=True)
        return known, np.append(firsts, groups.size)

    def places(self, source: int, section: int, number: int, first: int, batch: pa.RecordBatch) -> Ints | None:
        """The places in their stream of rows of a section, from row `first` on of its batch of this number; None
        without a ROWS window."""
        time = self._split.streams[self._streams[source]].time
        if time is None or source not in self.rows_windows:
            return None
        return self.rows_windows[source].of((section, number), first, event_times(batch.column(time)))

    def times(self, stream: str, batch: pa.RecordBatch) -> tuple[int, int]:
        """The oldest and the newest time of rows; rows of a table are never too old."""
        time = self._split.streams[stream].time
        times = np.empty(0, np.int64) if time is None else event_times(batch.column(time))
        return int(times.min(initial=FOREVER)), int(times.max(initial=-FOREVER))


class _LoggedSection:
    """A section of the log, as a slot reads it."""

    def __init__(self, log: SlotLog, stream: str, segment: Segment, section: Section, number: int) -> None:
        self._log, self.stream, self._segment, self._section, self.number = log, stream, segment, section, number
        self.length, self.rows = section.length, section.rows
        self.range = (-FOREVER, FOREVER) if section.first is None else (section.first, section.last)
        """The range of groups that it may have."""
        self._mapped: list[pa.RecordBatch] | None = None

    def batches(self) -> list[pa.RecordBatch]:
        """All rows."""
        if self._mapped is not None:
            return self._mapped
        found = self._segment.read(self._section)
        if self._segment.mapped:
            self._mapped = found
        return found

    @cached_property
    def starts(self) -> tuple[Ints, Ints] | None:
        """Its groups and where each begins, and the end; None if the rows are not in the order of groups."""
        if self._section.first is None:
            return None
        if self._section.counts is not None:
            counts = np.array(self._section.counts)
            known = np.flatnonzero(counts)
            first = self._section.first - self._log.first(self.stream)
            return first + known, np.append(0, np.cumsum(counts[known]))
        return self._log.starts(self.stream, self.batches()[0]) if len(self.batches()) == 1 else None

    def may_have_of(self, groups: Ints) -> bool:
        """Whether it may have rows of these groups, which are in order."""
        return self._section.may_have_of(groups)

    def has_older(self, least: int) -> bool:
        """Whether it may have rows older than `least`, as far as that is known without reading it."""
        return self._section.times is None or self._section.times[0] < least

    @cached_property
    def times(self) -> tuple[int, int]:
        """The times of its oldest and its newest row."""
        if self._section.times is not None:
            return self._section.times
        oldest, newest = zip(*(self._log.times(self.stream, batch) for batch in self.batches()), strict=True)
        return min(oldest), max(newest)

    def groups(self, source: int, batch: pa.RecordBatch) -> Ints:
        """The groups of rows for a source."""
        return self._log.groups(source, epochs(batch)[0])

    def ranges(self, source: int, runs: Sequence[Ints]) -> Iterator[LoggedRows]:
        """The rows of neighbouring groups, for each run of these."""
        assert self.starts is not None
        known, starts = self.starts
        for run in runs:
            begin, end = known.searchsorted([run[0], run[-1] + 1]).tolist()
            if begin < end:
                first, last = starts[[begin, end]].tolist()
                batch, came = epochs(self.batches()[0].slice(first, last - first))
                groups = np.repeat(known[begin:end], np.diff(starts[begin : end + 1]))
                places = self._log.places(source, self.number, 0, first, batch)
                yield LoggedRows(batch, groups, came, places=places)

    def some(self, source: int, asked: Ints) -> Iterator[LoggedRows]:
        """The rows of these groups where they may be anywhere."""
        is_asked = np.zeros(self._log.group_count, np.bool_)
        is_asked[asked[(asked >= 0) & (asked < is_asked.size)]] = True
        for number, batch in enumerate(self.batches()):
            rows, came = epochs(batch)
            at, groups = self._log.some(source, rows, is_asked)
            places = self._log.places(source, self.number, number, 0, rows)
            yield LoggedRows(rows, groups, came[at], at, None if places is None else places[at])


def _came_in_order(rows: LoggedRows, time: str, released: Released) -> LoggedRows:
    """Rows that come when the watermark passes them, without those that still wait."""
    times = rows.of_them(event_times(rows.stored.column(time)))
    here = ~released.wait(times)
    return replace(rows.only(here), came=released.came(times[here]))
