"""Tables of DuckDB, in threads. Keys and rows stay Arrow.

Options: `path` and `table`. The file is opened for reading only.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import Marked, columns_of, fitted
from eddyline.runtime.access.sqlite import existing_file, quoted
from eddyline.runtime.access.threads import ConnectedThreads
from eddyline.runtime.options import Options

T = TypeVar("T")
_BATCH = 2000
"""Every request reads the key column of the whole table."""
_SCAN_ROWS = 65_536
_OPENING = threading.Lock()
"""All clients of a process that open one file get one database, which the second could use before the first has made
it ready to read Arrow."""


def kind_of(options: Options, schema: pa.Schema, concurrency: int) -> ClientKind:
    """A table of DuckDB by its options."""
    path = existing_file(options, "small.duckdb")
    table = options.required("table", "users")
    return ClientKind(lambda: DuckdbClient(path, table, schema, concurrency), _BATCH, scans=True, any_type=True)


class DuckdbClient:
    """Asks a table of DuckDB."""

    def __init__(self, path: Path, table: str, schema: pa.Schema, threads: int) -> None:
        self._path, self._schema = path, schema
        self._table = ".".join(map(quoted, table.split(".")))
        self._database: Any = None
        self._types: dict[str, Any] = {}
        self._threads = self._new_threads(threads)

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """These columns of all rows with these keys."""
        selected = ", ".join(f"t.{quoted(name)}" for name in columns)

        def ask(cursor: Any) -> pa.Table:
            equal = " AND ".join(f"t.{quoted(field.name)} = {self._key(cursor, field)}" for field in keys.schema)
            query = f"SELECT {selected} FROM {self._table} t SEMI JOIN eddyline_keys k ON {equal}"
            cursor.register("eddyline_keys", pa.Table.from_batches([keys]))
            return cursor.sql(query).to_arrow_table()

        return self._fitted(await self._run(ask), columns)

    def _key(self, cursor: Any, field: pa.Field) -> str:
        """A column of keys, to compare with that of the table: a text that is no value of its type is equal to none."""
        name = quoted(field.name)
        if not pa.types.is_string(field.type):
            return f"k.{name}"
        if field.name not in self._types:
            self._types[field.name] = cursor.sql(f"SELECT {name} FROM {self._table}").types[0]
        return f"TRY_CAST(k.{name} AS {self._types[field.name]})"

    async def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """These columns of all rows, of one moment."""
        query = f"SELECT {', '.join(map(quoted, columns))} FROM {self._table}"
        threads = self._new_threads(1)
        reader: Any = None
        try:
            reader = await self._run(lambda c: c.sql(query).to_arrow_reader(_SCAN_ROWS), threads)
            while (part := await self._run(lambda _: next(reader, None), threads)) is not None:
                yield self._fitted(part, columns)
        finally:
            reader = None  # it holds the database open, also in the traceback of an error
            await threads.close()

    async def close(self) -> None:
        """Ends all threads and connections."""
        await self._threads.close()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _connect(self) -> Any:
        with _OPENING:
            if self._database is None:
                self._database = duckdb.connect(str(self._path), read_only=True)
            return self._database.cursor()

    def _new_threads(self, threads: int) -> ConnectedThreads[Any]:
        return ConnectedThreads(threads, self._connect, lambda c: c.interrupt(), lambda c: c.close())

    async def _run(self, work: Callable[[Any], T], threads: ConnectedThreads[Any] | None = None) -> T:
        try:
            return await (threads or self._threads).run(work)
        except (duckdb.DataError, duckdb.ConversionException) as error:
            raise KeysRefused(_said(error)) from None
        except (duckdb.IOException, duckdb.InterruptException, duckdb.OutOfMemoryException) as error:
            raise TryFailed(_said(error)) from None
        except duckdb.Error as error:
            raise TableRefused(_said(error)) from None

    def _fitted(self, rows: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> FoundRows:
        found = {name: _marked(values) for name, values in columns_of(rows, columns).items()}
        return fitted(found, pa.schema([self._schema.field(name) for name in columns]))


def _marked(values: pa.Array) -> pa.Array | Marked:
    """Infinite times, which DuckDB writes as the largest and the smallest number, are no values."""
    if not (pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type)):
        return values
    bits = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
    limit, numbers = 2 ** (bits.bit_width - 1) - 1, values.cast(bits)
    infinite = pc.is_in(numbers, pa.array([limit, -limit], bits))
    if not pc.any(infinite).as_py():
        return values
    texts = pc.if_else(pc.greater(numbers, 0), "infinity", "-infinity")
    nothing = pa.scalar(None, values.type)
    return Marked(pc.if_else(infinite, nothing, values), pc.if_else(infinite, texts, pa.scalar(None, pa.string())))


def _said(error: Exception) -> str:
    return " ".join(str(error).splitlines()[0].split()) if str(error) else type(error).__name__
