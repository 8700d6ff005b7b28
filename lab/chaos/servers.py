"""The jobs of chaos between servers (`chaos --servers`, `--kafka`): where their streams, their results and a table are.

All rows of the streams are on a server before the job begins. The results are read by a client that is not ours, and
written to files, which are compared as those of other jobs (lab/chaos/jobs.py). While the job runs, somebody else
writes to the same place; their rows have a number below zero in the first column of numbers, and are left out of the
files. A row of theirs that is lost or twice is wrong too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import uuid
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

from eddyline.errors import InternalError
from lab.chaos.asked_database import rows_of
from lab.chaos.kafka import PARTITIONS, Topics
from lab.chaos.killed_servers import HttpProgram, KilledServer, ValkeyProgram, running
from lab.servers.kafka_broker import KafkaBroker, kafka_broker
from lab.servers.postgres import PostgresServer, postgres_server

SERVERS = ("kafka", "valkey", "postgres", "http")
SINKS = ("out", "late", "dead")
PATIENT = "timeout '120 seconds', retries 1000"
"""A table whose server is killed is asked until it is back."""
FILES = {"late": "json", "dead": "csv"}


class Streams(Protocol):
    """A server that has streams."""

    def fill(self, stream: str, rows: pa.Table) -> str:
        """Put the rows there. Returns how the stream is declared."""


class Target(Protocol):
    """A place of results."""

    @property
    def format(self) -> str:
        """Of the file that its rows are written to."""

    def declared(self, sink: str, folder: Path) -> str:
        """How it is declared."""

    def read(self, sink: str, folder: Path, schema: pa.Schema) -> list[dict[str, Any]]:
        """Its rows."""

    def add(self, folder: Path, rows: pa.Table) -> None:
        """Add rows as another writer does. Raises what its client raises."""


@dataclass(frozen=True)
class Keys:
    """Streams of a Valkey server."""

    server: ValkeyProgram
    name: str

    def fill(self, stream: str, rows: pa.Table) -> str:
        """Add an entry for each row, in turns to the keys of the stream; the ids tell the order of arrival."""
        keys = [f"{self.name}-{stream}-{number}" for number in range(PARTITIONS[stream])]
        pipeline = self.server.client().pipeline(transaction=False)
        for number, row in enumerate(rows.to_pylist()):
            fields = {name: str(value) for name, value in row.items() if value is not None}
            pipeline.xadd(keys[number % len(keys)], fields, id=f"{1 + number}-1")
        pipeline.execute()
        return f"USING \"redis-stream\" OPTIONS (port {self.server.port}, keys '{', '.join(keys)}')"


@dataclass(frozen=True)
class DeltaFolder:
    """A Delta table, read by polars; others write by deltalake."""

    format = "parquet"

    def declared(self, sink: str, folder: Path) -> str:
        """How it is declared."""
        return f"USING delta OPTIONS (path '{folder / 'table'}')"

    def read(self, sink: str, folder: Path, schema: pa.Schema) -> list[dict[str, Any]]:
        """Its rows."""
        import polars

        return polars.read_delta(str(folder / "table")).to_dicts()

    def add(self, folder: Path, rows: pa.Table) -> None:
        """Add rows, if there is a table."""
        from deltalake import DeltaTable, write_deltalake

        write_deltalake(DeltaTable(str(folder / "table")), rows, mode="append")


@dataclass(frozen=True)
class IcebergFolder:
    """An Iceberg table in a catalog on SQLite, read by polars; others write by pyiceberg."""

    format = "parquet"

    def declared(self, sink: str, folder: Path) -> str:
        """How it is declared."""
        self._opened(folder)  # two clients that make the tables of the catalog at once hinder each other
        catalog = ", ".join(f"catalog.{key} '{value}'" for key, value in self._catalog(folder).items())
        return f"USING iceberg OPTIONS (table 'lake.out', create 'true', {catalog})"

    def read(self, sink: str, folder: Path, schema: pa.Schema) -> list[dict[str, Any]]:
        """Its rows."""
        import polars

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a faster way to plan the scan
            rows: list[dict[str, Any]] = polars.scan_iceberg(self._table(folder)).collect().to_dicts()
        return rows

    def add(self, folder: Path, rows: pa.Table) -> None:
        """Add rows, if there is a table."""
        logging.getLogger("pyiceberg").setLevel(logging.ERROR)  # that another was faster is what happens here
        table = self._table(folder)
        table.append(rows.cast(table.schema().as_arrow()))

    def _table(self, folder: Path) -> Any:
        return self._opened(folder).load_table("lake.out")

    def _opened(self, folder: Path) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("default", **self._catalog(folder))

    @staticmethod
    def _catalog(folder: Path) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"{folder}/lake"}


@dataclass(frozen=True)
class PostgresResults:
    """A table of a PostgreSQL server, read and written by psycopg."""

    server: PostgresServer
    name: str
    format = "parquet"

    def declared(self, sink: str, folder: Path) -> str:
        """How it is declared."""
        return f"USING postgres OPTIONS (url '{self.server.url}', table '{self.name}', create 'true')"

    def read(self, sink: str, folder: Path, schema: pa.Schema) -> list[dict[str, Any]]:
        """Its rows."""
        with psycopg.connect(self.server.url) as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(self.name)))
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def add(self, folder: Path, rows: pa.Table) -> None:
        """Add rows, if there is a table."""
        columns = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
        places = sql.SQL(", ").join([sql.Placeholder()] * rows.num_columns)
        insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(self.name), columns, places)
        with psycopg.connect(self.server.url) as connection, connection.cursor() as cursor:
            cursor.executemany(insert, [tuple(row.values()) for row in rows.to_pylist()])


@dataclass
class Places:
    """The places of one job, and those who write there besides it."""

    columns: Mapping[str, str]
    """How each stream is declared."""
    target: Target
    table: str = ""
    """How table u is declared; nothing if no server has it."""
    rows: pa.Table | None = None
    """The rows of table u."""
    servers: Sequence[str] = ()
    """The names of the servers that the job needs."""
    others: bool = True
    """Whether others write to the place of the results."""
    _sent: Counter[int] = field(default_factory=Counter)
    """By number of a row of theirs: 2 if it was taken, 1 if nobody knows."""

    def format(self, sink: str) -> str:
        """The format of the file that `dump` writes for a sink."""
        return self.target.format if sink == "out" or isinstance(self.target, Topics) else FILES[sink]

    def sink(self, sink: str, folder: Path) -> str:
        """How a sink is declared."""
        if sink == "out" or isinstance(self.target, Topics):
            return self.target.declared(sink, folder)
        return f"USING {FILES[sink]} OPTIONS (path '{folder / sink}')"

    @contextlib.contextmanager
    def written_by_others(self, folder: Path, schema: pa.Schema) -> Iterator[None]:
        """Somebody else adds rows to the results, until the end of the `with`."""
        over = threading.Event()
        writer = threading.Thread(target=self._write, args=(folder, schema, over), daemon=True)
        if self.others:
            writer.start()
        try:
            yield
        finally:
            over.set()
            if self.others:
                writer.join(120)

    def _write(self, folder: Path, schema: pa.Schema, over: threading.Event) -> None:
        marked = _marked(schema)
        while not over.wait(0.2):
            number = -1 - len(self._sent)
            row = {name: [number if name == marked else None] for name in schema.names}
            self._sent[number] = 1
            with contextlib.suppress(Exception):  # the server is away, the table is not made yet, another was faster
                self.target.add(folder, pa.table(row, schema=schema))
                self._sent[number] = 2

    def dump(self, folder: Path, schema: pa.Schema) -> Iterator[str]:
        """Write what the sinks have to one file for each, in folders of their names. Yields what is wrong with the rows
        of others."""
        marked = _marked(schema)
        for sink in SINKS if isinstance(self.target, Topics) else ("out",):
            rows, file = self.target.read(sink, folder, schema), folder / sink / f"part-0.{self.format(sink)}"
            if sink == "out" and self.others:
                theirs = Counter(row[marked] for row in rows if (row[marked] or 0) < 0)
                rows = [row for row in rows if (row[marked] or 0) >= 0]
                taken = {number for number, state in self._sent.items() if state == 2}
                if lost := taken - set(theirs):
                    yield f"{len(lost)} rows of another writer are lost"
                if twice := [number for number, times in theirs.items() if times > 1 or number not in self._sent]:
                    yield f"{len(twice)} rows of another writer are there twice, or were never written"
            file.parent.mkdir(exist_ok=True)
            if self.format(sink) == "json":
                file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            else:
                pq.write_table(pa.Table.from_pylist(rows, schema), file)


def _marked(schema: pa.Schema) -> str:
    return str(next(field.name for field in schema if field.type == pa.int64()))


@dataclass
class Servers:
    """The servers of a chaos, which are killed, and the places that they offer."""

    killed: dict[str, KilledServer] = field(default_factory=dict)
    """By name."""

    def places(self, number: int, rows: Mapping[str, pa.Table], asks: bool) -> Places:
        """The places of the job of this number, with these rows of its streams; with a table if it `asks`."""
        name = f"chaos_{uuid.uuid4().hex[:8]}"
        every, streams = len(self.killed) > 1, list[tuple[str, Streams]]()
        targets: list[tuple[str, Target]] = [("", DeltaFolder()), *([("", IcebergFolder())] if every else [])]
        if isinstance(broker := self.killed.get("kafka"), KafkaBroker):
            topics = Topics(broker, name)
            streams, targets = [("kafka", topics)], [("kafka", topics), *targets]
        if isinstance(valkey := self.killed.get("valkey"), ValkeyProgram):
            streams.append(("valkey", Keys(valkey, name)))
        if isinstance(postgres := self.killed.get("postgres"), PostgresServer):
            targets.append(("postgres", PostgresResults(postgres, name)))
        to, target = targets[number % len(targets)]
        since, source = streams[number // len(targets) % len(streams)]
        declared = {stream: source.fill(stream, rows[stream]) for stream in PARTITIONS}
        beside, table, of_table = ("", "", None)
        if asks:
            beside = [kind for kind in ("http", "valkey", "postgres") if kind in self.killed][number % 3]
            table, of_table = self._table(self.killed[beside], name)
        needed = [server for server in dict.fromkeys((since, to, beside)) if server]
        return Places(declared, target, table, of_table, needed, every)

    @staticmethod
    def _table(server: KilledServer, name: str) -> tuple[str, pa.Table]:
        rows = rows_of("u")
        if isinstance(server, HttpProgram):
            return f"http OPTIONS (url '{server.url}?j={{j}}', batch_url '{server.url}', {PATIENT})", rows
        if isinstance(server, ValkeyProgram):
            hashes = {row["j"]: row for row in rows.to_pylist()}  # a key has one
            pipeline = server.client().pipeline(transaction=False)
            for key, row in hashes.items():
                pipeline.hset(f"{name}:{key}", "name", row["name"])
            pipeline.execute()
            kept = pa.Table.from_pylist(list(hashes.values()), rows.schema)
            return f"redis OPTIONS (port {server.port}, prefix '{name}:', {PATIENT})", kept
        assert isinstance(server, PostgresServer)
        with psycopg.connect(server.url) as connection:
            table = sql.Identifier(f"{name}_u")
            connection.execute(sql.SQL("CREATE TABLE {} (j BIGINT, name TEXT)").format(table))
            with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
                for row in rows.to_pylist():
                    copy.write_row(tuple(row.values()))
        return f"postgres OPTIONS (url '{server.url}', table '{name}_u', {PATIENT})", rows


def _http(folder: Path) -> HttpProgram:
    return HttpProgram(folder, rows_of("u").to_pylist())


@contextlib.contextmanager
def servers(names: Sequence[str]) -> Iterator[Servers]:
    """Servers that run until the end of the `with`. NoKafka or NoPostgres if one cannot be had."""
    with contextlib.ExitStack() as stack:
        found = Servers()
        for name in names:
            if name == "kafka":
                found.killed[name] = stack.enter_context(kafka_broker())
            elif name == "valkey":
                found.killed[name] = stack.enter_context(running(ValkeyProgram))
            elif name == "postgres":
                more = ["synchronous_commit=on"]  # what it has said is committed survives its crash
                found.killed[name] = stack.enter_context(postgres_server(more=more))
            elif name == "http":
                found.killed[name] = stack.enter_context(running(_http))
            else:
                raise InternalError(f"there is no server {name}")
        yield found
