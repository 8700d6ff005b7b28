"""The durable log of a job: the rows that it may still need, in segments that commits name.

A slot writes at most one segment in a batch: its new rows, and those of older segments that it merges. Once groups have
left memory, each row has the epoch in which it came (spill/generations.py), in a column of its own. Once groups may
leave, the rows of each stream are in the order of groups, so that a sweep reads only sections that have its groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.model import WindowKind
from eddyline.engine.intake import columns_for, event_times
from eddyline.engine.lookups.logged_answers import is_of_slot, table_of
from eddyline.engine.split import Split, groups_along
from eddyline.engine.sweep.logged_places import CountedSpan
from eddyline.plan.bounds import FOREVER
from eddyline.plan.spill_axis import SpillAxis
from eddyline.protocol.checkpoint import LOG, Checkpoint
from eddyline.protocol.commit import Commit, LogFile
from eddyline.protocol.ledger import Ledger, Released
from eddyline.protocol.slot_log import EPOCH, SlotLog, epochs
from eddyline.spill.generations import NEVER, Generations
from eddyline.state.log.by_group import GroupedRows, in_sections
from eddyline.state.log.segment import Segment, SegmentPart, written
from eddyline.state.tuning import DEFAULT as STATE
from eddyline.state.tuning import StateTuning

_TIMES = 256
"""Rows that are read back are put into the order of so many stretches of time."""

_RUNS = 64
"""A section has at most about so many runs of groups."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LogMeta:
    """The metadata of a segment of the log; its label has the batch and the attempt that wrote it."""

    slot: int
    since: int = 0
    """The oldest batch whose rows it has: its own, or that of a segment that it has merged."""


@dataclass(frozen=True)
class Stretch:
    """Rows of a stretch of event time."""

    since: int = -FOREVER
    until: int = FOREVER
    later: Mapping[str, int] = field(default_factory=dict)
    """By stream how many rows that were counted are newer."""

    def has(self, times: Ints) -> NDArray[np.bool_]:
        """Which rows are in it."""
        return (times >= self.since) & (times < self.until)


ALL = Stretch()


