"""What a Python program hands over as a stream or table: read anew by every run where that is possible.

A table or a list starts from its beginning each time, as does anything whose `iter()` does. An iterator (a generator, a
reader) can be read once; a second run over it would see what the first one left, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from eddyline.errors import JobError, SettingError
from eddyline.runtime.sources.batches import Batches, BatchSource
from eddyline.runtime.sources.source import Chunk, Wanted

_IN_MEMORY = (pa.Table, pa.RecordBatch, list, tuple)


class PythonSource:
    """Record batches from Python. `may_block` says that asking for the next batch may take any time."""

    endless = False

    def __init__(self, batches: Batches, schema: pa.Schema | None = None) -> None:
        if not isinstance(batches, (*_IN_MEMORY, Iterable)):
            raise SettingError(
                f"a stream is an iterable of pyarrow record batches, a table or a reader, not {type(batches).__name__}"
            )
        self._batches = batches
        self._first: BatchSource | None = BatchSource(batches, schema)
        self.schema: pa.Schema = self._first.schema
        self.may_block = not isinstance(batches, _IN_MEMORY)

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """The batches from the start; JobError if they were read before and cannot be read again."""
        source, self._first = self._first, None
        if source is None:
            if isinstance(self._batches, Iterator):
                raise JobError(
                    f"this {type(self._batches).__name__} was read by a run before, and an iterator can be read once;"
                    " make a new el.stream of a new iterator, or of a list or a table"
                )
            source = BatchSource(self._batches, self.schema)
        return source.read(wanted)
