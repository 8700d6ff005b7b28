"""One test case: a script, its rows cut into batches, and its settings. A case holds everything that a repetition
needs.

The SELECT is kept in parts (FROM items, conjuncts, outputs, keys) so that the shrinker can leave parts out of a failing
case; `script` joins the parts to a text. A case is frozen: the shrinker makes new ones with `dataclasses.replace`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

Rows = tuple[tuple[str, pa.RecordBatch], ...]
"""Record batches tagged with the stream they belong to."""


@dataclass(frozen=True)
class StreamDecl:
    """A declared stream, or a static table (`time` is None)."""

    name: str
    schema: pa.Schema
    time: str | None = None
    lateness: int = 0
    listed: bool = True
    """Whether the script lists the columns; a source that knows its schema needs no list."""

    @property
    def text(self) -> str:
        """The CREATE statement of the stream."""
        columns = ", ".join(f"{f.name} {sql_type(f.type)}" for f in self.schema)
        kind = "TABLE" if self.time is None else "STREAM"
        text = f"CREATE {kind} {self.name}{f' ({columns})' if self.listed else ''} USING memory"
        if self.time is not None:
            text += f" TIMESTAMP BY {self.time}"
            text += f" LATENESS {self.lateness} MICROSECONDS" if self.lateness else ""
        return text + ";"


@dataclass(frozen=True)
class FromPart:
    """An item of FROM; `window` is the text between the brackets, or a call that names the stream; "" for none."""

    stream: str
    alias: str
    window: str = ""

    @property
    def text(self) -> str:
        """The item as it is written in FROM."""
        if "(" in self.window:
            return f"{self.window} AS {self.alias}"
        return f"{self.stream} [{self.window}] AS {self.alias}" if self.window else f"{self.stream} AS {self.alias}"

    @property
    def slides(self) -> bool:
        """Whether the window says when an aggregate is given."""
        return re.search(r"SLIDE|TUMBLE|HOP|CUMULATE", self.window) is not None


@dataclass(frozen=True)
class SelectParts:
    """A SELECT in parts; `joined` writes FROM as JOIN ... ON in place of commas and WHERE."""

    outputs: tuple[str, ...]
    sources: tuple[FromPart, ...]
    where: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    having: str | None = None
    joined: bool = False

    @property
    def text(self) -> str:
        """The SELECT."""
        select = "SELECT " + ", ".join(self.outputs)
        conjuncts = " AND ".join(f"({w})" for w in self.where)
        if self.joined and len(self.sources) > 1:
            first, *others, last = (s.text for s in self.sources)
            source = " JOIN ".join([first, *(f"{o} ON TRUE" for o in others), f"{last} ON {conjuncts or 'TRUE'}"])
            lines = [select, f"FROM {source}"]
        else:
            lines = [select, "FROM " + ", ".join(s.text for s in self.sources)]
            lines += [f"WHERE {conjuncts}"] if conjuncts else []
        lines += ["GROUP BY " + ", ".join(self.keys)] if self.keys else []
        lines += [f"HAVING {self.having}"] if self.having else []
        return "\n".join(lines) + ";"


@dataclass(frozen=True)
class Batch:
    """One micro-batch. The streams `ended` have no more rows after it. The rows `undone` are fed before it and wound
    back."""

    rows: Rows
    ended: tuple[str, ...] = ()
    undone: Rows | None = None


@dataclass(frozen=True)
class Case:
    """A script, its rows and its settings."""

    streams: tuple[StreamDecl, ...]
    select: SelectParts
    batches: tuple[Batch, ...]
    tables: Mapping[str, pa.RecordBatch] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    features: tuple[str, ...] = ()

    @cached_property
    def script(self) -> str:
        """The whole script."""
        return "\n".join([*(s.text for s in self.streams), self.select.text])

    @property
    def row_count(self) -> int:
        """All rows of all batches and tables."""
        fed: int = sum(rows.num_rows for batch in self.batches for _, rows in batch.rows)
        return fed + sum(int(t.num_rows) for t in self.tables.values())

    def schema(self, name: str) -> pa.Schema:
        """The schema of a stream or table, by its name."""
        return next(s.schema for s in self.streams if s.name.lower() == name.lower())


_SQL_NAMES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}


def sql_type(type_: pa.DataType) -> str:
    """The SQL name of an Arrow type.

    >>> sql_type(pa.list_(pa.decimal128(9, 2)))
    'DECIMAL(9, 2)[]'
    """
    if pa.types.is_dictionary(type_):
        return sql_type(type_.value_type)
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz is None else "TIMESTAMPTZ"
    if pa.types.is_list(type_):
        return sql_type(type_.value_type) + "[]"
    if pa.types.is_struct(type_):
        return "STRUCT(" + ", ".join(f"{f.name} {sql_type(f.type)}" for f in type_) + ")"
    return _SQL_NAMES[type_]
