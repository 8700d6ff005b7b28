"""A client of an access module whose table is in memory, and which answers as a script says."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import pyarrow as pa

from eddyline.runtime.access.client import FoundRows
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import only
from eddyline.runtime.access.tables import AccessOptions, AccessTable

Script = Callable[[pa.RecordBatch], Awaitable[None]]
"""Is awaited before an answer, with the keys: it may sleep, hang, or raise an error of access/client.py."""


async def at_once(keys: pa.RecordBatch) -> None:
    """The script of a client that answers at once."""


class ScriptedClient:
    """Asks a record batch. `requests` has the keys of each request in the order of their coming."""

    def __init__(self, rows: pa.RecordBatch, script: Script = at_once, scan_rows: int = 2) -> None:
        self.rows, self.script, self._scan_rows = rows, script, scan_rows
        self.requests: list[pa.RecordBatch] = []
        self.under_way = self.most_under_way = 0
        self.closed = False

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """The rows of these keys, after the script."""
        self.requests.append(keys)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.script(keys)
        finally:
            self.under_way -= 1
        return FoundRows(only(self.rows, keys).select(list(columns)))

    async def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """All rows, with the script before each part."""
        for first in range(0, self.rows.num_rows, self._scan_rows):
            await self.script(self.rows.slice(0, 0))
            yield FoundRows(self.rows.slice(first, self._scan_rows).select(list(columns)))

    async def close(self) -> None:
        """Says that it is closed."""
        self.closed = True

    def table(
        self,
        name: str = "t",
        concurrency: int = 8,
        batch: int = 100,
        timeout: float = 30.0,
        retries: int = 3,
        rate: float | None = None,
        columns: Sequence[str] = (),
    ) -> AccessTable:
        """The table that this client asks."""
        options = AccessOptions(concurrency, batch, timeout, retries, rate, None, None)
        kind = ClientKind(lambda: self, batch, scans=True)
        names = tuple(columns or self.rows.schema.names)
        return AccessTable(name, "scripted", self.rows.schema, options, kind, names)
