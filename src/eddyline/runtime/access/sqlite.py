"""Tables of SQLite, by the standard library, in threads.

Options: `path` and `table`. The file is opened for reading only. Keys travel as one JSON text, which SQLite unpacks, so
a batch of any size is the same statement, and the index of the column is used.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from eddyline.errors import SettingError
from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import fitted_values
from eddyline.runtime.access.threads import ConnectedThreads
from eddyline.runtime.options import Options
from eddyline.runtime.values.json import is_bytes

T = TypeVar("T")
_BATCH = 500
_SCAN_ROWS = 16_384
_LATER = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_INTERRUPT,
          sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_SCHEMA}  # fmt: skip
"""Errors after which the same statement may succeed."""
_INFINITE = {float("inf"): msgspec.Raw(b"9e999"), float("-inf"): msgspec.Raw(b"-9e999")}
"""JSON has no infinite number; SQLite reads one that is too large as infinite."""


def kind_of(options: Options, schema: pa.Schema, concurrency: int) -> ClientKind:
    """A table of SQLite by its options."""
    path = existing_file(options, "small.db")
    table = options.required("table", "users")

    def no_index(columns: Sequence[str]) -> str:
        return "sqlite has no keys of bytes" if any(is_bytes(schema.field(name).type) for name in columns) else ""

    return ClientKind(lambda: SqliteClient(path, table, schema, concurrency), _BATCH, scans=True, no_index=no_index)


def existing_file(options: Options, example: str) -> Path:
    """The option path; SettingError if there is no such file."""
    path = Path(options.required("path", example))
    if not path.is_file():
        raise SettingError(f"there is no file '{path}'", "option path")
    return path.absolute()


class SqliteClient:
    """Asks a table of SQLite."""

    def __init__(self, path: Path, table: str, schema: pa.Schema, threads: int) -> None:
        self._uri, self._table, self._schema = f"{path.as_uri()}?mode=ro", quoted(table), schema
        self._threads = self._new_threads(threads)

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """These columns of all rows with these keys."""
        names = keys.schema.names
        selected = ", ".join(f"t.{quoted(name)}" for name in columns)
        values_of_key = ", ".join(f"value ->> {at}" for at in range(len(names))) if len(names) > 1 else "value"
        mine = ", ".join(f"t.{quoted(name)}" for name in names)
        query = f"SELECT {selected} FROM {self._table} t WHERE ({mine}) IN (SELECT {values_of_key} FROM json_each(?))"
        values: list[Any] = []
        for spelled in product(*map(_spellings, keys.columns)):
            values += spelled[0] if len(spelled) == 1 else zip(*spelled, strict=True)
        text = msgspec.json.encode(values).decode()
        return self._fitted(await self._run(lambda c: c.execute(query, (text,)).fetchall()), columns)

    async def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """These columns of all rows, of one moment."""
        query = f"SELECT {', '.join(map(quoted, columns))} FROM {self._table}"
        threads = self._new_threads(1)
        try:
            cursor = await self._run(lambda c: c.execute(query), threads)
            while rows := await self._run(lambda _: cursor.fetchmany(_SCAN_ROWS), threads):
                yield self._fitted(rows, columns)
        finally:
            await threads.close()

    async def close(self) -> None:
        """Ends all threads and connections."""
        await self._threads.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._uri, uri=True, check_same_thread=False, isolation_level=None)
        connection.text_factory = lambda data: data.decode(errors="surrogateescape")  # which refuses its own row only
        return connection

    def _new_threads(self, threads: int) -> ConnectedThreads[sqlite3.Connection]:
        return ConnectedThreads(threads, self._connect, sqlite3.Connection.interrupt, sqlite3.Connection.close)

    async def _run(
        self, work: Callable[[sqlite3.Connection], T], threads: ConnectedThreads[sqlite3.Connection] | None = None
    ) -> T:
        try:
            return await (threads or self._threads).run(work)
        except sqlite3.DataError as error:
            raise KeysRefused(str(error)) from None
        except sqlite3.Error as error:
            kind = TryFailed if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LATER else TableRefused
            raise kind(str(error)) from None

    def _fitted(self, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> FoundRows:
        values = zip(*rows, strict=True) if rows else [()] * len(columns)
        schema = pa.schema([self._schema.field(name) for name in columns])
        return fitted_values(dict(zip(columns, map(list, values), strict=True)), schema)


def quoted(name: str) -> str:
    """A name in SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _spellings(keys: pa.Array) -> list[list[Any]]:
    """Keys as JSON has them, once for each way in which SQLite may have them: it has no type for truth values, times,
    decimals and floats of 32 bits, and a file of CSV that it has imported is all texts. SQLite has no NaN."""
    type_ = keys.type
    if pa.types.is_floating(type_):
        found = [keys.to_pylist()]
        if type_ != pa.float64():
            found.append(list(map(float, keys.cast(pa.string()).to_pylist())))
        return [[_INFINITE.get(value, value) for value in values] for values in found]
    if pa.types.is_boolean(type_):
        return [keys.cast(some).to_pylist() for some in (pa.int8(), pa.string())]
    texts: list[str] = keys.cast(pa.string()).to_pylist()
    if pa.types.is_integer(type_):
        return [keys.to_pylist(), texts]
    if pa.types.is_decimal(type_):
        return [texts, [_with_fraction(text, 0) for text in texts]]
    if pa.types.is_timestamp(type_):
        ways = product(" T", (0, 3, 6), ("",) if type_.tz is None else ("Z", "+00", "+00:00"))
        return [[_with_fraction(text.rstrip("Z"), d).replace(" ", gap) + z for text in texts] for gap, d, z in ways]
    return [texts]


def _with_fraction(number: str, digits: int) -> str:
    """A number or a time with at least so many digits after the point, and no more zeros than that.

    >>> _with_fraction("1.50", 0), _with_fraction("2.00", 0), _with_fraction("03:04:05.250000", 3)
    ('1.5', '2', '03:04:05.250')
    """
    whole, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0").ljust(digits, "0")
    return f"{whole}.{fraction}" if fraction else whole
