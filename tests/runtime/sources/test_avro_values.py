"""Avro values of messages: one schema for all, and a schema registry, which is a real HTTP server."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import JobError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sources.avro_values import avro_values
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.source import Chunk, Wanted

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.string()), ("more", pa.list_(pa.int32()))])
ALL = Wanted(("ts", "k"), ("ts", "k", "v", "more"))
OLD = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "k", "type": "long"},
        {"name": "v", "type": ["null", "string"]},
    ],
}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "more", "type": {"type": "array", "items": "int"}, "default": [9]}]}
ODD = {"type": "record", "name": "odd", "fields": [{"name": "k", "type": "string"}]}
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def record(schema: Any, **values: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, values)
    return out.getvalue()


def read(values: Sequence[bytes], **options: str) -> list[Chunk]:
    given = Options("kafka", options)
    reader = avro_values(given, SCHEMA)
    given.done()
    beside = Beside({}, np.arange(len(values)), lambda rows: [f"offset {row}" for row in rows])
    return list(reader(values, ALL, beside))


def rows(chunks: list[Chunk]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for chunk in chunks for row in chunk.rows.to_pylist()]


def reasons(chunks: list[Chunk]) -> list[str]:
    return [r for chunk in chunks if chunk.dead is not None for r in chunk.dead.column("reason").to_pylist()]


def test_a_schema_in_the_script(tmp_path: Any) -> None:
    good = record(NEW, ts=WHEN, k=1, v="a", more=[1, 2])
    (tmp_path / "row.avsc").write_text(json.dumps(NEW))
    for chunks in (
        read([good, b"\x01", good + b"x"], schema=json.dumps(NEW)),
        read([good, b"\x01", good + b"x"], schema_file=f"{tmp_path}/row.avsc"),
    ):
        assert rows(chunks) == [(datetime(2026, 1, 1), 1, "a", [1, 2])]
        assert [r.split(" (")[0] for r in reasons(chunks)] == [
            f"offset {n}: not a record of this stream" for n in (1, 2)
        ]
    chunks = read([record(ODD, k="x")], schema=json.dumps(ODD))
    assert reasons(chunks) == ["offset 0: column k: 'x' is not a value of type BIGINT"]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """A registry with five schemas, two of them not for Avro, behind a password; its address and the paths that it was
    asked for."""
    asked: list[str] = []
    refers = {**OLD, "fields": [{"name": "k", "type": "elsewhere.Key"}]}
    known = {n: json.dumps(schema) for n, schema in {"1": OLD, "2": NEW, "3": ODD, "5": refers}.items()}
    known["4"] = 'syntax = "proto3"; message Row {}'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            number = self.path.removeprefix("/schemas/ids/")
            code = 401 if self.headers["Authorization"] != "Basic bWU6b3Blbg==" else 200 if number in known else 404
            body = json.dumps({"schema": known.get(number)}).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    monkeypatch.setenv("REGISTRY_PASSWORD", "open")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def framed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def test_a_registry(registry: tuple[str, list[str]]) -> None:
    url, asked = registry
    login = {"registry_user": "me", "registry_password_env": "REGISTRY_PASSWORD"}
    old, new = record(OLD, ts=WHEN, k=1, v=None), record(NEW, ts=WHEN, k=2, v="b", more=[])
    values = [framed(1, old), framed(2, new), framed(2, new), framed(7, new), b"\1xxxx", framed(3, record(ODD, k="5"))]
    chunks = read(values, registry=url, **login)
    when = datetime(2026, 1, 1)
    assert rows(chunks)[:3] == [(when, 1, None, None), (when, 2, "b", []), (when, 2, "b", [])]
    assert asked == [f"/schemas/ids/{n}" for n in (1, 2, 7, 3)]
    told = "offset 3: not a record of this stream (UnknownSchema: the schema registry has no schema 7)"
    assert told in reasons(chunks) and any(r.startswith("offset 4: ") for r in reasons(chunks))
    asked.clear()
    chunks = read([framed(n, old) for n in (4, 5, 4, 5, 1)], registry=url, **login)
    assert rows(chunks) == [(when, 1, None, None)] and len(asked) == 3
    assert [r.split(" (")[1].split(": ")[1] for r in reasons(chunks)] == [
        f"schema {n} of the registry cannot be read as Avro" for n in (4, 5, 4, 5)
    ]
    chunks = read([framed(1, old)], registry=url, schema=json.dumps(NEW), **login)
    assert rows(chunks) == [(when, 1, None, [9])]  # the schema of the script is the reader's
    with pytest.raises(JobError, match=rf"^the schema registry {url} answers 401") as caught:
        read([framed(1, old)], registry=url)
    assert "open" not in str(caught.value)
    with pytest.raises(JobError, match=r"^the schema registry http://127.0.0.1:1 does not answer: "):
        read([framed(1, old)], registry="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "needs a schema: one of the options schema, schema_file and registry"),
        ({"schema": "{}", "schema_file": "x"}, "needs a schema: one of the options"),
        ({"schema": "{"}, "option schema is no Avro schema: "),
        ({"schema_file": "nowhere.avsc"}, "option schema_file is no Avro schema: "),
        ({"registry": "http://x", "registry_password_env": "NOT_SET"}, "NOT_SET, which is not set"),
    ],
)
def test_wrong_options(options: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        avro_values(Options("kafka", options), SCHEMA)


@pytest.mark.parametrize(
    ("avro", "value", "column", "expected"),
    [
        ("double", 3.9, pa.int64(), None),
        ("double", 3.0, pa.int64(), 3),
        ("double", 3.9, pa.date32(), None),
        ("long", 1767225600000, pa.timestamp("us"), None),
        ({"type": "long", "logicalType": "timestamp-millis"}, WHEN, pa.timestamp("us"), WHEN.replace(tzinfo=None)),
        ("boolean", True, pa.string(), "true"),
        ("boolean", True, pa.int64(), 1),
        ("string", "7", pa.int64(), 7),
        ({"type": "array", "items": "double"}, [1.0, 2.5], pa.list_(pa.int64()), None),
        ({"type": "map", "values": "double"}, {"a": 2.0}, pa.map_(pa.string(), pa.int64()), [("a", 2)]),
        ("bytes", b"\xff", pa.string(), None),
    ],
)
def test_values_are_cast_exactly_or_dead(avro: Any, value: Any, column: pa.DataType, expected: Any) -> None:
    """Whatever stands beside them: here records with NULL."""
    schema = {"type": "record", "name": "row", "fields": [{"name": "x", "type": ["null", avro]}]}
    reader = avro_values(Options("kafka", {"schema": json.dumps(schema)}), pa.schema([("x", column)]))
    records = [record(schema, x=None), record(schema, x=value), record(schema, x=None)]
    beside = Beside({}, np.arange(3), lambda rows: [f"offset {row}" for row in rows])
    chunks = list(reader(records, Wanted(("x",), ("x",)), beside))
    found = [row for chunk in chunks for row in chunk.rows.column("x").to_pylist()]
    assert found == ([None, None] if expected is None else [None, expected, None])
    assert len(reasons(chunks)) == (expected is None)
