"""Tables of PostgreSQL, by psycopg 3.

Options: `url_env` names the environment variable with the URL (or `url`, without a password), and `table`. A connection
does one thing at a time; as many are open as requests were ever under way together. A connection on which a try failed
or was cancelled is closed, because the rest of an answer may still come. Nothing is written: sessions are read-only.
"""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast

import psycopg
import pyarrow as pa
import pyarrow.csv as csv
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format

from eddyline.runtime.access.client import KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import fitted
from eddyline.runtime.access.postgres_columns import ColumnForm, Int8Array, array_literal, form_of, int8_array, key_type
from eddyline.runtime.options import Options
from eddyline.runtime.postgres_place import conninfo_of

_BATCH = 500
_SCAN_ROWS = 16_384
_SESSION = "SET TimeZone TO 'UTC'; SET DateStyle TO 'ISO'; SET default_transaction_read_only TO on"
_DESCRIBE = """
SELECT a.attname, coalesce(b.typname, t.typname), a.attrelid::regclass::text
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = nullif(t.typbasetype, 0)
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""


def kind_of(options: Options, schema: pa.Schema, concurrency: int) -> ClientKind:
    """A table of PostgreSQL by its options."""
    conninfo = conninfo_of(options)
    table = options.required("table", "users")
    return ClientKind(lambda: PostgresClient(conninfo, table, schema), _BATCH, scans=True)


@dataclass(frozen=True)
class DatabaseColumn:
    """A column as the database has it."""

    name: str
    type: str

    @cached_property
    def form(self) -> ColumnForm:
        return form_of(self.type)

    @property
    def quoted(self) -> str:
        return '"' + self.name.replace('"', '""').replace("%", "%%") + '"'

    @property
    def key_type(self) -> str:
        return key_type(self.type)

    def parameter(self, keys: pa.Array) -> str | Int8Array:
        """Keys to compare with the column, in the form of a parameter."""
        fits = pa.types.is_signed_integer(keys.type) or (pa.types.is_integer(keys.type) and keys.type.bit_width < 64)
        return int8_array(keys) if fits and self.key_type == "int8" else array_literal(keys)


class _Int8ArrayDumper(Dumper):
    """Sends an array as it is."""

    oid = 1016
    format = Format.BINARY

    def dump(self, obj: Int8Array) -> bytes:
        return obj


class PostgresClient:
    """Asks a table of PostgreSQL."""

    def __init__(self, conninfo: str, table: str, schema: pa.Schema) -> None:
        self._conninfo, self._table, self._schema = conninfo, table, schema
        self._secret = str(conninfo_to_dict(conninfo).get("password") or "")
        self._idle: list[psycopg.AsyncConnection[Any]] = []
        self._all: set[psycopg.AsyncConnection[Any]] = set()
        self._columns: dict[str, DatabaseColumn] = {}
        self._from = ""
        self._queries: dict[tuple[tuple[str, ...], tuple[str, ...]], bytes] = {}
        self._schema_of = lru_cache(self._chosen)

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> pa.RecordBatch:
        """These columns of all rows with these keys."""
        asked, names = tuple(columns), tuple(keys.schema.names)
        async with self._connected() as connection:
            query = self._queries.get((asked, names))
            if query is None:
                query = self._queries[asked, names] = self._query(asked, names)
            parameters = [self._columns[name].parameter(keys.column(name)) for name in names]
            cursor = await connection.execute(query, parameters, binary=True)
            result = cursor.pgresult
            assert result is not None
            values = [result.get_value(0, at) for at in range(len(asked))]
        raw = {name: self._columns[name].form.array(data) for name, data in zip(asked, values, strict=True)}
        return fitted(raw, self._schema_of(asked))

    async def scan(self, columns: Sequence[str]) -> AsyncGenerator[pa.RecordBatch, None]:
        """These columns of all rows, of one moment."""
        async with self._connected() as connection, connection.cursor() as cursor:
            chosen = [self._columns[name] for name in columns]
            selected = ", ".join(f"t.{column.quoted}::text" for column in chosen).replace("%%", "%")
            query = f"COPY (SELECT {selected or 'NULL'} FROM {self._from} t) TO STDOUT (FORMAT csv)"
            async with cursor.copy(cast(Any, query)) as copy:
                rows: list[bytes] = []
                async for row in copy:
                    rows.append(bytes(row))
                    if len(rows) == _SCAN_ROWS:
                        yield self._read(rows, columns)
                        rows = []
                if rows:
                    yield self._read(rows, columns)

    async def close(self) -> None:
        """Ends all connections."""
        for connection in list(self._all):
            await connection.close()
        self._all.clear()
        self._idle.clear()

    def _query(self, columns: Sequence[str], keys: Sequence[str]) -> bytes:
        """Parameters are arrays of the values of each key column."""
        selected = ", ".join(f"array_agg(t.{c.quoted}::{c.form.cast})" for c in map(self._columns.__getitem__, columns))
        mine = [self._columns[name] for name in keys]
        arrays = ", ".join(f"%s::{column.key_type}[]" for column in mine)
        names = ", ".join(f"t.{column.quoted}" for column in mine)
        # No join: two keys that are equal for the database, such as texts with spaces, would give a row twice.
        is_asked = f"{names} = ANY({arrays})" if len(mine) == 1 else f"({names}) IN (SELECT * FROM unnest({arrays}))"
        text = f"SELECT {selected} FROM {self._from} t WHERE {is_asked}"
        return text.encode()

    def _read(self, rows: list[bytes], columns: Sequence[str]) -> pa.RecordBatch:
        """Lines of CSV as Arrow. An empty value is a NULL unless it is quoted."""
        table = csv.read_csv(
            io.BytesIO(b"".join(rows)),
            csv.ReadOptions(column_names=list(columns), use_threads=False),
            csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
        raw = {name: table.column(name).combine_chunks() for name in columns}
        for name in columns:
            if self._columns[name].type == "bytea":
                hexed = (None if value is None else bytes.fromhex(value[2:]) for value in raw[name].to_pylist())
                raw[name] = pa.array(hexed, pa.binary())
        return fitted(raw, self._schema_of(tuple(columns)))

    def _chosen(self, columns: tuple[str, ...]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in columns])

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """A connection that nobody else uses; errors of psycopg become ours."""
        connection = None
        try:
            connection = self._idle.pop() if self._idle else await self._connect()
            if not self._columns:
                await self._describe(connection)
            yield connection
            self._idle.append(connection)
        except psycopg.errors.DataError as error:
            assert connection is not None
            self._idle.append(connection)
            raise KeysRefused(self._said(error)) from None
        except (psycopg.errors.ProgrammingError, psycopg.errors.NotSupportedError) as error:
            if connection is not None:
                await self._drop(connection)
            raise TableRefused(self._said(error)) from None
        except psycopg.Error as error:
            if connection is not None:
                await self._drop(connection)
            raise TryFailed(self._said(error)) from None
        except BaseException:
            if connection is not None:
                await self._drop(connection)
            raise

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        self._all.add(connection)
        connection.adapters.register_dumper(Int8Array, _Int8ArrayDumper)
        try:
            await connection.execute(_SESSION)
        except BaseException:
            await self._drop(connection)
            raise
        return connection

    async def _drop(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._all.discard(connection)
        await connection.close()

    async def _describe(self, connection: psycopg.AsyncConnection[Any]) -> None:
        rows = await (await connection.execute(_DESCRIBE, [self._table])).fetchall()
        if not rows:
            raise TableRefused(f"the database has no table {self._table}")
        found = {name: DatabaseColumn(name, type_) for name, type_, _ in rows}
        lower: Callable[[str], str] = str.lower
        by_lower = {lower(name): column for name, column in found.items()}
        columns = {}
        for name in self._schema.names:
            column = found.get(name) or by_lower.get(lower(name))
            if column is None:
                raise TableRefused(f"table {self._table} of the database has no column {name}")
            columns[name] = column
        self._columns, self._from = columns, rows[0][2].replace("%", "%%")

    def _said(self, error: psycopg.Error) -> str:
        """The message in one line, without the password."""
        text = " ".join(str(error.diag.message_primary or error).split())
        return text.replace(self._secret, "***") if self._secret else text
