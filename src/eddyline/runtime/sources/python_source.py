"""Rows that a Python program gives as a stream or table; each run reads them from the beginning if that is possible.

A table, a list and any other object whose `iter()` starts from the beginning can be read by many runs. An iterator (a
generator, a reader) can be read once; a second run would see only the remaining rows, so it is refused. A frame (a
table, a DataFrame, an object with Arrow's stream interface) has no order of arrival; a list and an iterator have.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eddyline.errors import JobError, shown
from eddyline.runtime.sources.batches import ArrowStream, Batches, BatchSource, as_batches, chunk_of_batch
from eddyline.runtime.sources.source import Chunk, Wanted

_IN_MEMORY = (pa.Table, pa.RecordBatch, list, tuple)


class PythonSource:
    """Record batches from Python. `may_block` says that the next batch may take any time to come; `ends` says that the
    batches certainly end, which is not known of an iterator; `is_frame` that they have no order of arrival."""

    endless = False

    def __init__(self, batches: Batches, schema: pa.Schema | None = None) -> None:
        self._batches = as_batches(batches)
        self._first: BatchSource | None = BatchSource(self._batches, schema)
        self.schema: pa.Schema = self._first.schema
        self.may_block = not isinstance(self._batches, _IN_MEMORY)
        self.ends = isinstance(self._batches, (*_IN_MEMORY, ArrowStream))
        self.is_frame = isinstance(self._batches, pa.Table | pa.RecordBatch | ArrowStream)
        self.kind = shown(batches)
        """The kind of object that the program gave, for messages."""

    def count(self) -> int | None:
        """The number of rows; None for an iterator, and for an object that Arrow only streams."""
        if isinstance(self._batches, pa.Table | pa.RecordBatch):
            return int(self._batches.num_rows)
        if isinstance(self._batches, list | tuple):
            return sum(int(batch.num_rows) for batch in self._batches if isinstance(batch, pa.RecordBatch))
        return None

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """The batches from the start; JobError if they were read before and cannot be read again."""
        return self._source().read(wanted)

    def raw(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """As `read`, each batch in its own types."""
        return self._source().raw(wanted)

    def chunk(self, wanted: Wanted, batch: pa.RecordBatch) -> Chunk:
        """A batch of `raw`, in the types of the schema."""
        return chunk_of_batch(self.schema, wanted, batch)

    def _source(self) -> BatchSource:
        source, self._first = self._first, None
        if source is None:
            if isinstance(self._batches, Iterator):
                raise JobError(
                    f"this {type(self._batches).__name__} was read by a run before, and an iterator can be read once;"
                    " make a new el.stream of a new iterator, or of a list or a table"
                )
            source = BatchSource(self._batches, self.schema)
        return source
