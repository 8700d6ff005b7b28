"""The ways in which values come from outside: as a source, as a table that is asked, and out through a sink and back.

A way takes a column of values and the declared type, and gives what each row became: its value, or BAD if the row was
dead, or its key failed. Values are as value_law.py has them.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import duckdb
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eddyline as el
from eddyline.bound.types import sql_type
from eddyline.runtime.access.tables import AccessTable
from eddyline.runtime.options import Options
from eddyline.runtime.sources.avro_values import avro_values
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.source import Wanted
from lab.fuzz.value_law import BAD, held_in
from tests.support.access import NO_KEYS, all_answers, declared

Found = dict[int, Any]
"""By the number of the row."""
Way = Callable[[pa.Array, pa.DataType], Found]


def _all_rows(rows: int, good: Mapping[int, Any]) -> Found:
    return {row: good.get(row, BAD) for row in range(rows)}


def of_job(rows: int, source: str, given: Any = None) -> Found:
    """What a job reads whose stream `t` has the columns k and v; each row is there or dead."""
    run = el.query(f"{source} SELECT k, v FROM t", streams={} if given is None else {"t": given}).start()
    found, summary = run.to_arrow(), run.wait()
    assert summary is not None and summary.rows_dead == rows - found.num_rows, summary
    values = held_in(found.column("v").combine_chunks()) if found.num_rows else []
    return _all_rows(rows, dict(zip(found.column("k").to_pylist(), values, strict=True)))


def of_file(
    format_: str, write: Callable[[Path, pa.Array], None], folder: Path, table: bool = False, engine: str | None = None
) -> Way:
    """A folder with one file, as a stream or as a table that is joined with one."""

    def way(values: pa.Array, type_: pa.DataType) -> Found:
        for old in folder.glob("*"):
            old.unlink()
        write(folder / f"a.{format_}", values)
        where = (
            f"USING {format_} OPTIONS (path '{folder}'{', header true, multiLine true' if format_ == 'csv' else ''})"
        )
        if not table:
            columns = f"(ts TIMESTAMP, k BIGINT, v {sql_type(type_)})"
            return of_job(len(values), f"CREATE STREAM t {columns} {where} TIMESTAMP BY ts;")
        keys = pa.table({"ts": _times(len(values)), "k": range(len(values))})
        script = f"CREATE TABLE u (k BIGINT, v {sql_type(type_)}) {where}; SELECT t.k, u.v FROM t, u WHERE t.k = u.k"
        run = el.query(script, streams={"t": el.stream(keys, time="ts")}).start(engine=engine)
        found = run.to_arrow()
        run.wait()
        held = held_in(found.column("v").combine_chunks()) if found.num_rows else []
        return _all_rows(len(values), dict(zip(found.column("k").to_pylist(), held, strict=True)))

    return way


def _times(rows: int) -> pa.Array:
    return pa.array([1_767_225_600_000_000] * rows, pa.timestamp("us"))


def write_csv(path: Path, values: pa.Array) -> None:
    """Texts in a file of CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["ts", "k", "v"])
        writer.writerows(["2026-01-01", k, value] for k, value in enumerate(values.to_pylist()))


def spelled(value: Any) -> str:
    """A value in JSON: a text as a string, a number as it is written."""
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def write_json(path: Path, values: pa.Array) -> None:
    """Texts, numbers and truth values in lines of JSON."""
    lines = (f'{{"ts": "2026-01-01", "k": {k}, "v": {spelled(v)}}}' for k, v in enumerate(values.to_pylist()))
    path.write_text("\n".join(lines), encoding="utf-8")


def write_parquet(path: Path, values: pa.Array) -> None:
    """A file of parquet."""
    pq.write_table(pa.table({"ts": _times(len(values)), "k": range(len(values)), "v": values}), path)


def of_arrow(values: pa.Array, type_: pa.DataType) -> Found:
    """A table that is handed over."""
    rows = pa.table({"ts": _times(len(values)), "k": pa.array(range(len(values)), pa.int64()), "v": values})
    schema = pa.schema([*rows.schema.remove(2), pa.field("v", type_)])
    return of_job(len(values), "", el.stream(rows, time="ts", schema=schema))


