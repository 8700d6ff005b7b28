"""Reads streams side by side: the next rows always come from the stream whose watermark is furthest behind.

State expires with the least of the watermarks, so each second that one stream runs ahead of another costs a second of
state for nothing. A batch waits for a stream whose rows have not arrived, as long as it may; then it continues with the
other streams, which costs state but changes no result. Streams are cut wherever the choice needs it, but consecutive
pieces of one chunk are handed over as one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.engine.intake import LARGEST_TIME, event_times, with_time
from eddyline.runtime.running.feed import Feed, RowOffset
from eddyline.runtime.running.job import JobInput
from eddyline.runtime.running.waiting import Waiting
from eddyline.state.log.store import Store

_TURNS = 4
"""About how many turns a stream gets in a batch. Watermarks then differ by only a fraction of a batch."""
_SMALL = 1024
_NO_TIME = np.iinfo(np.int64).min


class StreamReader:
    """Reads one stream: rows are taken in turns, and handed over once per batch."""

    def __init__(self, stream: JobInput, follow: bool = False) -> None:
        """With `follow` the reader waits for new files."""
        self.stream = stream
        self.ended = False
        self.watermark: int | None = None
        """The largest event time taken so far, less the lateness."""
        self.feed = Feed(stream, follow)
        self._offset: RowOffset = (0, 0, 0)
        self._began = False
        self._rows: pa.RecordBatch | None = None
        self._times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._start = self._stop = 0
        self._ready: list[pa.RecordBatch] = []
        self._dead: list[pa.RecordBatch] = []

    def start_at(self, offset: RowOffset, store: Store) -> None:
        """Continue where an earlier run ended; the store is its checkpoint."""
        self._offset = offset
        self.feed.start_at(offset, store)

    @property
    def offset(self) -> RowOffset:
        """How far the stream was taken; the start of the next file if the current one has no more rows."""
        if self._began and self._used_up():
            self.feed.ready()  # finds out whether the file has more rows
            if self.feed.done > self._offset[0]:
                return self.feed.done, 0, 0
        return self._offset

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
            chunk = self.feed.next()
            if chunk is None:
                self.ended = True
                return 0
            self._count(0, 0 if chunk.dead is None else chunk.dead.num_rows)
            if chunk.dead is not None:
                self._dead.append(chunk.dead)
            self._rows, self._start, self._stop = with_time(self.stream.stream, chunk.rows), 0, 0
            self._times = _times(self._rows, self.stream.stream.time or "")
            if chunk.rows.num_rows == 0:
                return 0 if chunk.dead is None else int(chunk.dead.num_rows)
        assert self._rows is not None
        taken = min(most, int(self._rows.num_rows) - self._stop)
        newest = int(self._times[self._stop : self._stop + taken].max())
        self._stop += taken
        self._count(taken, 0)
        if newest != _NO_TIME:
            newest -= self.stream.lateness
            self.watermark = newest if self.watermark is None else max(self.watermark, newest)
        return taken

    def hand_over(self) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
        """The readable and the dead rows taken since the last call."""
        self._finish_chunk()
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


def gather(readers: Sequence[StreamReader], rows: int, waiting: Waiting) -> tuple[int, list[str]]:
    """Takes about `rows` rows, in turns. Returns how many, and the streams that may have more. A silent stream is not
    asked again in this batch."""
    waiting.begin()
    step = max(1, rows // (_TURNS * len(readers)))
    asked = [r for r in readers if not r.ended]
    total = 0
    while asked and total < rows:
        reader = min(asked, key=_behind)
        begun = functools.partial(_begun, asked, total)
        taken = reader.take(min(step, rows - total)) if waiting.until_ready(reader, begun) else 0
        total += taken
        if taken == 0:
            asked.remove(reader)
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
    return _NO_TIME if reader.watermark is None else reader.watermark


def _times(rows: pa.RecordBatch, column: str) -> NDArray[np.int64]:
    """Event times in microseconds; _NO_TIME where the engine could not read the time."""
    times = rows.column(column)
    found = event_times(times)
    readable = pc.is_valid(times).to_numpy(zero_copy_only=False) & (np.abs(found) <= LARGEST_TIME)
    return np.where(readable, found, _NO_TIME)
