"""Hashes of a Redis or Valkey server, by valkey-py: each key of the table is a key of the server, each other column a
field of its hash, as text.

Options: `host`, `port` and `db`, or `url`; `password_env`; `prefix`, which stands before each key. The keys of a
request travel in one pipeline.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pyarrow as pa
import valkey.asyncio
from valkey import exceptions

from eddyline.bound.as_text import as_text
from eddyline.errors import SettingError
from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import Marked, decoded, fitted
from eddyline.runtime.options import Options
from eddyline.runtime.sources.redis_connection import Server, server_of

_BATCH = 500
_SCAN_ROWS = 1000


def kind_of(options: Options, schema: pa.Schema, concurrency: int) -> ClientKind:
    """Hashes by the options of their table."""
    server = server_of(options)
    server.arguments()  # SettingError if the URL is wrong
    prefix = options.text("prefix")

    def no_index(columns: Sequence[str]) -> str:
        return "a key of redis is one column" if len(columns) > 1 else ""

    return ClientKind(lambda: RedisClient(server, prefix, schema), _BATCH, no_index=no_index, one_index=True)


class RedisClient:
    """Asks hashes of a server."""

    def __init__(self, server: Server, prefix: str, schema: pa.Schema) -> None:
        self._prefix, self._schema = prefix.encode(), schema
        arguments = server.arguments()
        try:
            pool: Any = valkey.asyncio.ConnectionPool.from_url(server.url, password=arguments.get("password"))
        except TypeError as error:
            raise SettingError(f"option url: {error}") from None
        self._client: Any = valkey.asyncio.Valkey(connection_pool=pool)

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """These columns of the hashes of these keys. A hash that has none of the columns is a row of NULLs."""
        key = keys.schema.names[0]
        fields = [name for name in columns if name != key]
        texts = as_text(keys.column(0)) if not pa.types.is_binary(keys.column(0).type) else keys.column(0)
        names = [self._prefix + (text.encode() if isinstance(text, str) else text) for text in texts.to_pylist()]
        hashes: list[list[bytes | None]] = [[] for _ in names]
        if fields:
            hashes = await self._all([("HMGET", name, *fields) for name in names])
        # Only EXISTS tells a hash without these fields from no hash.
        unsure = [at for at, values in enumerate(hashes) if not any(value is not None for value in values)]
        there = dict(zip(unsure, await self._all([("EXISTS", names[at]) for at in unsure]), strict=True))
        found = [at for at in range(len(names)) if there.get(at, 1)]
        raw = {name: pa.array([hashes[at][place] for at in found], pa.binary()) for place, name in enumerate(fields)}
        raw = {name: _text(values, self._schema.field(name).type) for name, values in raw.items()}
        if key in columns:
            raw[key] = keys.column(0).take(pa.array(found, pa.int64()))
        return fitted(raw, pa.schema([self._schema.field(name) for name in columns]))

    def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """A server is asked for keys only."""
        raise TableRefused("redis is asked for keys only")

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.aclose(close_connection_pool=True)

    async def _all(self, commands: Sequence[tuple[str | bytes, ...]]) -> list[Any]:
        """The replies to commands in one pipeline."""
        if not commands:
            return []
        try:
            async with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                found: list[Any] = await pipeline.execute(raise_on_error=False)
        except exceptions.AuthenticationError as error:
            raise TableRefused(str(error)) from None
        except (exceptions.ValkeyError, OSError) as error:
            raise TryFailed(str(error)) from None
        for command, reply in zip(commands, found, strict=True):
            if isinstance(reply, exceptions.NoPermissionError | exceptions.AuthenticationError):
                raise TableRefused(str(reply))
            if isinstance(reply, exceptions.BusyLoadingError | exceptions.ReadOnlyError):
                raise TryFailed(str(reply))
            if isinstance(reply, Exception):
                raise KeysRefused(f"key {command[1]!r}: {reply}")
        return found


def _text(values: pa.Array, type_: pa.DataType) -> pa.Array | Marked:
    """Bytes as the text that they are, unless the column is of bytes."""
    return values if pa.types.is_binary(type_) else decoded(values)
