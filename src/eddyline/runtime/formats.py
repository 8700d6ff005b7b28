"""The sources and sinks of the local engine by the names of their formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TextIO

import pyarrow as pa

from eddyline.bound.model import AccessMethod
from eddyline.cql.declaration import Declaration, DeclaredMethod
from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.extras import install
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.files import writes_files
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sinks.table_sink import ResultTable, TableSink
from eddyline.runtime.sources.file_source import FileFormat, FileSource
from eddyline.runtime.sources.recognition import check_format
from eddyline.runtime.sources.source import Source, check_readable

SOURCES = ("parquet", "csv", "json", "generate", "nexmark", "redis-stream", "kafka")
SINKS = ("parquet", "csv", "json", "print", "delta", "iceberg", "postgres", "kafka")
TABLES = {
    "delta": ("deltalake", "delta"),
    "iceberg": ("pyiceberg", "iceberg"),
    "postgres": ("psycopg", "postgres"),
    "kafka": ("confluent-kafka", "kafka"),
}
"""Sinks that are tables of other systems: the library that each needs, and the extra that installs it."""
ASKED = ("postgres", "sqlite", "duckdb", "redis", "http", "python")
"""The formats of tables with access methods."""

OF_SPARK = ("avro", "binaryfile", "delta", "hudi", "iceberg", "jdbc", "kafka", "orc", "rate", "socket", "text", "xml")
"""Some formats that Spark knows, itself or with a connector."""


def open_source(declaration: Declaration, seed: int, follow: bool = False, checked: bool = False) -> Source:
    """Open the source that a CREATE STREAM or CREATE TABLE names; SettingError if that fails. With `follow`, a source
    that can wait for more rows does so. A declaration that was `checked` before is not compared with the files
    again."""
    format_ = declaration.format
    if format_ in ASKED and declaration.kind == "TABLE":
        message = (
            f"a table in {format_} is asked for its rows; write SCAN, INDEX ON (column) or both behind its options"
        )
        raise SettingError(message, "format")
    if format_ not in SOURCES:
        raise SettingError(f"the local engine does not read '{format_}'{_instead(format_, SOURCES)}", "format")
    if format_ == "generate":
        from eddyline.runtime.sources.generate.source import GenerateSource

        return GenerateSource(declaration, seed)
    if format_ == "nexmark":
        from eddyline.runtime.sources.nexmark.source import NexmarkSource

        return NexmarkSource(declaration, seed, follow and declaration.kind == "STREAM")
    if format_ == "redis-stream":
        try:
            from eddyline.runtime.sources.redis_stream import RedisStream
        except ModuleNotFoundError as error:
            raise SettingError(f"redis-stream needs valkey-py ({error}); type: {install('redis')}") from None
        return RedisStream(declaration, follow and declaration.kind == "STREAM")
    if format_ == "kafka":
        from eddyline.runtime.kafka_client import check_installed

        check_installed()
        from eddyline.runtime.sources.kafka import KafkaSource

        return KafkaSource(declaration, follow and declaration.kind == "STREAM")
    columns = declaration.columns
    declared = None if columns is None else pa.schema([pa.field(name, type_) for name, type_ in columns])
    options = Options.of(declaration)
    path = options.required("path", f"data/{declaration.name}")
    from eddyline.runtime.sources.folders import with_folder_columns

    corrupt = options.choice("corrupt", ("stop", "dead"))
    opened = with_folder_columns(
        path, declared, lambda of_files: _files(format_, path, of_files, options, checked, corrupt == "dead")
    )
    return FileSource(path, opened, follow and declaration.kind == "STREAM", corrupt)


def read_whole(declaration: Declaration) -> Declaration:
    """A table whose only access method is a SCAN that a file or Spark gives is read whole, as without the word."""
    if declaration.methods != (DeclaredMethod(),) or declaration.dead_into is not None:
        return declaration
    hint = did_you_mean(declaration.format, ASKED)  # sqlit: they meant a table that is asked
    return declaration if hint.startswith("; did you mean") else replace(declaration, methods=())


def check_asked(declaration: Declaration) -> None:
    """Check the format, the options and the access methods of a table; SettingError if they are wrong."""
    if declaration.format not in ASKED:
        message = f"a table in '{declaration.format}' is read whole; leave INDEX ON, DEAD INTO and OPTIONS of SCAN out"
        hint = did_you_mean(declaration.format, ASKED)
        known = declaration.format in (*SOURCES, *OF_SPARK)
        raise SettingError(message if known else f"no table can be asked in '{declaration.format}'{hint}", "format")
    from eddyline.runtime.access.tables import open_table

    schema = pa.schema(declaration.columns)
    spelled = {name.lower(): name for name in schema.names}
    methods = [AccessMethod(tuple(spelled[name.lower()] for name in m.columns)) for m in declaration.methods]
    open_table(declaration, schema).check(methods)


def _files(
    format_: str, path: str, declared: pa.Schema | None, options: Options, checked: bool, any_format: bool
) -> FileFormat:
    """The files of a path. With `any_format` some may be of another format."""
    if format_ == "csv":
        return _csv(path, declared, options, checked, any_format)
    options.done()
    if not checked and not any_format:
        check_format(path, format_)
    if format_ == "parquet":
        from eddyline.runtime.sources.parquet import ParquetFormat

        return ParquetFormat(path, declared)
    from eddyline.runtime.sources.json import JsonFormat

    if declared is not None:
        check_readable(format_, declared)
    return JsonFormat(path, declared)


def open_sink(declaration: Declaration, schema: pa.Schema, out: TextIO) -> Sink:
    """Make the sink that a CREATE SINK names, for rows of this schema; SettingError if that fails."""
    format_ = declaration.format
    if format_ not in SINKS:
        raise SettingError(f"the local engine does not write '{format_}'{_instead(format_, SINKS)}", "format")
    options = Options.of(declaration)
    if format_ == "print":
        from eddyline.runtime.sinks.print_rows import PrintSink

        if declaration.partition_by:
            raise SettingError("print writes no folders; leave PARTITION BY out")
        style = options.choice("format", ("table", "json"))
        limit = options.whole("limit", 0) if "limit" in options else None
        options.done()
        return PrintSink(out, schema, style, limit)
    if format_ in TABLES:
        return TableSink(_result_table(declaration, options, schema))
    from eddyline.runtime.sinks.file_sink import FileSink
    from eddyline.runtime.sinks.files import FileOptions, check_columns

    file_options = FileOptions.read(format_, options, declaration.partition_by)
    check_columns(file_options, schema)
    return FileSink(file_options, schema)


def writes_ourselves(sink: Declaration) -> bool:
    """Whether we write to a sink on Spark too; Spark's own writers write to the others."""
    return sink.format == "print" or sink.format in TABLES or writes_files(sink)


