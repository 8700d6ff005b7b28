"""What a source is: a schema known before any row is read, and chunks of readable and dead rows.

Invariant: every row of the input is in exactly one chunk, either in `rows` or in `dead`, so that the counts of a run
add up. A row is dead if a value that the query *needs* cannot be read; a value that nobody needs cannot kill a row,
so declaring a dead-letter output never changes a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from eddyline.query.as_text import as_text


@dataclass(frozen=True)
class Chunk:
    """A piece of a source: readable rows, and dead rows as text with their reasons (see `dead_schema`)."""

    rows: pa.RecordBatch
    dead: pa.RecordBatch | None = None


@dataclass(frozen=True)
class Wanted:
    """What a reader should deliver: `needed` columns decide whether a row is readable, `columns` (which include them)
    come along, for late and dead outputs."""

    needed: tuple[str, ...]
    columns: tuple[str, ...]

    @staticmethod
    def of(schema: pa.Schema, needed: Sequence[str], everything: bool) -> Wanted:
        """The needed columns in the order of the schema, never none at all (a row must be countable); or all
        columns."""
        chosen = tuple(n for n in schema.names if n in needed)
        return Wanted(chosen, tuple(schema.names) if everything else chosen or tuple(schema.names[:1]))


@dataclass(frozen=True)
class Found:
    """A file as it was seen: its path, its name in the folder that is read, its size, and when it was last changed (in
    nanoseconds). A generator of rows is one file without a name."""

    path: str = ""
    name: str = ""
    size: int = 0
    changed: int = 0


@dataclass(frozen=True)
class Piece:
    """A part of a source that can be read by itself: a file, or one row group of it. `rows` is about how many, `newest`
    about the newest event time, if that is known. The pieces of a file have the groups 0, 1, 2, ..."""

    file: Found
    rows: int
    group: int = 0
    newest: int | None = None


class Source(Protocol):
    """A stream or a table as a runner sees it."""

    @property
    def schema(self) -> pa.Schema:
        """All columns, without reading rows (but perhaps after a look at the first block)."""

    @property
    def endless(self) -> bool:
        """Whether it never ends by itself."""

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """The rows, from the start, in bounded memory."""


@runtime_checkable
class Files(Source, Protocol):
    """A source of files, each of which is read once."""

    def found(self) -> list[Found]:
        """The files that there are to read now, in the order of their paths."""

    def at(self, name: str, size: int, changed: int) -> Found:
        """The file of this name, as it was seen before."""

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The pieces of a file; `time` is the column of event times."""

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece; JobError if the file is not as it was seen."""

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file; JobError if it is not as it was seen."""


@runtime_checkable
class Log(Source, Protocol):
    """A source with offsets of its own kind (JSON, {} is the beginning): what lies between two of them is the same
    whenever it is read."""

    def plan(self, start: Any, limit: int) -> Any:
        """Where a batch of about `limit` rows that begins at `start` should end; `start` if there is nothing now."""

    def ended(self, end: Any) -> bool:
        """Whether there is nothing to read after an offset, now or later."""

    def between(self, start: Any, end: Any) -> list[Any]:
        """The rows of a batch in pieces, which have `rows`."""

    def read_piece(self, piece: Any, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece."""

    def close(self) -> None:
        """No more is asked for now."""


@runtime_checkable
class Blocking(Protocol):
    """A source that says whether reading it may wait for the world: if so, it is read in a thread."""

    @property
    def may_block(self) -> bool:
        """Whether the next chunk may take any time to come."""


@runtime_checkable
class Framed(Protocol):
    """A source whose rows only Spark can read."""

    @property
    def frame(self) -> Any:
        """The DataFrame."""


_LINE = 64
"""A guess of the bytes of a line."""


def text_piece(file: Found) -> Piece:
    """A file of lines as one piece, with a guess of its rows."""
    return Piece(file, file.size // _LINE + 1)


def no_rows(schema: pa.Schema, wanted: Wanted) -> pa.RecordBatch:
    """The readable rows of a chunk that has only dead ones."""
    return pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(name) for name in wanted.columns]))


def dead_schema(schema: pa.Schema) -> pa.Schema:
    """What the dead rows of a stream look like: its columns as text, and the reason.

    >>> dead_schema(pa.schema([("id", pa.int64())])).names
    ['id', 'reason']
    """
    reason = "dead_reason" if "reason" in schema.names else "reason"
    return pa.schema([*(pa.field(name, pa.string()) for name in schema.names), pa.field(reason, pa.string())])


def dead_rows(schema: pa.Schema, rows: pa.RecordBatch, reasons: pa.Array) -> pa.RecordBatch:
    """Rows (of any types, perhaps lacking columns) in the shape of a dead-letter output."""
    arrays = [
        as_text(rows.column(name)) if name in rows.schema.names else pa.nulls(rows.num_rows, pa.string())
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays([*arrays, reasons], schema=dead_schema(schema))
