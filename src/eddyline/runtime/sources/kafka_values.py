"""Messages of Kafka as rows: a value in JSON, csv or Avro has columns, and so has the message itself.

A declared column `_key`, `_timestamp`, `_topic`, `_partition`, `_offset` or `_headers` is that part of the message; all
other columns are in its value. In the format raw the value is not read; the columns are the parts of the message. A
message without a value, as compacted topics have them for deleted keys, has NULL in all columns of its value.

A message whose value cannot be read is a dead row; the reason begins with its topic, partition and offset.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.bound.nested import Bad
from eddyline.bound.types import sql_type
from eddyline.errors import SettingError
from eddyline.runtime.sources.beside import Beside, RowNumbers
from eddyline.runtime.sources.columns import chunk_of
from eddyline.runtime.sources.json_text import dead_lines
from eddyline.runtime.sources.source import Chunk, Wanted, no_rows
from eddyline.runtime.values.arrow import convert
from eddyline.runtime.values.json import is_bytes
from eddyline.runtime.values.text import cast_or_null, readable_type

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
PARTS = {
    "key": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us"),
    "headers": HEADERS,
}
"""The parts of a message besides its value, and their types."""
RAW = pa.schema([("key", pa.binary()), ("value", pa.binary()), *((n, t) for n, t in PARTS.items() if n != "key")])
"""The columns of the format raw."""

ValueReader = Callable[[Sequence[bytes], Wanted, Beside], Iterator[Chunk]]
"""Reads values as rows. Wanted columns that are in what is beside are taken from there."""


@dataclass(frozen=True)
class MessageRows:
    """Makes rows of messages. `parts` are the columns that are not in the value, with what they are; the reader reads
    all others, in the format raw there is none."""

    schema: pa.Schema
    parts: dict[str, str]
    read: ValueReader | None
    empty: bytes | None = None
    """A value that is read as NULL in all columns, if the format has one."""

    def chunks(self, messages: Sequence[Any], wanted: Wanted) -> Iterator[Chunk]:
        """The rows of messages, in their order as far as all are readable; dead rows come apart from the others."""
        columns: dict[str, pa.Array] = {}
        reasons: dict[int, str] = {}
        for name in (name for name in wanted.columns if name in self.parts):
            type_ = self.schema.field(name).type
            columns[name], bad = _part(messages, self.parts[name], type_)
            if bad is not None and name in wanted.needed:
                why = f"column {name}: the {self.parts[name]} is not a value of type {sql_type(type_)}"
                reasons = dict.fromkeys(np.flatnonzero(bad).tolist(), why) | reasons

        def places(rows: RowNumbers) -> list[str]:
            found = (messages[row] for row in rows)
            return [f"topic {m.topic()}, partition {m.partition()}, offset {m.offset()}" for m in found]

        beside, left = Beside(columns, np.arange(len(messages)), places), messages
        if reasons:
            dead = np.array(sorted(reasons), np.int64)
            yield dead_messages(self.schema, wanted, [reasons[row] for row in dead.tolist()], beside.take(dead))
            good = np.setdiff1d(np.arange(len(messages)), dead)
            beside, left = beside.take(good), [messages[row] for row in good]
        if self.read is None:
            yield chunk_of(self.schema, wanted, {}, len(left), beside=beside)
        elif left:
            yield from self._read([message.value() for message in left], wanted, beside)

    def _read(self, values: list[bytes | None], wanted: Wanted, beside: Beside) -> Iterator[Chunk]:
        """The rows of values, some of which may be missing."""
        assert self.read is not None
        if None not in values:
            yield from self.read([v for v in values if v is not None], wanted, beside)
            return
        if self.empty is not None:
            yield from self.read([self.empty if v is None else v for v in values], wanted, beside)
            return
        missing = np.array([value is None for value in values])
        cuts = [0, *(np.flatnonzero(np.diff(missing)) + 1).tolist(), len(values)]
        for low, high in itertools.pairwise(cuts):  # rows stay in their order
            part = beside.slice(low, high - low)
            if missing[low]:
                types = {name: self.schema.field(name).type for name in wanted.columns if name not in self.parts}
                nulls = {name: pa.nulls(high - low, type_) for name, type_ in types.items()}
                yield chunk_of(self.schema, wanted, nulls, high - low, beside=part)
            else:
                yield from self.read([v for v in values[low:high] if v is not None], wanted, part)


def raw_rows(declared: pa.Schema | None) -> MessageRows:
    """Rows of messages whose value is not read; SettingError for a column that messages do not have."""
    schema = RAW if declared is None else declared
    for field in schema:
        if field.name not in RAW.names:
            raise SettingError(
                f"column {field.name}: a message has {', '.join(RAW.names)}; format 'raw' reads no others"
            )
        _check(field, field.name)
    return MessageRows(schema, {name: name for name in schema.names}, None)


def value_rows(schema: pa.Schema, read: Callable[[pa.Schema], ValueReader], empty: bytes | None = None) -> MessageRows:
    """Rows of messages whose values `read` reads; it gets the schema of all rows. `empty` is a value without columns,
    if the format has one."""
    parts = {name: name[1:] for name in schema.names if name.startswith("_") and name[1:] in PARTS}
    for name, part in parts.items():
        _check(schema.field(name), part)
    return MessageRows(schema, parts, read(schema), empty)


def of_value(schema: pa.Schema) -> list[str]:
    """The names of the columns that are in the value of a message."""
    return [name for name in schema.names if not (name.startswith("_") and name[1:] in PARTS)]


def dead_messages(schema: pa.Schema, wanted: Wanted, reasons: list[str], beside: Beside) -> Chunk:
    """Messages whose value is no row at all."""
    return Chunk(no_rows(schema, wanted), dead_lines(schema, reasons, beside))


def _check(field: pa.Field, part: str) -> None:
    """SettingError if a part of a message cannot have the declared type."""
    type_ = field.type
    if part in ("key", "value"):
        fits = readable_type(type_)
    elif part == "timestamp":
        fits = pa.types.is_timestamp(type_)
    elif part == "headers":
        fits = type_ == HEADERS
    else:
        fits = pa.types.is_string(type_) if part == "topic" else pa.types.is_integer(type_)
    if not fits:
        natural = "STRUCT(key VARCHAR, value BLOB)[]" if part == "headers" else sql_type(RAW.field(part).type)
        raise SettingError(f"column {field.name}: the {part} of a message is {natural}, not {sql_type(type_)}")


def _part(messages: Sequence[Any], part: str, type_: pa.DataType) -> tuple[pa.Array, Bad | None]:
    """A part of each message in the declared type, NULL where it is no value of the type, and the mask of those."""
    if part in ("key", "value"):
        found = pa.array([m.key() if part == "key" else m.value() for m in messages], pa.binary())
        if is_bytes(type_):
            return found.cast(type_), None
        text, odd = cast_or_null(lambda some: some.cast(pa.string()), found)
        values, bad = convert(text, type_)
        return values, odd if bad is None else bad if odd is None else bad | odd
    if part == "headers":
        return pa.array([[{"key": k, "value": v} for k, v in m.headers() or ()] for m in messages], HEADERS), None
    if part == "topic":
        return pa.array([m.topic() for m in messages], pa.string()), None
    if part == "timestamp":
        times = np.fromiter((m.timestamp()[1] for m in messages), np.int64, len(messages))
        return pa.array(times * 1000, pa.timestamp("us"), mask=times < 0).cast(type_), None
    numbers = (m.partition() if part == "partition" else m.offset() for m in messages)
    return convert(pa.array(np.fromiter(numbers, np.int64, len(messages))), type_)
