"""The interface of sources: a schema known before any row is read, and chunks of readable and dead rows.

Invariant: every row of the input is in exactly one chunk, either in `rows` or in `dead`, so that the counts of a run
add up. A row is dead if a value that the query *needs* cannot be read; other unreadable values do not make a row dead,
so declaring a dead-letter output never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from eddyline.bound.as_text import as_text
from eddyline.bound.types import sql_type
from eddyline.errors import SettingError
from eddyline.runtime.values.text import readable_type


@dataclass(frozen=True)
class Mark:
    """The end of a range of an `OffsetSource`: its offset, and about how many rows wait after it."""

    offset: Any
    backlog: int = 0


@dataclass(frozen=True)
class Chunk:
    """A piece of a source: readable rows, and dead rows as text with their reasons (see `dead_schema`). It has a mark
    if a range of the source ends with it."""

    rows: pa.RecordBatch
    dead: pa.RecordBatch | None = None
    mark: Mark | None = None


@dataclass(frozen=True)
class Wanted:
    """The columns that a reader should deliver: the `needed` columns decide whether a row is readable; `columns`
    includes them and adds the columns for late and dead outputs."""

    needed: tuple[str, ...]
    columns: tuple[str, ...]

    @staticmethod
    def of(schema: pa.Schema, needed: Sequence[str], everything: bool) -> Wanted:
        """The needed columns in the order of the schema, at least one (rows must be counted); with `everything`, all
        columns."""
        chosen = tuple(n for n in schema.names if n in needed)
        return Wanted(chosen, tuple(schema.names) if everything else chosen or tuple(schema.names[:1]))


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it was found: its path, its name relative to the folder that is read, its size, the time of its last
    change (in nanoseconds), and its number on the disk, 0 if it is not known. A generator of rows is one file without a
    name."""

    path: str = ""
    name: str = ""
    size: int = 0
    changed: int = 0
    number: int = field(default=0, compare=False)
    """Not compared: a file that was copied back with its time is the same one."""


@dataclass(frozen=True)
class Piece:
    """A part of a source that can be read by itself: a file, or one row group of it. `rows` is its approximate number
    of rows, `newest` its approximate newest event time, if known. The pieces of a file have the groups 0, 1, 2, ..."""

    file: Found
    rows: int
    group: int = 0
    newest: int | None = None


class Source(Protocol):
    """A stream or a table as a runner sees it."""

    @property
    def schema(self) -> pa.Schema:
        """All columns; known without reading rows, except perhaps the first block."""

    @property
    def endless(self) -> bool:
        """Whether the source never ends by itself."""

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """The rows, from the start, in bounded memory."""


@runtime_checkable
class Files(Source, Protocol):
    """A source of files, each of which is read once."""

    def found(self) -> list[Found]:
        """The files to read now, in the order of their paths."""

    def at(self, name: str, size: int, changed: int, number: int = 0) -> Found:
        """The file of this name, with the size, time and number with which it was found before."""

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The pieces of a file; `time` is the column of event times."""

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece; JobError if the file has changed since it was found."""

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file; JobError if the file has changed since it was found."""


@runtime_checkable
class OffsetSource(Source, Protocol):
    """A source with offsets of its own kind (JSON, {} is the beginning): the rows between two offsets are the same
    whenever they are read."""

    def plan(self, start: Any, limit: int) -> Any:
        """The end of a batch of about `limit` rows that begins at `start`; `start` if there are no rows now."""

    def ended(self, end: Any) -> bool:
        """Whether there are no rows after an offset, now and later."""

    def backlog(self, end: Any) -> int:
        """The number of rows after an offset now."""

    def between(self, start: Any, end: Any) -> list[Any]:
        """The rows of a batch in pieces, each with its number of rows in `rows`."""

    def read_piece(self, piece: Any, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece."""

    def read_from(self, start: Any, wanted: Wanted, most: int | None = None) -> Iterator[Chunk]:
        """The rows after an offset, in ranges of about `most` rows; the last chunk of each range has a mark."""

    def close(self) -> None:
        """Release connections: no more rows are needed now."""


@runtime_checkable
class KnownById(Protocol):
    """A source that can tell what it reads from another of the same name."""

    def check_same(self, offset: Any) -> None:
        """JobError if the offset is of another one: what the job has read was deleted and made again."""


@runtime_checkable
class Blocking(Protocol):
    """A source that may wait for the outside world: if it says so, it is read in a thread."""

    @property
    def may_block(self) -> bool:
        """Whether the next chunk may take any time to come."""


@runtime_checkable
class Counted(Protocol):
    """A source that may know how many rows it has before they are read."""

    def count(self) -> int | None:
        """The number of all rows, also of those that cannot be read; None: not known."""


@runtime_checkable
class Framed(Protocol):
    """A source whose rows only Spark can read."""

    @property
    def frame(self) -> Any:
        """The DataFrame."""


def check_readable(format_: str, schema: pa.Schema) -> None:
    """SettingError for a column whose values cannot be read from text of a format."""
    for column in schema:
        if (wrong := _unreadable(column.type, format_ == "json")) is not None:
            raise SettingError(f"column {column.name}: a value of type {sql_type(wrong)} cannot be read from {format_}")


def _unreadable(type_: pa.DataType, nested: bool) -> pa.DataType | None:
    """The type in a type that cannot be read from text; with `nested` those inside lists, structs and maps."""
    if nested and pa.types.is_nested(type_):
        inner = (_unreadable(type_.field(at).type, nested) for at in range(type_.num_fields))
        return next((wrong for wrong in inner if wrong is not None), None)
    return None if readable_type(type_) else type_


_LINE = 64
"""A guess of the bytes of a line."""


def text_piece(file: Found) -> Piece:
    """A file of lines as one piece, with a guess of its rows."""
    return Piece(file, file.size // _LINE + 1)


def no_rows(schema: pa.Schema, wanted: Wanted) -> pa.RecordBatch:
    """The readable rows of a chunk that has only dead ones."""
    return pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(name) for name in wanted.columns]))


def ranges(source: OffsetSource, start: Any, limit: int, wait: Callable[[], None]) -> Iterator[tuple[Any, Any]]:
    """Ranges of about `limit` rows, one after the other, until the source has ended. Where there are no rows now it
    waits."""
    at = start
    while not source.ended(at):
        end = source.plan(at, limit)
        if end == at:
            wait()
            continue
        yield at, end
        at = end


def marked(chunks: Iterable[Chunk], mark: Mark, schema: pa.Schema, wanted: Wanted) -> Iterator[Chunk]:
    """The chunks of a range that are not empty, the last one with a mark; an empty one with the mark if all are."""
    last: Chunk | None = None
    for chunk in chunks:
        if chunk.rows.num_rows or chunk.dead is not None:
            if last is not None:
                yield last
            last = chunk
    yield replace(last or Chunk(no_rows(schema, wanted)), mark=mark)


def dead_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a stream's dead rows: its columns as text, and the reason.

    >>> dead_schema(pa.schema([("id", pa.int64())])).names
    ['id', 'reason']
    """
    reason = "dead_reason" if "reason" in schema.names else "reason"
    return pa.schema([*(pa.field(name, pa.string()) for name in schema.names), pa.field(reason, pa.string())])


def dead_rows(schema: pa.Schema, rows: pa.RecordBatch, reasons: pa.Array) -> pa.RecordBatch:
    """Rows (of any types, perhaps lacking columns) with the schema of a dead-letter output."""
    arrays = [
        as_text(rows.column(name)) if name in rows.schema.names else pa.nulls(rows.num_rows, pa.string())
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays([*arrays, reasons], schema=dead_schema(schema))
