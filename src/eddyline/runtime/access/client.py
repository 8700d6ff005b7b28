"""What an access module needs of a database or a service, and how a try to ask it can fail.

A client asks once: it knows nothing of retries, deadlines and limits (`trying.py`, `asking.py`). All its methods run on
one event loop, and any number of lookups may run at the same time. A lookup that is cancelled leaves the client usable.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from eddyline.engine.lookups.look_up import DeadRows


@dataclass(frozen=True)
class FoundRows:
    """Rows of a table, and those of which a value cannot be read."""

    rows: pa.RecordBatch
    dead: DeadRows | None = None


class TryFailed(Exception):
    """A try failed; the same try may succeed later: a lost connection, a server that is busy. A server may say how many
    seconds later."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class KeysRefused(Exception):
    """A try failed because of some of its keys or of their rows: the other keys may be answered without them."""


class TableRefused(Exception):
    """The table cannot be asked at all: it does not exist, or we may not read it. No other try and no other key would
    succeed."""


class AccessClient(Protocol):
    """Asks one table."""

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """These columns of all rows with these keys. `keys` has one column or several, and each key once.

        TryFailed, KeysRefused or TableRefused with a reason in one line, which contains no secret."""
        ...

    def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """These columns of all rows, in parts. Fails as `lookup` does. A table that cannot be scanned refuses the
        access method (`AccessTable.check`), so nobody calls this."""
        ...

    async def close(self) -> None:
        """Ends all connections and threads of the client, also those that are in use."""
        ...
