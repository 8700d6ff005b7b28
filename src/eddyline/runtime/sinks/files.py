"""Files part-00000, part-00001, ... in a folder: parquet, csv or json.

A file is written under a name that begins with a dot and renamed when it is complete. A folder that already holds
results is refused unless the sink says `mode 'overwrite'` (they are deleted when the job starts) or `mode 'append'`
(numbers go on after theirs).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from eddyline.errors import JobError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.json_lines import lines
from eddyline.runtime.sources.paths import why
from eddyline.runtime.sources.source import as_text

_GROUP_ROWS = 65536
"""Rows are collected up to here, so that small batches do not become small row groups."""
_PART = re.compile(r"part-([0-9]{5,})\.")


class Writer(Protocol):
    """Writes tables of one schema to one file."""

    def write(self, table: pa.Table) -> None:
        """Appends rows."""

    def close(self) -> None:
        """Completes the file."""


@dataclass(frozen=True)
class FileOptions:
    """The options of a file sink."""

    path: Path
    format: str
    mode: str
    rows_per_file: int
    compression: str = "snappy"
    header: bool = True
    sep: str = ","

    @staticmethod
    def read(format_: str, options: Options) -> FileOptions:
        """From the declaration's OPTIONS."""
        path = Path(options.required("path", "out"))
        mode = options.choice("mode", ("error", "overwrite", "append"))
        rows = options.whole("rows_per_file", 1_000_000, 1)
        compression = (
            options.choice("compression", ("snappy", "zstd", "lz4", "gzip", "none")) if format_ == "parquet" else ""
        )
        header = options.flag("header", True) if format_ == "csv" else False
        sep = options.char("sep", ",") if format_ == "csv" else ""
        options.done()
        return FileOptions(path, format_, mode, rows, compression, header, sep)


class FileSink:
    """A folder of result files."""

    def __init__(self, options: FileOptions, schema: pa.Schema) -> None:
        self._options, self._schema = options, schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._rows_in_file = 0
        self._number = 0
        self._writer: Writer | None = None

    def check(self) -> None:
        """The folder can be made, and holds no results unless that is allowed."""
        path = self._options.path
        if path.exists() and not path.is_dir():
            raise SettingError(f"{path} is a file; the path of a sink is a folder")
        if self._options.mode == "error" and self._parts():
            raise SettingError(
                f"{path} already holds results; add mode 'overwrite' or mode 'append', or choose another path"
            )

    def open(self) -> None:
        """Makes the folder; deletes the results in it, or goes on after them."""
        try:
            self._options.path.mkdir(parents=True, exist_ok=True)
            parts = self._parts()
            if self._options.mode == "overwrite":
                for part in parts.values():
                    part.unlink()
            elif parts:
                self._number = max(parts) + 1
        except OSError as error:
            raise JobError(f"cannot write to {self._options.path}: {error.strerror}") from None

    def write(self, batch: pa.RecordBatch) -> None:
        """Collects rows and writes them when there are enough."""
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        if self._pending_rows >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Completes the last file; without any row there is one empty file, so that readers find the columns."""
        if self._pending_rows or (self._writer is None and self._number == 0):
            self._flush()
        self._complete()

    def abandon(self) -> None:
        """Removes the file that is not complete."""
        if self._writer is not None:
            self._writer = None
            self._hidden().unlink(missing_ok=True)

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._pending, self._schema)
        self._pending, self._pending_rows = [], 0
        try:
            if self._writer is None:
                self._writer = _writer(self._hidden(), self._options, self._schema)
            self._writer.write(table)
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None
        self._rows_in_file += table.num_rows
        if self._rows_in_file >= self._options.rows_per_file:
            self._complete()

    def _complete(self) -> None:
        if self._writer is not None:
            try:
                self._writer.close()
                self._hidden().rename(self._options.path / self._name())
            except (pa.ArrowException, OSError) as error:
                raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None
            self._writer, self._rows_in_file = None, 0
            self._number += 1

    def _name(self) -> str:
        return f"part-{self._number:05}.{self._options.format}"

    def _hidden(self) -> Path:
        return self._options.path / f".{self._name()}.tmp"

    def _parts(self) -> dict[int, Path]:
        folder = self._options.path
        found = ((_PART.match(f.name), f) for f in folder.iterdir()) if folder.is_dir() else ()
        return {int(match[1]): file for match, file in found if match is not None}


class _JsonWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._file.writelines(f"{line}\n" for line in lines(batch).to_pylist())

    def close(self) -> None:
        self._file.close()


class _CsvWriter:
    """What csv has no notation for (nested values) is written as text."""

    def __init__(self, path: Path, options: FileOptions, schema: pa.Schema) -> None:
        self._plain = pa.schema([pa.field(f.name, _csv_type(f.type)) for f in schema])
        layout = pcsv.WriteOptions(include_header=options.header, delimiter=options.sep)
        self._writer: Any = pcsv.CSVWriter(str(path), self._plain, write_options=layout)

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            columns = [
                column if column.type == field.type else as_text(column)
                for field, column in zip(self._plain, batch.columns, strict=True)
            ]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._plain))

    def close(self) -> None:
        self._writer.close()


def _csv_type(type_: pa.DataType) -> pa.DataType:
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_date)
    return type_ if any(matches(type_) for matches in (*known, pa.types.is_timestamp)) else pa.string()


def _writer(path: Path, options: FileOptions, schema: pa.Schema) -> Writer:
    if options.format == "json":
        return _JsonWriter(path)
    if options.format == "csv":
        return _CsvWriter(path, options, schema)
    writer: Writer = pq.ParquetWriter(path, schema, compression=options.compression)
    return writer
