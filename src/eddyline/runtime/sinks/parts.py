"""Rows to complete files, none of which has more rows than asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.faults import reach
from eddyline.runtime.sinks.files import FileOptions, Writer, writer
from eddyline.runtime.sources.paths import why


@dataclass
class _Open:
    """A file that is being written."""

    path: Path
    writer: Writer
    rows: int = 0


class PartWriter:
    """Writes files into `folder`, under names that begin with `name`."""

    def __init__(self, folder: Path, name: str, options: FileOptions, schema: pa.Schema) -> None:
        self._folder, self._name, self._options, self._schema = folder, name, options, schema
        self._open: _Open | None = None
        self._number = 0

    def write(self, table: pa.Table) -> list[Path]:
        """Adds rows; returns the files that are complete now."""
        done, start = [], 0
        with self._told():
            while start < table.num_rows:
                file = self._open = self._open or self._begin()
                part = table.slice(start, self._options.rows_per_file - file.rows)
                file.writer.write(part)
                start += part.num_rows
                file.rows += part.num_rows
                if file.rows >= self._options.rows_per_file:
                    done += self._complete()
        return done

    def close(self, at_least_one: bool = False) -> list[Path]:
        """Completes the file in hand, or an empty one if there must be one; returns it."""
        with self._told():
            if at_least_one and self._open is None:
                self._open = self._begin()
            return self._complete()

    def _begin(self) -> _Open:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._name}-{self._number:05}.{self._options.format}"
        self._number += 1
        return _Open(path, writer(path, self._options, self._schema))

    def _complete(self) -> list[Path]:
        file, self._open = self._open, None
        if file is None:
            return []
        reach("sink: before a staged file is closed")
        file.writer.close()
        reach("sink: a file is staged")
        return [file.path]

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None
