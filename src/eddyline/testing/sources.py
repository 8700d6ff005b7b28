"""A source in Python with marks in it, with which a test of an end, a crash or a pause takes three lines.

`MarkedSource` is an iterable of record batches for `el.stream`. Marks stand between the batches: PAUSE gives one empty
batch (the stream is silent for a while), ABORT raises `Abort` (the reading process dies here), END ends the stream
whatever follows. Reading continues where it stopped: a new iteration after an ABORT starts after the mark, like a
restarted job that has read the batches before it; `rewind()` starts from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

import pyarrow as pa

from eddyline.errors import JobError


class Mark(Enum):
    """A mark between two batches."""

    END = "END"
    ABORT = "ABORT"
    PAUSE = "PAUSE"


END, ABORT, PAUSE = Mark.END, Mark.ABORT, Mark.PAUSE


class Abort(JobError):
    """Raised at an ABORT mark: it stands for a real crash."""


class MarkedSource:
    """Record batches of one schema, with marks.

    >>> b = pa.record_batch({"x": [1, 2]})
    >>> source = MarkedSource([b, PAUSE, b, ABORT, b, END, b])
    >>> def read():
    ...     for batch in source:
    ...         yield batch.num_rows
    >>> rows = read()
    >>> next(rows), next(rows), next(rows)
    (2, 0, 2)
    >>> next(rows)
    Traceback (most recent call last):
    ...
    eddyline.testing.sources.Abort: the source was aborted at item 3
    >>> list(read())
    [2]
    """

    def __init__(self, items: Sequence[pa.RecordBatch | Mark]) -> None:
        schemas = [item.schema for item in items if not isinstance(item, Mark)]
        if not schemas:
            raise ValueError("a source needs a batch, an empty one at least, to know its schema")
        self.items = tuple(items)
        self.schema: pa.Schema = schemas[0]
        self.position = 0

    def rewind(self) -> None:
        """Start from the beginning."""
        self.position = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while self.position < len(self.items):
            item = self.items[self.position]
            if item is END:
                return
            self.position += 1
            if item is ABORT:
                raise Abort(f"the source was aborted at item {self.position - 1}")
            yield pa.RecordBatch.from_pylist([], schema=self.schema) if item is PAUSE else item
