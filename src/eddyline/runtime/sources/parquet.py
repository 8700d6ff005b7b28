"""Parquet files: only the wanted columns, one batch of rows in memory at a time.

Declared columns are found by name in any case. A file may have them in another type, if Arrow casts it (a value that
does not fit makes a dead row), or lack them (NULL), but a column that no file has is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import JobError, SettingError
from eddyline.runtime.sources.columns import chunk_of, convert
from eddyline.runtime.sources.paths import files, why
from eddyline.runtime.sources.source import Chunk, Piece, Wanted

_BATCH_ROWS = 65536


class ParquetSource:
    """Files with one schema: the declared one, or that of the first file's metadata."""

    endless = False

    def __init__(self, path: str, declared: pa.Schema | None) -> None:
        self._files = files(path)
        self._declared = declared is not None
        if declared is None and not self._files:
            raise SettingError(f"{path} holds no file to take the columns from; declare them")
        self.schema = declared if declared is not None else _open(self._files[0]).schema_arrow.remove_metadata()

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """All rows, file after file."""
        for path in self._files:
            yield from self._read_file(path, wanted, None)

    def pieces(self, time: str | None = None) -> list[Piece]:
        """The row groups of all files."""
        found = []
        for path in self._files:
            file = _open(path)
            at = file.schema_arrow.get_field_index(time or "")
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                newest = _newest(group.column(at)) if at >= 0 and len(file.schema_arrow) == group.num_columns else None
                found.append(Piece(str(path), group.num_rows, number, newest))
            file.close()
        return found

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a row group."""
        return self._read_file(Path(piece.path), wanted, [piece.group])

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
            raise JobError(f"{path} cannot be read as parquet: {why(error)}") from None
        finally:
            file.close()

    def _places(self, path: Path, found: pa.Schema, wanted: Wanted) -> dict[str, str | None]:
        """What the wanted columns are called in this file; None for one that it lacks."""
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
            here = found.field(place).type
            if not self._declared and here != expected:
                raise JobError(
                    f"column {name} is {here} in {path} but {expected} in {self._files[0]}; declare the columns"
                )
            try:
                convert(pa.array([], here), expected)
            except pa.ArrowException:
                raise JobError(f"column {name} is {here} in {path}, which cannot be read as {expected}") from None
        return places


def _newest(column: pq.ColumnChunkMetaData) -> int | None:
    """The newest time of a column of times, as its statistics have it."""
    known = column.statistics
    if known is None or not known.has_min_max or not hasattr(known.max, "timestamp"):
        return None
    return int(known.max.replace(tzinfo=known.max.tzinfo or UTC).timestamp() * 1e6)


def _by_name(schema: pa.Schema) -> dict[str, str]:
    return {name.lower(): name for name in schema.names}


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise JobError(f"{path} cannot be read as parquet: {why(error)}") from None