_AVRO = {pa.string(): "string", pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean", pa.binary(): "bytes"}


def of_avro(values: pa.Array, type_: pa.DataType) -> Found:
    """Records of Avro, as Kafka's messages have them."""
    fields = [{"name": "k", "type": "long"}, {"name": "v", "type": _AVRO[values.type]}]
    schema = {"type": "record", "name": "r", "fields": fields}
    records = []
    for k, value in enumerate(values.to_pylist()):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, {"k": k, "v": value})
        records.append(out.getvalue())
    columns = pa.schema([("k", pa.int64()), ("v", type_)])
    reader = avro_values(Options("kafka", {"schema": json.dumps(schema)}), columns)
    beside = Beside({}, np.arange(len(records)), lambda rows: [str(row) for row in rows])
    good: Found = {}
    for chunk in reader(records, Wanted(("k", "v"), ("k", "v")), beside):
        good |= dict(zip(chunk.rows.column("k").to_pylist(), held_in(chunk.rows.column("v")), strict=True))
    return _all_rows(len(values), good)


def asked(table: AccessTable, rows: int, by_scan: bool = False) -> Found:
    """What a table answers that has the columns k and v, by key or by scan. Each row is there or dead."""
    keys = NO_KEYS if by_scan else pa.record_batch({"k": pa.array(range(rows), pa.int64())})
    found: Found = {}
    for answer in all_answers(table, keys):
        if answer.error is not None:  # no value of the column's type can be one of the declared type
            assert "is not of type" in answer.error, answer.error
            return dict.fromkeys(range(rows), BAD)
        found |= dict(zip(answer.rows.column("k").to_pylist(), held_in(answer.rows.column("v")), strict=True))
        if answer.dead is not None:
            found |= dict.fromkeys(answer.dead.rows.column("k").to_pylist(), BAD)
    assert set(found) == set(range(rows)), "a row is lost"
    return found


def by_scan(make: Callable[[pa.Array], None], table: Callable[[pa.DataType], AccessTable]) -> Way:
    """Scans."""

    def way(values: pa.Array, type_: pa.DataType) -> Found:
        make(values)
        return asked(table(type_), len(values), by_scan=True)

    return way


def by_key(make: Callable[[pa.Array], None], table: Callable[[pa.DataType], AccessTable]) -> Way:
    """Lookups by an index on k."""

    def way(values: pa.Array, type_: pa.DataType) -> Found:
        make(values)
        return asked(table(type_), len(values))

    return way


def columns_of(type_: pa.DataType) -> pa.Schema:
    """The columns k and v."""
    return pa.schema([("k", pa.int64()), ("v", type_)])


class Postgres:
    """A table of a PostgreSQL server, filled by its own client."""

    TYPES: ClassVar = {
        pa.string(): "text", pa.int64(): "int8", pa.float64(): "float8", pa.bool_(): "bool", pa.float32(): "float4",
        pa.date32(): "date", pa.timestamp("us"): "timestamp", pa.timestamp("us", "UTC"): "timestamptz",
        pa.decimal128(38, 10): "numeric", pa.int16(): "int2",
    }  # fmt: skip

    def __init__(self, url: str, connection: Any) -> None:
        self._url, self._connection = url, connection

    def make(self, values: pa.Array) -> None:
        self._connection.execute("DROP TABLE IF EXISTS ways")
        self._connection.execute(f"CREATE TABLE ways (k bigint, v {self.TYPES[values.type]})")
        with self._connection.cursor() as cursor:
            cursor.executemany("INSERT INTO ways VALUES (%s, %s)", list(enumerate(values.to_pylist())))

    def table(self, type_: pa.DataType) -> AccessTable:
        return declared("postgres", columns_of(type_), url=self._url, table="ways", retries=0)


def sqlite_file(path: Path) -> tuple[Callable[[pa.Array], None], Callable[[pa.DataType], AccessTable]]:
    """A table of SQLite."""

    def make(values: pa.Array) -> None:
        path.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE ways (k INTEGER, v)")
            database.executemany("INSERT INTO ways VALUES (?, ?)", list(enumerate(values.to_pylist())))

    return make, lambda type_: declared("sqlite", columns_of(type_), path=path, table="ways", retries=0)


