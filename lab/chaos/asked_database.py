"""Tables in a real PostgreSQL that answer slowly, for jobs that are killed (lab/chaos/main.py).

The server writes every statement with its time and parameters to a file, so it is known which keys were asked, and
when, whichever process asked. The log of a job tells which answers a commit has.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import psycopg
import pyarrow as pa

from eddyline.engine.lookups.logged_answers import came_at, keys_section
from eddyline.errors import JobError
from eddyline.protocol.home import checkpoint_at
from lab.servers.postgres import PostgresServer, postgres_server

NAMED = pa.schema([("j", pa.int64()), ("name", pa.string())])
KEYS = 1000
"""The keys that rows of streams have."""
DELAYS = {"u": 0.15, "w": 1.5}
"""By table, the longest time of an answer, in seconds."""
METHODS = {"u": "INDEX ON (j)", "w": "SCAN INDEX ON (j)"}
_PREFIX = r"^(?P<at>\d+\.\d+) "
_STATEMENT = re.compile(_PREFIX + r"LOG: +execute [^:]*: SELECT .* FROM (?P<table>\w+) t WHERE ")
_KEYS = re.compile(_PREFIX + r"DETAIL: +parameters: \$1 = '\{(?P<keys>[-0-9,]*)\}'", re.IGNORECASE)
_LOGGED = ("log_statement=all", "log_line_prefix=%n ", "log_parameter_max_length=-1")


def rows_of(table: str) -> pa.Table:
    """The rows of a table: some keys have no row, some have two."""
    keys = [key for key in range(KEYS) if key % 5] + [key for key in range(KEYS) if key % 7 == 1]
    return pa.table({"j": keys, "name": [f"{table} {key % 20}" for key in keys]}, schema=NAMED)


@dataclass(frozen=True)
class Lookup:
    """A request that the server got."""

    at: float
    table: str
    keys: frozenset[int]


@dataclass(frozen=True)
class Committed:
    """The keys whose answers a commit has, at a time: from then on nobody asks for them until they are too old."""

    at: float
    keys: Mapping[int, float]
    """By key, when its answer is too old."""


@dataclass
class AskedDatabase:
    """The database, and what a job has asked."""

    server: PostgresServer
    log: Path
    ttl: float = inf
    """How long answers of table u are kept, in seconds."""
    _begin: int = 0
    _committed: list[Committed] = field(default_factory=list)

    def declarations(self, tables: Sequence[str]) -> list[str]:
        """The tables in a script."""
        options = f"url '{self.server.url}', batch 10, concurrency 2, timeout '60 seconds'"
        ttl = {"u": "" if self.ttl == inf else f", ttl '{self.ttl} seconds'"}
        return [
            f"CREATE TABLE {t} (j BIGINT, name VARCHAR)"
            f" USING postgres OPTIONS ({options}{ttl.get(t, '')}, table '{t}') {METHODS[t]};"
            for t in tables
        ]

    def begin(self, ttl: float = inf) -> None:
        """Another job begins."""
        self.ttl, self._begin, self._committed = ttl, self.log.stat().st_size, []

    def in_flight(self) -> int:
        """The number of requests that the server answers now."""
        with psycopg.connect(self.server.url) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ).fetchone()
        return 0 if found is None else int(found[0])

    def committed(self, checkpoint: Path) -> None:
        """Remember which answers the newest commit of a job has."""
        with contextlib.suppress(OSError, JobError):  # the job goes on and may delete files
            found = checkpoint_at(str(checkpoint))
            commit = found.last()
            keys: dict[int, float] = {}
            for file in () if commit is None else commit.log:
                for batch in found.segment(file.name).batches(keys_section("u", 0)):
                    for key, came in zip(batch.column("j").to_pylist(), came_at(batch), strict=True):
                        keys[key] = max(came + self.ttl, keys.get(key, 0.0))
            self._committed.append(Committed(time.time(), keys))

    @property
    def lookups(self) -> list[Lookup]:
        """The requests of the job, in order."""
        with self.log.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._begin)
            return list(lookups_in(file.read()))

    @property
    def kept(self) -> int:
        """The number of keys that were committed at a kill."""
        return sum(len(committed.keys) for committed in self._committed)

    def wrong(self) -> Iterator[str]:
        """Keys that were asked after their answer was committed, and before it was too old."""
        lookups = [lookup for lookup in self.lookups if lookup.table == "u"]
        if not lookups:
            yield "the server was never asked"
        for committed in self._committed:
            later = [lookup for lookup in lookups if lookup.at > committed.at]
            again = {key for lookup in later for key in lookup.keys if lookup.at < committed.keys.get(key, 0.0)}
            if again:
                yield f"{len(again)} keys were asked again after their answers were committed: {sorted(again)[:5]}"


def lookups_in(text: str) -> Iterator[Lookup]:
    """The requests with keys in the server's log."""
    table = ""
    for line in text.splitlines():
        if statement := _STATEMENT.match(line):
            table = statement["table"]
        elif table and (found := _KEYS.match(line)):
            yield Lookup(float(found["at"]), table, frozenset(map(int, filter(None, found["keys"].split(",")))))
            table = ""


@contextlib.contextmanager
def asked_database(folder: Path) -> Iterator[AskedDatabase]:
    """A server with the tables u and w; NoPostgres if there is none."""
    log = folder / "statements"
    with postgres_server(log, _LOGGED) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for table, delay in DELAYS.items():
                connection.execute(f"CREATE TABLE {table}_rows (j BIGINT, name TEXT)")
                with connection.cursor().copy(f"COPY {table}_rows FROM STDIN") as copy:
                    for row in rows_of(table).to_pylist():
                        copy.write_row(tuple(row.values()))
                connection.execute(f"CREATE INDEX ON {table}_rows (j)")
                connection.execute(
                    f"CREATE VIEW {table} AS WITH slow AS MATERIALIZED (SELECT pg_sleep(random() * {delay}))"
                    f" SELECT r.j, r.name FROM slow, {table}_rows r"
                )
        yield AskedDatabase(server, log)
