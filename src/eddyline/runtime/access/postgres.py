"""Tables of PostgreSQL, by psycopg 3.

Options: `url_env` names the environment variable with the URL (or `url`, without a password), and `table`. A connection
does one thing at a time; as many are open as requests were ever under way together. A connection on which a try failed
or was cancelled is closed, because the rest of an answer may still come. Nothing is written: sessions are read-only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format

from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import Marked, decoded, fitted
from eddyline.runtime.access.postgres_columns import RAW, BinaryArray, ColumnForm, arrays, copied_rows, form_of
from eddyline.runtime.options import Options
from eddyline.runtime.postgres_place import SESSION, conninfo_of
from eddyline.runtime.values.arrow import convert

_BATCH = 500
_SCAN_ROWS = 16_384
_LOCK_SECONDS = 20
"""How long a request waits for a lock of another session. It is shorter than the default of the option timeout, so the
reason of a failure names the lock."""
_SESSION = f"{SESSION}; SET default_transaction_read_only TO on; SET lock_timeout TO '{_LOCK_SECONDS}s'"
_DESCRIBE = """
SELECT a.attname, a.attrelid::regclass::text, t.typnamespace::regnamespace || '.' || quote_ident(t.typname),
       t.typtype = 'e', t.typcategory = 'S',
       CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname ELSE '' END
FROM pg_attribute a JOIN pg_type d ON d.oid = a.atttypid
     JOIN pg_type t ON t.oid = coalesce(nullif(d.typbasetype, 0), d.oid)
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
"""How PostgreSQL writes one. A key that is written otherwise is no value of the column."""
_AS_FLOAT = """CASE WHEN abs({0}) < 7.1e-46 THEN 0 WHEN abs({0}) < 3.4028235677973366e38 OR {0} = 'NaN'
OR abs({0}) = 'infinity' THEN {0}::float4 END"""
"""A float8 or a numeric as the nearest float4; a plain cast fails for some."""


def kind_of(options: Options, schema: pa.Schema, concurrency: int) -> ClientKind:
    """A table of PostgreSQL by its options."""
    conninfo = conninfo_of(options)
    table = options.required("table", "users")
    return ClientKind(lambda: PostgresClient(conninfo, table, schema), _BATCH, scans=True)


@dataclass(frozen=True)
class DatabaseColumn:
    """A column as the database has it, and the type that the table declares for it."""

    name: str
    declared: pa.DataType
    type: str
    """Its type, with its schema."""
    built_in: str
    """The name of the type if it is one of PostgreSQL's own."""
    is_enum: bool
    is_text: bool
    is_raw: bool
    """Whether the database knows no encoding of its texts, so they travel as bytes: it refuses to send one that is not
    UTF-8, and with it all others."""

    @cached_property
    def form(self) -> ColumnForm:
        return form_of(self.built_in)

    @property
    def quoted(self) -> str:
        return _doubled('"' + self.name.replace('"', '""') + '"')

    @property
    def selected(self) -> str:
        """The column as it travels."""
        if self.is_raw:
            return f"convert_to(t.{self.quoted}::text, 'SQL_ASCII')"
        return f"t.{self.quoted}::{self.form.cast}"

    @cached_property
    def _rounded(self) -> ColumnForm | None:
        """The form in which keys are compared, if several values of the column are one value of the declared type."""
        t = pa.types
        if t.is_float32(self.declared) and self.built_in in ("numeric", "float8", "int8", "int4"):
            return form_of("float4")
        return form_of("float8") if t.is_float64(self.declared) and self.built_in in ("numeric", "int8") else None

    def read(self, values: pa.Array | Marked) -> pa.Array | Marked:
        """The column as it came, where the text of a number writes 8.00 for the integer 8."""
        if self.is_raw:
            return decoded(values)
        is_whole = pa.types.is_integer(self.declared) or pa.types.is_boolean(self.declared)
        if self.built_in != "numeric" or not is_whole:
            return values
        return pc.replace_substring_regex(values, r"^(-?[0-9]+)\.0+$", r"\1")

    @property
    def compared(self) -> str:
        """The column as keys are compared with it: alone wherever that is possible, so that its index is used."""
        if self._rounded is None:
            return f"t.{self.quoted}"
        if self._rounded.cast == "float4" and self.built_in in ("float8", "numeric"):
            return _AS_FLOAT.format(f"t.{self.quoted}")
        return f"t.{self.quoted}::{self._rounded.cast}"

    @property
    def keys(self) -> str:
        """The array of keys, with one parameter."""
        if self._rounded is not None:
            return f"%s::{self._rounded.cast}[]"
        if self.is_enum:  # a cast refuses other texts
            type_, oid = _doubled(self.type), _doubled("'" + self.type.replace("'", "''") + "'::regtype")
            label = f"SELECT e.enumlabel::text::{type_} FROM pg_enum e WHERE e.enumtypid = {oid} AND e.enumlabel = k.k"
            return f"ARRAY(SELECT ({label}) FROM unnest(%s::text[]) WITH ORDINALITY k(k, n) ORDER BY k.n)"
        return f"%s::{'text' if self.built_in in ('varchar', 'name') else _doubled(self.type)}[]"

    def fitting(self, keys: pa.Array) -> tuple[pa.Array, Any]:
        """Keys as values of the column, and which of them the column can hold."""
        if self.is_text and not pa.types.is_string(self.declared) and not pa.types.is_large_string(self.declared):
            raise TableRefused(f"column {self.name} is text in the database: an INDEX needs it as VARCHAR")
        form = self._rounded or self.form
        try:
            fitted_keys, _ = convert(keys, form.arrow)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TableRefused(f"keys of column {self.name}, which is {self.type} in the database: {error}") from None
        if self.built_in == "uuid":
            is_uuid = pc.match_substring_regex(fitted_keys, _UUID)
            fitted_keys = pc.if_else(is_uuid, fitted_keys, pa.scalar(None, pa.string()))
        return form.keys(fitted_keys)

    def parameter(self, keys: pa.Array) -> str | BinaryArray:
        """Keys that fit, in the form of a parameter."""
        return (self._rounded or self.form).parameter(keys)