def duckdb_file(path: Path) -> tuple[Callable[[pa.Array], None], Callable[[pa.DataType], AccessTable]]:
    """A table of DuckDB."""

    def make(values: pa.Array) -> None:
        path.unlink(missing_ok=True)
        rows = pa.table({"k": pa.array(range(len(values)), pa.int64()), "v": values})
        with duckdb.connect(str(path)) as database:
            database.register("given", rows)
            database.execute("CREATE TABLE ways AS SELECT * FROM given")

    return make, lambda type_: declared("duckdb", columns_of(type_), path=path, table="ways", retries=0)


ANSWERS: list[pa.Array] = []
"""What `answers` answers."""


def answers(keys: pa.RecordBatch) -> pa.RecordBatch:
    """A function that is a table."""
    return pa.record_batch({"k": keys.column("k"), "v": ANSWERS[0].take(keys.column("k"))})


def of_function(values: pa.Array, type_: pa.DataType) -> Found:
    """A Python function."""
    ANSWERS[:] = [values]
    table = declared("python", columns_of(type_), function=f"{__name__}:answers", retries=0)
    return asked(table, len(values))


class _Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer([int(parse_qs(urlsplit(self.path).query)["k"][0])])

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, keys: list[int]) -> None:
        values = ANSWERS[0].to_pylist()
        body = "[" + ", ".join(f'{{"k": {k}, "v": {spelled(values[k])}}}' for k in keys) + "]"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


@contextlib.contextmanager
def http_service() -> Iterator[str]:
    """A service; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def of_http(url: str, many: bool) -> Way:
    """One key or many at a time."""
    where = {"batch_url": f"{url}/b"} if many else {"url": f"{url}/x?k={{k}}"}

    def way(values: pa.Array, type_: pa.DataType) -> Found:
        ANSWERS[:] = [values]
        return asked(declared("http", columns_of(type_), retries=0, **where), len(values))

    return way


def of_redis_stream(server: Any) -> Way:
    """Entries of a stream of a server, until it has no more."""

    def way(values: pa.Array, type_: pa.DataType) -> Found:
        import valkey

        with valkey.Valkey(port=server.port) as client:
            client.flushdb()
            for k, value in enumerate(values.to_pylist()):
                client.xadd("w", {"ts": "2026-01-01", "k": k, "v": spelled_text(value)})
        where = f"USING redis-stream OPTIONS (host '127.0.0.1', port {server.port}, keys 'w')"
        columns = f"(ts TIMESTAMP, k BIGINT, v {sql_type(type_)})"
        return of_job(len(values), f"CREATE STREAM t {columns} {where} TIMESTAMP BY ts;")

    return way


def of_kafka(kafka: Any) -> Way:
    """Messages of a topic, in JSON, until it has no more."""

    from confluent_kafka import Producer

    def way(values: pa.Array, type_: pa.DataType) -> Found:
        lines = [f'{{"ts": "2026-01-01", "k": {k}, "v": {spelled(v)}}}' for k, v in enumerate(values.to_pylist())]
        topic, producer = kafka.create(), Producer({"bootstrap.servers": kafka.servers, "linger.ms": 5})
        for line in lines:
            producer.produce(topic, line.encode())
        producer.flush()
        where = f"USING kafka OPTIONS (servers '{kafka.servers}', topic '{topic}')"
        columns = f"(ts TIMESTAMP, k BIGINT, v {sql_type(type_)})"
        return of_job(len(values), f"CREATE STREAM t {columns} {where} TIMESTAMP BY ts;")

    return way


def of_redis(server: Any) -> Way:
    """Hashes of a server."""

    def way(values: pa.Array, type_: pa.DataType) -> Found:
        import valkey

        with valkey.Valkey(port=server.port) as client:
            client.flushdb()
            for k, value in enumerate(values.to_pylist()):
                client.hset(f"w:{k}", mapping={"v": value if isinstance(value, bytes) else spelled_text(value)})
        return asked(declared("redis", columns_of(type_), port=server.port, prefix="w:", retries=0), len(values))

    return way


def spelled_text(value: Any) -> str:
    """A value as a text."""
    return value if isinstance(value, str) else spelled(value)
