"""Files part-00000, part-00001, ... in a folder: parquet, csv or json.

A file is written under a name that begins with a dot and renamed when it is complete. A folder that already holds
results is refused unless the sink says `mode 'append'` (numbers go on after theirs) or `mode 'overwrite'`: then new
files stay hidden until the job has succeeded, and only then take the place of the old ones.
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
from eddyline.query.as_text import as_text
from eddyline.query.types import sql_type
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.json_lines import lines, writable
from eddyline.runtime.sources.json_values import is_bytes
from eddyline.runtime.sources.paths import why

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
        self._waiting: list[Path] = []
        """Complete files that are still hidden, under the names that they will get."""

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
        """Makes the folder; goes on after the results in it, or leaves them for now."""
        try:
            self._options.path.mkdir(parents=True, exist_ok=True)
            if self._options.mode == "append":
                self._number = max(map(_number, self._parts()), default=-1) + 1
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
        self._publish()

    def abandon(self) -> None:
        """Removes the file that is not complete, and complete ones that would replace older results."""
        if self._writer is not None:
            self._writer = None
            _hidden(self._file()).unlink(missing_ok=True)
        for file in self._waiting:
            _hidden(file).unlink(missing_ok=True)
        self._waiting = []

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._pending, self._schema)
        self._pending, self._pending_rows = [], 0
        start = 0
        while start < table.num_rows or (self._writer is None and self._number == 0):
            part = table.slice(start, self._options.rows_per_file - self._rows_in_file)
            try:
                if self._writer is None:
                    self._writer = writer(_hidden(self._file()), self._options, self._schema)
                self._writer.write(part)
            except (pa.ArrowException, OSError) as error:
                raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None
            start += part.num_rows
            self._rows_in_file += part.num_rows
            if self._rows_in_file >= self._options.rows_per_file:
                self._complete()

    def _complete(self) -> None:
        """Ends the file in hand."""
        if self._writer is not None:
            try:
                self._writer.close()
            except (pa.ArrowException, OSError) as error:
                raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None
            self._waiting.append(self._file())
            self._writer, self._rows_in_file = None, 0
            self._number += 1
            if self._options.mode != "overwrite":
                self._publish()

    def _publish(self) -> None:
        """Complete files get their names. With `overwrite` this is the end, and what else there is goes."""
        old = self._parts() if self._options.mode == "overwrite" else []
        try:
            while self._waiting:
                _hidden(self._waiting[0]).replace(self._waiting[0])
                old = [file for file in old if file != self._waiting[0]]
                del self._waiting[0]
            for file in old:
                file.unlink()
        except OSError as error:
            raise JobError(f"cannot write to {self._options.path}: {why(error)}") from None

    def _file(self) -> Path:
        return self._options.path / f"part-{self._number:05}.{self._options.format}"

    def _parts(self) -> list[Path]:
        folder = self._options.path
        return [file for file in folder.iterdir() if _PART.match(file.name)] if folder.is_dir() else []


def check_columns(format_: str, schema: pa.Schema) -> None:
    """Refuses (SettingError) columns whose values could not be read back."""
    for field in schema:
        if format_ == "csv" and (pa.types.is_nested(field.type) or is_bytes(field.type)):
            raise SettingError(
                f"csv cannot hold a column of type {sql_type(field.type)}, as {field.name} is; use parquet or json"
            )
        if format_ == "json" and not writable(field.type):
            raise SettingError(
                f"json cannot hold a map whose keys are not text, as column {field.name} does; use parquet"
            )


def _hidden(file: Path) -> Path:
    return file.with_name(f".{file.name}.tmp")


def _number(file: Path) -> int:
    match = _PART.match(file.name)
    return int(match[1]) if match else -1


class _JsonWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._file.writelines(f"{line}\n" for line in lines(batch).to_pylist())

    def close(self) -> None:
        self._file.close()


class _CsvWriter:
    """What Arrow does not write as csv (decimals, times of day, lengths of time) is written as text."""

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


def writer(path: Path, options: FileOptions, schema: pa.Schema) -> Writer:
    """Begins a file."""
    if options.format == "json":
        return _JsonWriter(path)
    if options.format == "csv":
        return _CsvWriter(path, options, schema)
    parquet: Writer = pq.ParquetWriter(path, schema, compression=options.compression, use_dictionary=repeating(schema))
    return parquet


def repeating(schema: pa.Schema) -> list[str]:
    """The columns that parquet should try a dictionary for. Of floating numbers few repeat: looking for them costs ten
    times what writing does, and the file gets larger."""
    return [field.name for field in schema if not pa.types.is_floating(field.type)]
