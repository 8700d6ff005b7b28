"""Parquet files: only the wanted columns, one batch of rows in memory at a time.

Declared columns are found by name in any case. A file may have a column in another type, if Arrow casts it (a value
that does not fit makes a dead row), or lack it (NULL); a column that no file has is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.bound.inferred_text import from_file
from eddyline.bound.kept_types import kept
from eddyline.bound.types import sql_type
from eddyline.errors import JobError
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.paths import files, no_columns, unreadable
from eddyline.runtime.sources.source import Chunk, Found, Piece, Wanted
from eddyline.runtime.values.arrow import convert

_BATCH_ROWS = 65536
_READ_BYTES = 1 << 18
"""The bytes that are read of a column at a time. Files are read and not mapped: a mapped file that somebody cuts off
kills the process."""


class ParquetFormat:
    """Files with one schema: the declared one, or that of the first file's metadata."""

    def __init__(self, path: str, declared: pa.Schema | None) -> None:
        self._files = files(path)
        self._declared = declared is not None
        if declared is None and not self._files:
            raise no_columns(path)
        if declared is None:
            first = next(filter(_has_footer, self._files), self._files[0])
            found = _open(first).schema_arrow.remove_metadata()
            declared = from_file(pa.schema([field.with_type(kept(field.type)) for field in found]), first)
        self.schema: pa.Schema = declared

    def is_rowless(self, file: Found) -> bool:
        """Never: a file without rows has a footer, too."""
        return False

    def is_complete(self, file: Found) -> bool:
        """Whether the file has a footer, which a writer adds last."""
        return _has_footer(Path(file.path))

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The row groups of a file."""
        found = []
        opened = _open(Path(file.path))
        at = opened.schema_arrow.get_field_index(time or "")
        for number in range(opened.num_row_groups):
            group = opened.metadata.row_group(number)
            newest = _newest(group.column(at)) if at >= 0 and len(opened.schema_arrow) == group.num_columns else None
            found.append(Piece(file, group.num_rows, number, newest))
        _close(opened)
        return found

    def count(self, file: Found) -> int:
        """The number of rows of a file, from its footer."""
        opened = _open(Path(file.path))
        rows = int(opened.metadata.num_rows)
        _close(opened)
        return rows

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file."""
        return self._read_file(Path(file.path), wanted, None)

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a row group."""
        return self._read_file(Path(piece.file.path), wanted, [piece.group])

    def _read_file(self, path: Path, wanted: Wanted, groups: list[int] | None) -> Iterator[Chunk]:
        file = _open(path)
        places = self._places(path, file.schema_arrow, wanted)
        try:
            columns = [place for place in places.values() if place is not None]
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=columns):
                rows = batch.num_rows
                raw = {
                    name: pa.nulls(rows, self.schema.field(name).type) if place is None else batch.column(place)
                    for name, place in places.items()
                }
                yield chunk_of(self.schema, wanted, raw, rows)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, "parquet", error) from None
        finally:
            _close(file)

    def _places(self, path: Path, found: pa.Schema, wanted: Wanted) -> dict[str, str | None]:
        """The names of the wanted columns in this file; None for a column that it lacks."""
        names = _by_name(found)
        places = {name: name if name in found.names else names.get(name.lower()) for name in wanted.columns}
        for name, place in places.items():
            expected = self.schema.field(name).type
            if place is None:
                if not self._declared:
                    raise JobError(
                        f"{path} has no column {name}, as {self._files[0]} has; declare the columns to read NULL there"
                    )
                if not any(name.lower() in _by_name(_open(file).schema_arrow) for file in self._files):
                    raise JobError(f"{path} has no column {name}; it has {', '.join(found.names)}")
                continue
            here = kept(found.field(place).type)
            if not self._declared and here != expected:
                named = sql_type if sql_type(here) != sql_type(expected) else str  # several layouts have one SQL name
                raise JobError(
                    f"column {name} is {named(here)} in {path} but {named(expected)} in {self._files[0]};"
                    f" declare the columns, with {name} as one type"
                )
            try:
                convert(pa.array([], here), expected)
            except pa.ArrowException:
                raise JobError(
                    f"column {name} is {sql_type(here)} in {path}, which cannot be read as {sql_type(expected)}"
                ) from None
        return places


def _has_footer(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - 4))
            return size >= 12 and stream.read() in (b"PAR1", b"PARE")
    except OSError as error:
        raise unreadable(path, "parquet", error) from None


def _newest(column: pq.ColumnChunkMetaData) -> int | None:
    """The newest time of a column by its statistics; None if they do not have it."""
    known = column.statistics
    if known is None or not known.has_min_max or not isinstance(known.max, datetime):
        return None
    return int(known.max.replace(tzinfo=known.max.tzinfo or UTC).timestamp() * 1e6)


def _by_name(schema: pa.Schema) -> dict[str, str]:
    return {name.lower(): name for name in schema.names}


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, buffer_size=_READ_BYTES)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, "parquet", error) from None


def _close(file: pq.ParquetFile) -> None:
    """Close a file; one that was only read loses nothing if that fails."""
    with contextlib.suppress(OSError):
        file.close()
