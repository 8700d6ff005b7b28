"""Result rows as Kafka messages, column by column: Python makes one object for each message and none for a value.

A message has a value in the chosen format, and may have a key, headers and a time. The key of one column is its text
(bytes stay bytes), the key of several columns is a JSON object. A header is the text of a column or a constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.as_text import as_text
from eddyline.bound.types import sql_type
from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.avro_records import record_schema, records
from eddyline.runtime.sinks.json_lines import lines, writable
from eddyline.runtime.values.json import is_bytes

FORMATS = ("json", "csv", "avro", "raw")
_HEADER = re.compile(r'\s*([^\s=,"]+)\s*(?:=\s*(?:"([^"]*)"|([^\s=,"]+)))?\s*(?:,|$)')


@dataclass(frozen=True)
class MessageHeader:
    """A header of every message: the text of a column, or a constant."""

    name: str
    column: str = ""
    constant: str | None = None


@dataclass(frozen=True)
class MessageOptions:
    """Which columns of a row become which part of a message."""

    format: str = "json"
    key: tuple[str, ...] = ()
    headers: tuple[MessageHeader, ...] = ()
    timestamp: str = ""

    @staticmethod
    def read(options: Options, schema: pa.Schema) -> MessageOptions:
        """Take the options of a declaration; SettingError if one is wrong or names no column."""
        format_ = options.choice("format", FORMATS)
        key = tuple(_found(name.strip(), schema, "key") for name in options.text("key").split(",") if name.strip())
        headers = tuple(_headers(options.text("headers"), schema))
        time = options.text("timestamp")
        if time and schema.names:
            time = _found(time, schema, "timestamp")
            if not pa.types.is_timestamp(schema.field(time).type):
                raise SettingError(f"option timestamp is a column with times, and {time} has none", "option timestamp")
        return MessageOptions(format_, key, headers, time)


class MessageEncoder:
    """Makes messages of rows of one schema."""

    def __init__(self, options: MessageOptions, schema: pa.Schema) -> None:
        """SettingError for columns that the format cannot hold."""
        self._options = options
        aside = {*options.key, *(h.column for h in options.headers), options.timestamp}
        self._value = _raw_column(schema, aside) if options.format == "raw" and schema.names else ""
        self._avro = record_schema(schema) if options.format == "avro" and schema.names else None
        for field in schema:
            if options.format == "csv" and (pa.types.is_nested(field.type) or is_bytes(field.type)):
                raise SettingError(
                    f"csv cannot hold a column of type {sql_type(field.type)}, as {field.name} is; use json or avro"
                )
            if options.format == "json" and not writable(field.type):
                raise SettingError(f"json cannot hold a map whose keys are not text, as column {field.name} does")

    @property
    def simple(self) -> bool:
        """Whether messages have only a value and perhaps a key: the client takes such messages many at a time."""
        return not self._options.headers and not self._options.timestamp

    def values(self, batch: pa.RecordBatch) -> list[Any]:
        """The value of each row: text, bytes or None."""
        match self._options.format:
            case "json":
                return list(lines(batch).to_pylist())
            case "csv":
                return list(_csv(batch).to_pylist())
            case "avro":
                return records(batch, self._avro)
        return _plain(batch.column(self._value)).to_pylist()  # type: ignore[no-any-return]

    def keys(self, batch: pa.RecordBatch) -> list[Any] | None:
        """The key of each row, None if messages have none."""
        key = self._options.key
        if not key:
            return None
        if len(key) == 1:
            return list(_plain(batch.column(key[0])).to_pylist())
        return list(lines(batch.select(list(key))).to_pylist())

    def times(self, batch: pa.RecordBatch) -> list[int]:
        """The time of each row in milliseconds; 0 for NULL, and if this machine's clock counts."""
        name = self._options.timestamp
        if not name:
            return [0] * batch.num_rows
        times = pc.cast(batch.column(name), pa.timestamp("ms", batch.schema.field(name).type.tz), safe=False)
        return list(pc.fill_null(pc.cast(times, pa.int64()), 0).to_pylist())

    def headers(self, batch: pa.RecordBatch) -> Iterator[list[tuple[str, Any]]]:
        """The headers of each row."""
        if not self._options.headers:
            return repeat([], batch.num_rows)
        columns = [
            [header.constant] * batch.num_rows if header.constant is not None else _plain(batch.column(header.column))
            for header in self._options.headers
        ]
        texts = [column if isinstance(column, list) else column.to_pylist() for column in columns]
        names = [header.name for header in self._options.headers]
        return (list(zip(names, row, strict=True)) for row in zip(*texts, strict=True))


def _plain(column: pa.Array) -> pa.Array:
    """Bytes as they are, everything else as text."""
    return column if is_bytes(column.type) else as_text(column)


def _csv(batch: pa.RecordBatch) -> pa.Array:
    """One line of csv for each row, without a line end. Texts are in quotes; NULL is nothing."""
    columns = []
    for column in batch.columns:
        text = as_text(column)
        if not _is_number(column.type):
            text = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
        columns.append(pc.coalesce(text, ""))
    return pc.binary_join_element_wise(*columns, ",")


def _is_number(type_: pa.DataType) -> bool:
    t = pa.types
    kinds: tuple[Callable[[pa.DataType], bool], ...] = (t.is_integer, t.is_floating, t.is_decimal, t.is_boolean)
    return any(kind(type_) for kind in kinds)


def _raw_column(schema: pa.Schema, aside: set[str]) -> str:
    left = [field for field in schema if field.name not in aside]
    if len(left) != 1:
        raise SettingError(
            f"format 'raw' writes one column as it is, and there are {len(left)} besides key, headers and timestamp"
            f" ({', '.join(field.name for field in left) or 'none'})",
            "option format",
        )
    if not (is_bytes(left[0].type) or pa.types.is_string(left[0].type) or pa.types.is_large_string(left[0].type)):
        raise SettingError(f"format 'raw' writes text or bytes, and {left[0].name} is {sql_type(left[0].type)}")
    return str(left[0].name)


def _headers(text: str, schema: pa.Schema) -> Iterator[MessageHeader]:
    """The headers that an option names.

    >>> schema = pa.schema([("kind", pa.string()), ("region", pa.string())])
    >>> [header.name for header in _headers('kind, from="eddyline", area=region', schema)]
    ['kind', 'from', 'area']
    """
    start = 0
    while start < len(text.rstrip()):
        found = _HEADER.match(text, start)
        if found is None:
            raise SettingError(
                f"""option headers is a list such as 'kind, area=region, from="shop"', not '{text}'""", "option headers"
            )
        name, constant, column = found.groups()
        if constant is not None:
            yield MessageHeader(name, constant=constant)
        else:
            yield MessageHeader(name, _found(column or name, schema, "headers"))
        start = found.end()


def _found(name: str, schema: pa.Schema, option: str) -> str:
    for column in schema.names:
        if column.lower() == name.lower():
            return str(column)
    if not schema.names:
        return name  # only Spark will know the columns
    raise SettingError(
        f"option {option}: there is no column {name}{did_you_mean(name, schema.names)}", f"option {option}"
    )


def as_dicts(values: Sequence[Any], keys: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Messages as produce_batch takes them."""
    if keys is None:
        return [{"value": value} for value in values]
    return [{"value": value, "key": key} for value, key in zip(values, keys, strict=True)]