def _result_table(declaration: Declaration, options: Options, schema: pa.Schema) -> ResultTable:
    library, extra = TABLES[declaration.format]
    try:
        module = import_module(f"eddyline.runtime.sinks.{declaration.format}")
    except ModuleNotFoundError as error:
        raise SettingError(
            f"a sink in {declaration.format} needs {library} ({error}); type: {install(extra)}", "format"
        ) from None
    table: ResultTable = module.open_table(options, declaration.partition_by, schema)
    return table


def _instead(format_: str, known: Sequence[str]) -> str:
    """The end of a sentence about a format that the local engine does not know.

    >>> _instead("kafka", SOURCES), _instead("parket", SOURCES)
    ('; --engine spark does', "; did you mean 'parquet'?")
    """
    return "; --engine spark does" if format_ in OF_SPARK else did_you_mean(format_, known)


def _csv(path: str, declared: pa.Schema | None, options: Options, checked: bool, any_format: bool) -> FileFormat:
    from eddyline.runtime.sources.csv import CsvFormat
    from eddyline.runtime.sources.csv_text import CsvOptions

    sep = options.char("delimiter", ",")
    quote, escape = options.char("quote", '"'), options.char("escape", "")
    layout = CsvOptions(
        header=options.choice("header", ("auto", "true", "false")),
        sep=options.char("sep", sep) or ",",
        quote=quote,
        escape="" if escape == quote else escape,
        null_value=options.text("nullValue"),
        multi_line=options.flag("multiLine", False),
    )
    if not options.flag("inferSchema", True) and declared is None:
        raise SettingError("without inferSchema the columns must be declared")
    options.done()
    if declared is not None:
        check_readable("csv", declared)
    if not checked and not any_format:
        check_format(path, "csv", objects=layout.header == "false" or declared is not None)
    return CsvFormat(path, declared, layout, checked)
