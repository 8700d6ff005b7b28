"""Record batches from Python: any iterable of them, a table, a reader."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.source import Chunk, Wanted

Batches: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]


class BatchSource:
    """An iterable is read once, lazily; only its first batch is taken when the source is made, for its schema."""

    endless = False

    def __init__(self, batches: Batches, schema: pa.Schema | None = None) -> None:
        if isinstance(batches, pa.RecordBatch):
            batches = pa.Table.from_batches([batches])
        known = getattr(batches, "schema", None)
        if schema is None and isinstance(known, pa.Schema):
            schema = known
        if isinstance(batches, pa.Table):
            self._batches: Iterator[pa.RecordBatch] = iter(batches.to_batches(65536))
        else:
            self._batches = iter(batches)
        if schema is None:
            first = next(self._batches, None)
            if first is None:
                raise JobError("a stream without batches needs a schema")
            if not isinstance(first, pa.RecordBatch):
                raise JobError(f"a stream yields pyarrow record batches, not {type(first).__name__}")
            schema = first.schema
            self._batches = itertools.chain([first], self._batches)
        self.schema = schema.remove_metadata()

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """The batches, each with the wanted columns in the types of the schema."""
        for batch in self._batches:
            if not isinstance(batch, pa.RecordBatch):
                raise JobError(f"a stream yields pyarrow record batches, not {type(batch).__name__}")
            missing = [name for name in wanted.columns if name not in batch.schema.names]
            if missing:
                raise JobError(f"a batch has no column {missing[0]}; it has {', '.join(batch.schema.names)}")
            raw = {name: batch.column(name) for name in wanted.columns}
            yield chunk_of(self.schema, wanted, raw, batch.num_rows)
