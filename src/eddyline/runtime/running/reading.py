"""Reads streams side by side: the next rows always come from the stream whose watermark is furthest behind.

State expires with the least of the watermarks, so each second that one stream runs ahead of another costs a second of
state for nothing. A batch waits for a stream whose rows have not arrived, as long as it may; then it continues with the
other streams, which costs state but changes no result. Streams are cut wherever the choice needs it, but consecutive
pieces of one chunk are handed over as one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.engine.intake import with_time
from eddyline.runtime.running.feed import Feed, Offset, RowOffset
from eddyline.runtime.running.job import JobInput
from eddyline.runtime.running.time_order import NO_TIME, times_of
from eddyline.runtime.running.waiting import Waiting
from eddyline.runtime.sources.source import Mark
from eddyline.state.log.labelled import LabelledFiles

_TURNS = 4
"""About how many turns a stream gets in a batch. Watermarks then differ by only a fraction of a batch."""
_SMALL = 1024
_ALL = sys.maxsize


class StreamReader:
    """Reads one stream: rows are taken in turns, and handed over once per batch."""

    def __init__(self, stream: JobInput, follow: bool = False, whole: bool = False, most: int | None = None) -> None:
        """With `follow` the reader waits for new files. A source with offsets of its own gives ranges of about `most`
        rows; with `whole` a batch has whole ranges only, because a commit can name no place inside one."""
        self.stream = stream
        self.ended = False
        self.watermark: int | None = None
        """The largest event time taken so far, less the lateness."""
        self.feed = Feed(stream, follow, most)
        self._offset: RowOffset = (0, 0, 0)
        self._whole = whole and self.feed.has_offsets
        self._marked: Mapping[str, Any] | None = {} if self.feed.has_offsets else None
        """The end of the last range that was taken whole, if the source has offsets of its own."""
        self._mark: Mark | None = None
        """The end of the range that is being taken, if the current chunk is its last one."""
        self._handed: Mapping[str, Any] | None = self._marked
        self._began = False
        self._rows: pa.RecordBatch | None = None
        self._times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._start = self._stop = 0
        self._ready: list[pa.RecordBatch] = []
        self._dead: list[pa.RecordBatch] = []

    def start_at(self, offset: Offset, checkpoint: LabelledFiles) -> None:
        """Continue where an earlier run ended; it wrote this checkpoint."""
        if isinstance(offset, Mapping):
            self._marked = self._handed = offset
        else:
            self._offset = offset
        self.feed.start_at(offset, checkpoint)

    @property
    def offset(self) -> Offset:
        """How far the stream was taken; the start of the next file if the current one has no more rows. Of a source
        with offsets of its own the end of the last range; `complete` takes the rest of a range."""
        if self._marked is not None:
            return self._mark.offset if self._mark is not None and self._used_up() else self._marked
        if self._began and self._used_up():
            self.feed.ready()  # finds out whether the file has more rows
            if self.feed.done > self._offset[0]:
                return self.feed.done, 0, 0
        return self._offset

    @property
    def moved(self) -> bool:
        """Whether a commit would note another offset than the last one, with rows or without."""
        return self._whole and self.offset != self._handed

    @property
    def backlog(self) -> int:
        """About how many rows wait: those that were not taken yet, and those that the source knows of."""
        left = 0 if self._rows is None else int(self._rows.num_rows) - self._stop
        return 0 if self.ended else left + self.feed.backlog

    def ready(self) -> bool:
        """Whether `take` returns without waiting for other programs."""
        return not self._used_up() or self.feed.ready()

    def take(self, most: int) -> int:
        """Takes up to `most` rows of the current chunk or of the next one. Returns how many; 0 at the end, or if the
        stream is silent now."""
        self._began = True
        if self._used_up():
            self._finish_chunk()
            self._rows = None
            if self._mark is not None:
                self._marked, self._mark = self._mark.offset, None
            chunk = self.feed.next()
            if chunk is None:
                self.ended = True
                return 0
            self._mark = chunk.mark
            self._count(0, 0 if chunk.dead is None else chunk.dead.num_rows)
            if chunk.dead is not None:
                self._dead.append(chunk.dead)
            self._rows, self._start, self._stop = with_time(self.stream.stream, chunk.rows), 0, 0
            self._times = times_of(self._rows, self.stream.stream.time or "")
            if chunk.rows.num_rows == 0:
                return 0 if chunk.dead is None else int(chunk.dead.num_rows)
        assert self._rows is not None
        taken = min(most, int(self._rows.num_rows) - self._stop)
        newest = int(self._times[self._stop : self._stop + taken].max())
        self._stop += taken
        self._count(taken, 0)
        if newest != NO_TIME:
            newest -= self.stream.lateness
            self.watermark = newest if self.watermark is None else max(self.watermark, newest)
        return taken

    def complete(self) -> int:
        """Takes the rest of the range that the batch has begun, if it must have whole ones; returns how many rows."""
        taken = 0
        while self._whole and not self.ended and self._rows is not None and not (self._mark and self._used_up()):
            taken += self.take(_ALL)
        return taken

    def hand_over(self) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
        """The readable and the dead rows taken since the last call."""
        self._finish_chunk()
        if self._whole:
            offset = self.offset
            assert isinstance(offset, Mapping)
            self._handed = offset
        ready, dead = self._ready, self._dead
        self._ready, self._dead = [], []
        return _together(ready), dead

    def _count(self, rows: int, dead: int) -> None:
        place, before, dead_before = self._offset
        if place != self.feed.place:
            place, before, dead_before = self.feed.place, 0, 0
        self._offset = (place, before + rows, dead_before + dead)

    def _used_up(self) -> bool:
        return self._rows is None or self._stop == self._rows.num_rows

    def _finish_chunk(self) -> None:
        if self._rows is not None and self._stop > self._start:
            self._ready.append(self._rows.slice(self._start, self._stop - self._start))
            self._start = self._stop


def gather(
    readers: Sequence[StreamReader], rows: int, waiting: Waiting, answers: bool = False
) -> tuple[int, list[str]]:
    """Takes about `rows` rows, in turns. Returns how many, and the streams that may have more. A silent stream is not
    asked again in this batch. If rows wait for `answers`, the batch has begun, also while all streams are silent."""
    waiting.begin()
    step = max(1, rows // (_TURNS * len(readers)))
    asked = [r for r in readers if not r.ended]
    total = 0
    while asked and total < rows:
        reader = min(asked, key=_behind)
        begun = functools.partial(_begun, asked, total + answers)
        taken = reader.take(min(step, rows - total)) if waiting.until_ready(reader, begun) else 0
        total += taken
        if taken == 0:
            asked.remove(reader)
    total += sum(reader.complete() for reader in readers)
    return total, [reader.stream.name for reader in asked]


def _together(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Combine many small batches into one: each batch costs the engine as much time as a thousand rows."""
    if len(batches) < 2 or sum(batch.num_rows for batch in batches) > _SMALL * len(batches):
        return batches
    try:
        return [pa.concat_batches(batches)]
    except pa.ArrowException:  # a type that cannot be concatenated, or too much text for one array
        return batches


def _begun(readers: Sequence[StreamReader], taken: int) -> bool:
    """Whether the batch has a first row: one that was taken or that can be taken now."""
    return taken > 0 or any(reader.ready() for reader in readers)


def _behind(reader: StreamReader) -> int:
    return NO_TIME if reader.watermark is None else reader.watermark
