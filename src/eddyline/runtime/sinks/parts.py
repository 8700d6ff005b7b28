"""Writing rows to complete files: none has more rows than its limit, and each has rows of one folder of PARTITION
BY."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.faults import reach
from eddyline.os_errors import why
from eddyline.runtime.sinks.files import FileOptions, Writer, writer
from eddyline.runtime.sinks.partition import Partition


@dataclass
class _Open:
    """A file that is being written."""

    path: Path
    writer: Writer
    rows: int = 0


_MOST_OPEN = 32
"""The most files of different folders that are open at a time."""


class PartWriter:
    """Writes files into `folder` and the folders of its partition, under names that begin with `name`."""

    def __init__(
        self, folder: Path, name: str, options: FileOptions, schema: pa.Schema, most_open: int = _MOST_OPEN
    ) -> None:
        self._folder, self._name, self._options, self._most_open = folder, name, options, most_open
        self._partition = Partition(options.partition_by, schema)
        self._open: dict[str, _Open] = {}
        self._number = 0

    def write(self, table: pa.Table) -> list[Path]:
        """Add rows; returns the files that this completes."""
        done = []
        with self._told():
            for folder, rows in self._partition.split(table):
                start = 0
                while start < rows.num_rows:
                    file = self._open.get(folder) or self._begin(folder)
                    part = rows.slice(start, self._options.rows_per_file - file.rows)
                    file.writer.write(part)
                    start += part.num_rows
                    file.rows += part.num_rows
                    if file.rows >= self._options.rows_per_file:
                        done.append(self._complete(folder))
                if len(self._open) > self._most_open:
                    done.append(self._complete(next(iter(self._open))))
        return done

    def close(self, at_least_one: bool = False) -> list[Path]:
        """Complete and return the open files; with `at_least_one`, an empty file if there is none."""
        with self._told():
            if at_least_one and not self._open:
                self._begin(self._partition.of_nothing)
            return [self._complete(folder) for folder in list(self._open)]

    def _begin(self, folder: str) -> _Open:
        place = self._folder / folder
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{self._name}-{self._number:05}.{self._options.format}"
        self._number += 1
        file = self._open[folder] = _Open(path, writer(path, self._options, self._partition.rest))
        return file

    def _complete(self, folder: str) -> Path:
        file = self._open.pop(folder)
        reach("sink: before a staged file is closed")
        file.writer.close()
        reach("sink: a file is staged")
        return file.path

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None
