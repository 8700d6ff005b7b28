"""Rows of a frame in the order of their event times.

A frame (a pyarrow table, a DataFrame, a relation) is a bag of rows: it has no order of arrival. Read in the order of
their times, no row is late, however many batches there are. A list, an iterator and a reader of record batches have an
order of arrival, and keep it.

Invariant: the order of the rows that were there before never changes when rows are added behind them. A job with a
checkpoint has read the first n rows of an order; so the checkpoint holds the length of the frame at the start of each
run, and the rows between two such lengths are ordered by themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.model import BoundStream
from eddyline.engine.intake import LARGEST_TIME, as_it_travels, event_times, with_time
from eddyline.errors import JobError
from eddyline.runtime.running.job import JobInput
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.runtime.sources.source import Chunk
from eddyline.runtime.values.arrow import convert
from eddyline.state.log.labelled import LabelledFiles
from eddyline.state.log.store import as_name

NO_TIME = np.iinfo(np.int64).min
"""The event time of a row whose time the engine cannot read."""
_CHUNK = 1 << 16
"""Rows of a chunk."""


def is_frame(stream: JobInput) -> bool:
    """Whether the rows of a stream are put in the order of their times."""
    return stream.time is not None and isinstance(stream.source, PythonSource) and stream.source.is_frame


def times_of(rows: pa.RecordBatch, column: str) -> NDArray[np.int64]:
    """Event times in microseconds; NO_TIME where the engine could not read the time."""
    times = rows.column(column)
    found = event_times(times)
    readable = pc.is_valid(times).to_numpy(zero_copy_only=False) & (np.abs(found) <= LARGEST_TIME)
    return np.where(readable, found, NO_TIME)


def by_time(stream: JobInput, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """All rows of these batches in the order of their times, rows without a readable time first; rows of the same time
    keep their order. Batches that are in order are returned as they are."""
    if not batches:
        return batches
    times = np.concatenate([times_in(stream.stream, stream.source.schema, batch) for batch in batches])
    if (times[1:] >= times[:-1]).all():
        return batches
    whole = pa.Table.from_batches([as_it_travels(batch) for batch in batches])
    ordered = whole.take(pa.array(np.argsort(times, kind="stable")))
    return list(ordered.to_batches(_CHUNK))


def times_in(stream: BoundStream, schema: pa.Schema, batch: pa.RecordBatch) -> NDArray[np.int64]:
    """The event times of rows in the types in which a program gave them; the stream reads them in those of `schema`."""
    names = [stream.time or ""] if stream.computed is None else list(stream.computed.reads)
    arrays = [convert(batch.column(name), schema.field(name).type)[0] for name in names]
    rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in names]))
    return times_of(with_time(stream, rows), stream.time or "")


class FrameChunks:
    """The chunks of a frame, in the order of time. The frame is read when the first chunk is asked for."""

    def __init__(self, stream: JobInput) -> None:
        assert isinstance(stream.source, PythonSource)
        self._stream, self._source = stream, stream.source
        self._checkpoint: LabelledFiles | None = None
        self._lengths: list[int] = []
        """The length of the frame at the start of each run, where it was another than before."""
        self._saved = 0
        self._batches: Iterator[pa.RecordBatch] | None = None

    def start_at(self, rows: int, checkpoint: LabelledFiles) -> None:
        """Continue a job that has taken this many rows; the lengths are in the checkpoint."""
        self._checkpoint = checkpoint
        if self._name in checkpoint.store.names("frames"):
            self._lengths = json.loads(checkpoint.read(f"frames/{self._name}"))
        elif rows:
            self._lengths = [rows]
        self._saved = len(self._lengths)

    def save(self) -> None:
        """Write the lengths to the checkpoint, if there is one. Before the first chunk there is nothing to write."""
        if self._checkpoint is not None and self._saved < len(self._lengths):
            self._checkpoint.write(f"frames/{self._name}", json.dumps(self._lengths).encode())
            self._saved = len(self._lengths)

    def __iter__(self) -> FrameChunks:
        return self

    def __next__(self) -> Chunk:
        self._batches = self._batches or self._read()
        return self._source.chunk(self._stream.wanted, next(self._batches))

    @property
    def _name(self) -> str:
        return as_name(self._stream.name)

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Read the frame. Each part of it, from one length to the next, is ordered when it is reached."""
        batches = list(self._source.raw(self._stream.wanted))
        rows = sum(batch.num_rows for batch in batches)
        if self._lengths and rows < self._lengths[-1]:
            raise JobError(f"{self._stream.name} has fewer rows than the job has already read: those must stay")
        if not self._lengths or rows > self._lengths[-1]:
            self._lengths.append(rows)
        return self._ordered(batches)

    def _ordered(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for first, end in pairwise([0, *self._lengths]):
            for batch in by_time(self._stream, cut(batches, first, end)):
                yield from (batch.slice(at, _CHUNK) for at in range(0, batch.num_rows, _CHUNK))


def cut(batches: list[pa.RecordBatch], first: int, end: int) -> list[pa.RecordBatch]:
    """The rows from number `first` to before number `end`.

    >>> [b.to_pylist() for b in cut([pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3, 4]})], 1, 3)]
    [[{'x': 2}], [{'x': 3}]]
    """
    parts, start = [], 0
    for batch in batches:
        low, high = max(first - start, 0), min(end - start, batch.num_rows)
        if low < high:
            parts.append(batch.slice(low, high - low))
        start += batch.num_rows
    return parts