class Log:
    """Writes and reads the rows of a job."""

    def __init__(
        self, checkpoint: Checkpoint, split: Split, axis: SpillAxis | None, tuning: StateTuning = STATE
    ) -> None:
        """`split` is that of new rows; `axis` that along which groups leave memory, if they can."""
        self._checkpoint, self._split, self._axis, self._tuning = checkpoint, split, axis, tuning
        self._segments: dict[str, Segment] = {}
        """The segments that sweeps have read."""
        sources, self._asks = split.plan.query.sources, split.plan.query.asks
        self._counted = {s.stream.name for s in sources if s.window.kind is WindowKind.ROWS}
        """The streams of sources with a ROWS window."""
        self._first: dict[str, int] = {}
        """By stream the source in the order of whose groups its rows are: the first that leads or has a key."""
        numbers = range(0 if axis is None else len(sources))
        for source in sorted(numbers, key=lambda s: axis is None or not axis.has(s)):
            if axis is not None and (axis.has(source) or axis.key(source) is not None):
                self._first.setdefault(sources[source].stream.name, source)

    def write(
        self,
        name: str,
        slot: int,
        epoch: int,
        rows: Mapping[str, Sequence[pa.RecordBatch]],
        merged: Sequence[str],
        least: Mapping[str, int],
        by_group: bool = False,
        own: Ints | None = None,
        forgotten: Mapping[str, int] | None = None,
    ) -> LogFile | None:
        """Write one segment with the new rows of a slot, by stream, and those of the segments to merge, in the order of
        groups if it is asked for. Rows older than `least` are left out: they are not needed once the batch is
        committed. `own` are the groups that the slot has, if slots have places by groups. `forgotten` are the
        answers that the slot has forgotten. None if no row remains."""
        segments = [self._checkpoint.segment(old) for old in reversed(merged)]
        kept = _Kept({stream.name: stream.time for stream in self._split.streams.values()}, least)

        def runs(stream: str) -> Iterator[Iterable[pa.RecordBatch]]:
            """The rows of a stream, from each segment and the new ones."""
            for segment in segments:
                batches = (self._in_order(stream, batch, epoch) for batch in segment.batches(stream))
                if forgotten is not None and (table := table_of(stream)) is not None:
                    batches = (_not_forgotten(batch, slot, table, forgotten) for batch in batches)
                yield kept.of(stream, batches)
            new = rows.get(stream, ())
            yield kept.of(stream, (_came_in(batch, epoch) for batch in new) if epoch else new)

        def grouped(stream: str) -> Iterator[Iterable[GroupedRows]]:
            for run, of_segment in zip(runs(stream), [*segments, None], strict=True):
                pieces = (GroupedRows(batch, self._groups(self._first[stream], epochs(batch)[0])) for batch in run)
                if of_segment is not None and all(s.first is not None for s in of_segment.sections(stream)):
                    yield pieces
                else:
                    yield from ([piece] for piece in pieces)

        def parts() -> Iterator[SegmentPart]:
            for stream in dict.fromkeys(
                [*rows, *(stream for segment in reversed(segments) for stream in segment.names)]
            ):
                if by_group and stream in self._first:
                    sizes = self._tuning.section_bytes, self._tuning.merged_bytes
                    for some in in_sections(grouped(stream), *sizes):
                        yield self._section(stream, some)
                elif batches := [batch for run in runs(stream) for batch in run]:
                    yield SegmentPart(stream, _alike(batches), groups=self._runs(stream, own, segments))

        made = parts()
        if (first := next(made, None)) is None:
            return None
        since = min([int(name.partition("-")[0]), *(segment.meta(LogMeta).since for segment in segments)])
        name = f"{LOG}/{name}"
        data = written(chain([first], made), LogMeta(slot, since), self._checkpoint.files.label(name))
        size = self._checkpoint.store.write_all(name, data)  # counts what is kept
        return LogFile(name, slot, kept.rows, kept.newest, size)

    def _section(self, stream: str, some: GroupedRows) -> SegmentPart:
        """Rows in the order of groups."""
        first, last = int(some.groups[0]), int(some.groups[-1])
        counts = tuple(np.bincount(some.groups - first).tolist()) if last - first <= some.groups.size else None
        if (time := self._split.streams[stream].time) is None:
            return SegmentPart(stream, [some.batch], first, last, counts)
        times = event_times(some.batch.column(time))
        return SegmentPart(stream, [some.batch], first, last, counts, (int(times.min()), int(times.max())))

    def _runs(self, stream: str, own: Ints | None, segments: Sequence[Segment]) -> tuple[int, ...] | None:
        """Runs of neighbouring groups, among which are these and those of these segments; None if they are not
        known."""
        if self._axis is None or own is None or not self._is_led(stream):
            return None
        here = np.zeros(self._axis.size, np.bool_)
        here[own] = True
        for section in (section for segment in segments for section in segment.sections(stream)):
            if (known := section.runs) is None:
                return None
            for begin, end in zip(known[::2], known[1::2], strict=True):
                here[begin:end] = True
        return tuple(_few_runs(here).tolist())

    def stretches(self, commit: Commit, moved: Ledger, most: int) -> list[Stretch]:
        """Stretches of time in which the rows of a commit are counted again, one after the other: each has about `most`
        bytes of rows. It is a single one unless rows on disk have to be counted."""
        used = commit.advanced.used
        if self._asks or not moved.epoch or not self._counted or used is None:
            return [Stretch()]
        times: dict[str, list[Ints]] = {stream: [np.empty(0, np.int64)] for stream in self._counted}
        for stream, batch, _ in self._rows(commit):
            if (time := self._split.streams[stream].time) is not None and stream in times:
                some = event_times(batch.column(time))
                times[stream].append(some[some < used])
        known = {stream: np.concatenate(some) for stream, some in times.items()}
        for of_stream in known.values():
            of_stream.sort()
        every = np.concatenate([*known.values()])
        every.sort()
        row = sum(file.bytes for file in commit.log) / max(1, sum(file.rows for file in commit.log))
        ends = [*np.unique(every[:: max(1, int(most / max(1.0, row)))])[1:].tolist(), FOREVER]
        return [
            Stretch(begin, end, {s: int(t.size - t.searchsorted(end)) for s, t in known.items()})
            for begin, end in pairwise([-FOREVER, *ends])
        ]

    def by_epoch(
        self, commit: Commit, moved: Ledger, stretch: Stretch = ALL, own: Ints | None = None
    ) -> Iterator[tuple[int, list[tuple[str, pa.RecordBatch]]]]:
        """The rows of a commit by the epochs in which they came, in the order of these; NEVER for those that wait for
        the watermark. Rows that are on disk for all their sources according to a ledger, which may have moved groups
        since, are left out, unless they are counted. Rows without a time are in the first stretch. If `own` groups are
        given, in order, sections that have none of them are not read."""
        found: dict[int, dict[str, list[pa.RecordBatch]]] = {}
        released = moved.released(commit.advanced.used) if self._counted and not self._asks else None
        for stream, batch, came in self._rows(commit, own):
            if not moved.epoch:
                found.setdefault(0, {}).setdefault(stream, []).append(batch)
                continue
            time = None if table_of(stream) else self._split.streams[stream].time
            wait = np.zeros(came.size, np.bool_)
            if released is not None and time is not None:
                times = event_times(batch.column(time))
                came, wait = released.came(times), released.wait(times)
            here = wait | (stream in self._counted) | self._in_memory(stream, batch, came, moved.generations)
            here &= stretch.since == -FOREVER if time is None else stretch.has(event_times(batch.column(time)))
            came = np.where(wait, NEVER, came)
            for epoch in np.unique(came[here]).tolist():
                which = here & (came == epoch)
                some = batch if which.all() else batch.filter(pa.array(which))
                found.setdefault(epoch, {}).setdefault(stream, []).append(some)
        for epoch, streams in sorted(found.items()):
            yield epoch, [(stream, batch) for stream in streams for batch in self._by_time(stream, streams[stream])]

    def _by_time(self, stream: str, batches: list[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """Rows of which some may be in the order of groups, about in that of their times: then they expire in the order
        in which they are built."""
        time = self._split.streams[stream].time if stream in self._first else None
        if time is None:
            return batches
        batches = [self._in_order(stream, batch, 0) for batch in batches]
        times = [event_times(batch.column(time)) for batch in batches]
        every = np.sort(np.concatenate(times))
        marks = every[:: -(-every.size // _TIMES)]
        runs = ([GroupedRows(b, marks.searchsorted(t, "right"))] for b, t in zip(batches, times, strict=True))
        return (some.batch for some in in_sections(runs, self._tuning.merged_bytes, 4 * self._tuning.merged_bytes))

    def _in_memory(self, stream: str, batch: pa.RecordBatch, came: Ints, generations: Generations) -> NDArray[np.bool_]:
        """Which rows are in memory for some source."""
        if self._axis is None or not generations.left:
            return np.ones(came.size, np.bool_)
        here, query = np.zeros(came.size, np.bool_), self._split.plan.query
        for source in (n for n, s in enumerate(query.sources) if s.stream.name == stream):
            here |= ~generations.on_disk(self._groups(source, batch), came)
        return here

    def of_commit(
        self,
        commit: Commit,
        number: int,
        least: Mapping[str, int],
        released: Released | None = None,
        counted: Mapping[int, CountedSpan] | None = None,
    ) -> SlotLog:
        """The rows of a commit for sweeps of the slot of this number: by stream those that are not older than `least`.
        SlotLog tells what else a query with a ROWS window needs."""
        assert self._axis is not None
        known = self._segments
        self._segments = {f.name: known.get(f.name) or self._checkpoint.segment(f.name) for f in commit.log}
        segments = [*self._segments.values()]
        return SlotLog(segments, self._split, self._axis, self._first, number, least, released, counted)

    def _rows(self, commit: Commit, own: Ints | None = None) -> Iterator[tuple[str, pa.RecordBatch, Ints]]:
        """All rows, with the epochs in which they came, or at least those of `own` groups."""
        for file in commit.log:
            segment = self._checkpoint.segment(file.name)
            for stream in segment.names:
                asked = own if self._is_led(stream) else None
                for section in segment.sections(stream):
                    if asked is None or section.may_have_of(asked):
                        for batch in segment.read(section):
                            yield stream, *epochs(batch)

    def _is_led(self, stream: str) -> bool:
        """Whether all rows of a stream are only in slots that have their groups, for each of its sources."""
        axis, first = self._axis, self._first.get(stream)
        if axis is None or first is None or stream in self._counted:
            return False
        sources = (number for number, s in enumerate(self._split.plan.query.sources) if s.stream.name == stream)
        return all(axis.has(source) and axis.places_alike(source, first) for source in sources)

    def _groups(self, source: int, batch: pa.RecordBatch) -> Ints:
        assert self._axis is not None
        return groups_along(self._axis, self._split.plan, source, batch)

    def _in_order(self, stream: str, batch: pa.RecordBatch, epoch: int) -> pa.RecordBatch:
        """Logged rows with their columns in the order of this run and, if there are epochs, theirs."""
        if table_of(stream) is not None:
            return batch if EPOCH in batch.schema.names else _came_in(batch, 0)
        rows = columns_for(self._split.streams[stream], batch, self._split.needed[stream])
        if EPOCH in batch.schema.names:
            return rows.append_column(EPOCH, batch.column(EPOCH))
        return _came_in(rows, 0) if epoch else rows


def _few_runs(here: NDArray[np.bool_]) -> Ints:
    """Where runs of true values begin and end, one after the other; if there are too many, some have gaps.

    >>> _few_runs(np.array([True, True, False, True])).tolist()
    [0, 2, 3, 4]
    """
    ends = np.flatnonzero(np.diff(here, prepend=False, append=False))
    gaps = ends[2::2] - ends[1:-1:2]
    if gaps.size >= _RUNS:
        shown = np.sort(np.argpartition(gaps, -_RUNS)[-_RUNS:])  # the widest gaps
        inner = np.stack([ends[1:-1:2][shown], ends[2::2][shown]], axis=1).ravel()
        ends = np.concatenate([ends[:1], inner, ends[-1:]])
    return ends


def _came_in(batch: pa.RecordBatch, epoch: int) -> pa.RecordBatch:
    return batch.append_column(EPOCH, pa.array(np.full(batch.num_rows, epoch)))


class _Kept:
    """The rows that are kept of those that are given, as they are given: how many, and their newest times."""

    def __init__(self, times: Mapping[str, str | None], least: Mapping[str, int]) -> None:
        """By stream the name of the time, and the time from which on rows are kept."""
        self._times, self._least = times, least
        self.rows = 0
        self.newest: dict[str, int | None] = {}

    def of(self, stream: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time = self._times.get(stream)
        for batch in batches:
            if time is not None:
                batch = _not_before(batch, time, self._least[stream])
            if batch.num_rows:
                self.rows += batch.num_rows
                newest = None if time is None else int(event_times(batch.column(time)).max())
                known = self.newest.get(stream)
                self.newest[stream] = newest if newest is None or known is None else max(newest, known)
                yield batch


def _not_before(batch: pa.RecordBatch, time: str, least: int) -> pa.RecordBatch:
    """The rows that are not older than `least`; the whole batch if more than half remain, as filtering copies."""
    keep = event_times(batch.column(time)) >= least
    return batch if 2 * np.count_nonzero(keep) > keep.size else batch.filter(pa.array(keep))


def _not_forgotten(batch: pa.RecordBatch, slot: int, table: str, forgotten: Mapping[str, int]) -> pa.RecordBatch:
    """Logged answers of a table without those that a slot has forgotten."""
    came = batch.column(EPOCH).to_numpy()
    gone = (came < forgotten.get(table, 0)) & is_of_slot(slot, batch)
    return batch.filter(pa.array(~gone)) if gone.any() else batch


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Give all batches the same dictionaries: a segment cannot hold dictionaries that differ between batches."""
    if any(pa.types.is_dictionary(field.type) for field in batches[0].schema):
        batches = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return batches
