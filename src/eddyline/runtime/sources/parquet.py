"""Parquet files: only the wanted columns, one batch of rows in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.errors import JobError, SettingError
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.paths import files, why
from eddyline.runtime.sources.source import Chunk, Wanted

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
            file = _open(path)
            self._check(path, file.schema_arrow, wanted)
            try:
                for batch in file.iter_batches(_BATCH_ROWS, columns=list(wanted.columns)):
                    raw = {name: batch.column(name) for name in wanted.columns}
                    yield chunk_of(self.schema, wanted, raw, batch.num_rows)
            except (pa.ArrowException, OSError) as error:
                raise JobError(f"{path} cannot be read as parquet: {why(error)}") from None
            finally:
                file.close()

    def _check(self, path: Path, found: pa.Schema, wanted: Wanted) -> None:
        for name in wanted.columns:
            if name not in found.names:
                raise JobError(f"{path} has no column {name}; it has {', '.join(found.names)}")
            here, expected = found.field(name).type, self.schema.field(name).type
            if not self._declared and here != expected:
                raise JobError(
                    f"column {name} is {here} in {path} but {expected} in {self._files[0]}; declare the columns"
                )


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise JobError(f"{path} cannot be read as parquet: {why(error)}") from None