def _doubled(text: str) -> str:
    """A text inside a query with parameters."""
    return text.replace("%", "%%")


class _BinaryDumper(Dumper):
    """Sends an array as it is: its type is in it, and the query casts it."""

    format = Format.BINARY

    def dump(self, obj: BinaryArray) -> bytes:
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

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """These columns of all rows with these keys."""
        asked, names = tuple(columns), tuple(keys.schema.names)
        async with self._connected() as connection:
            query = self._queries.get((asked, names))
            if query is None:
                query = self._queries[asked, names] = self._query(asked, names)
            mine = [self._columns[name] for name in names]
            parameters = _parameters(mine, keys)
            if parameters is None:
                return self._none(asked)
            try:
                cursor = await connection.execute(query, parameters, binary=True)
            except psycopg.errors.DataError:
                if keys.num_rows > 1 or await _can_be_read(connection, mine, parameters):
                    raise
                return self._none(asked)
            result = cursor.pgresult
            assert result is not None
            values = [result.get_value(0, at) for at in range(len(asked))]
        return self._fitted(arrays(self._forms(asked), values), asked)

    async def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """These columns of all rows, of one moment."""
        async with self._connected() as connection, connection.cursor() as cursor:
            selected = ", ".join(self._columns[name].selected for name in columns).replace("%%", "%")
            query = f"COPY (SELECT {selected} FROM {self._from.replace('%%', '%')} t) TO STDOUT (FORMAT binary)"
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
        selected = ", ".join(f"array_agg({self._columns[name].selected})" for name in columns)
        mine = [self._columns[name] for name in keys]
        given, names = ", ".join(column.keys for column in mine), ", ".join(column.compared for column in mine)
        # No join: two keys that are equal for the database, such as texts with spaces, would give a row twice.
        is_asked = f"{names} = ANY({given})" if len(mine) == 1 else f"({names}) IN (SELECT * FROM unnest({given}))"
        return f"SELECT {selected} FROM {self._from} t WHERE {is_asked}".encode()

    def _read(self, rows: list[bytes], columns: Sequence[str]) -> FoundRows:
        return self._fitted(copied_rows(self._forms(columns), rows), tuple(columns))

    def _fitted(self, raw: dict[str, pa.Array | Marked], columns: tuple[str, ...]) -> FoundRows:
        return fitted(
            {name: self._columns[name].read(values) for name, values in raw.items()}, self._schema_of(columns)
        )

    def _forms(self, columns: Sequence[str]) -> dict[str, ColumnForm]:
        mine = [self._columns[name] for name in columns]
        return {name: RAW if column.is_raw else column.form for name, column in zip(columns, mine, strict=True)}

    def _none(self, columns: tuple[str, ...]) -> FoundRows:
        schema = self._schema_of(columns)
        return FoundRows(pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema))

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
        except psycopg.errors.LockNotAvailable:
            assert connection is not None
            self._idle.append(connection)
            raise TryFailed(f"another session holds a lock on {self._table}") from None
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
        connection.adapters.register_dumper(BinaryArray, _BinaryDumper)
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
        found = {row[0]: row for row in rows}
        by_lower = {name.lower(): name for name in reversed(found)}
        columns = {}
        for field in self._schema:
            name = field.name if field.name in found else by_lower.get(field.name.lower())
            if name is None:
                raise TableRefused(f"table {self._table} of the database has no column {field.name}")
            _, _, type_, is_enum, is_text, built_in = found[name]
            is_raw = form_of(built_in).is_text and connection.info.parameter_status("server_encoding") == "SQL_ASCII"
            columns[field.name] = DatabaseColumn(name, field.type, type_, built_in, is_enum, is_text, is_raw)
        self._columns, self._from = columns, _doubled(rows[0][1])

    def _said(self, error: psycopg.Error) -> str:
        """The message in one line, without the password."""
        text = " ".join(str(error.diag.message_primary or error).split())
        return text.replace(self._secret, "***") if self._secret else text


def _parameters(columns: Sequence[DatabaseColumn], keys: pa.RecordBatch) -> list[str | BinaryArray] | None:
    """The keys that the columns can hold; None if there is none."""
    fits = [column.fitting(keys.column(at)) for at, column in enumerate(columns)]
    all_fit = np.logical_and.reduce([valid for _, valid in fits])
    if not all_fit.any():
        return None
    left = [array.filter(pa.array(all_fit[valid])) for array, valid in fits]
    return [column.parameter(array) for column, array in zip(columns, left, strict=True)]


async def _can_be_read(
    connection: psycopg.AsyncConnection[Any], columns: Sequence[DatabaseColumn], parameters: Sequence[Any]
) -> bool:
    """Whether the database can read keys as values of its columns. If not, no row has them."""
    try:
        query = f"SELECT {', '.join(column.keys for column in columns)}"
        await connection.execute(query.encode(), parameters, binary=True)
    except psycopg.errors.DataError:
        return False
    return True
