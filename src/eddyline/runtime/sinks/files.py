"""Files of results: their options, and how rows of each format are written (parquet, csv, json)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from eddyline.bound.as_text import as_text, has_far_years
from eddyline.bound.types import MONTHS, sql_type
from eddyline.cql.declaration import Declaration
from eddyline.errors import SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.json_lines import lines, writable
from eddyline.runtime.sinks.partition import Partition
from eddyline.runtime.values.json import is_bytes

FILE_SINKS = ("parquet", "csv", "json")


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
    partition_by: tuple[str, ...] = ()

    @staticmethod
    def read(format_: str, options: Options, partition_by: Sequence[str] = ()) -> FileOptions:
        """Read the options from the declaration's OPTIONS and PARTITION BY; SettingError if one is wrong."""
        path = options.required("path", "out")
        if has_scheme(path):
            raise SettingError(f"the local engine writes no files to {path}: use --engine spark, or a folder")
        mode = options.choice("mode", ("error", "overwrite", "append"))
        rows = options.whole("rows_per_file", 1_000_000, 1)
        compression = (
            options.choice("compression", ("snappy", "zstd", "lz4", "gzip", "none")) if format_ == "parquet" else ""
        )
        header = options.flag("header", True) if format_ == "csv" else False
        sep = options.char("sep", ",") if format_ == "csv" else ""
        options.done()
        return FileOptions(Path(path), format_, mode, rows, compression, header, sep, tuple(partition_by))


def writes_files(sink: Declaration) -> bool:
    """Whether we write the files of a sink. Spark's own writers write other formats, and paths of other file systems,
    such as s3a://bucket/out."""
    return sink.format in FILE_SINKS and not has_scheme(sink.options.get("path", ""))


def has_scheme(path: str) -> bool:
    """Whether a path has a scheme and so is on another file system."""
    return "://" in path


def check_columns(options: FileOptions, schema: pa.Schema) -> None:
    """SettingError for columns whose values could not be read back."""
    format_ = options.format
    if not schema.names:
        return  # only Spark will know the columns
    for field in Partition(options.partition_by, schema).rest:
        plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if format_ == "csv" and (pa.types.is_nested(plain) or is_bytes(plain)):
            raise SettingError(
                f"csv cannot hold a column of type {sql_type(field.type)}, as {field.name} is; use parquet or json"
            )
        if format_ == "parquet" and field.type == MONTHS:
            raise SettingError(
                f"parquet cannot hold an INTERVAL with months, as {field.name} may be; use csv or json, or a number"
                " of months"
            )
        if format_ == "json" and not writable(field.type):
            raise SettingError(
                f"json cannot hold a map whose keys are not text, as column {field.name} does; use parquet"
            )


class _JsonWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._file.writelines(f"{line}\n" for line in lines(batch).to_pylist())

    def close(self) -> None:
        self._file.close()


class _CsvWriter:
    """Writes csv; types that Arrow does not write as csv (lengths of time, for example) become text."""

    def __init__(self, path: Path, options: FileOptions, schema: pa.Schema) -> None:
        self._plain = pa.schema([pa.field(f.name, _csv_type(f.type)) for f in schema])
        layout = pcsv.WriteOptions(include_header=options.header, delimiter=options.sep)
        self._rows = pcsv.WriteOptions(include_header=False, delimiter=options.sep)
        self._file: Any = pa.OSFile(str(path), "wb")
        self._writer: Any = pcsv.CSVWriter(self._file, self._plain, write_options=layout)

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            columns = [
                column if column.type == field.type else as_text(column)
                for field, column in zip(self._plain, batch.columns, strict=True)
            ]
            if any(map(has_far_years, columns)):  # as text, which the writer of this schema does not take
                texts = [as_text(column) if has_far_years(column) else column for column in columns]
                pcsv.write_csv(pa.RecordBatch.from_arrays(texts, self._plain.names), self._file, self._rows)
            else:
                self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._plain))

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def _csv_type(type_: pa.DataType) -> pa.DataType:
    t = pa.types
    numbers, times = (t.is_integer, t.is_floating, t.is_decimal), (t.is_date, t.is_time, t.is_timestamp)
    known = any(matches(type_) for matches in (*numbers, *times, t.is_boolean, t.is_string))
    return type_ if known else pa.string()


def writer(path: Path, options: FileOptions, schema: pa.Schema) -> Writer:
    """Begin a file in the format of the options."""
    if options.format == "json":
        return _JsonWriter(path)
    if options.format == "csv":
        return _CsvWriter(path, options, schema)
    parquet: Writer = pq.ParquetWriter(path, schema, compression=options.compression, use_dictionary=repeating(schema))
    return parquet


def repeating(schema: pa.Schema) -> list[str]:
    """The columns for which parquet should try a dictionary. Floating-point numbers seldom repeat: a dictionary for
    them costs ten times as much as writing them, and makes the file larger."""
    return [field.name for field in schema if not pa.types.is_floating(field.type)]
