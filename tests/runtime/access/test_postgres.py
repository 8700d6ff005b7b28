"""Tables of a real PostgreSQL server: lookups, scans, values, failures."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eddyline.engine.lookups.look_up import Request
from eddyline.runtime.access import postgres
from eddyline.runtime.access.asking import Asking
from eddyline.runtime.access.client import TableRefused, TryFailed
from eddyline.runtime.access.tables import AccessTable
from eddyline.runtime.access.tuning import AccessTuning
from lab.servers.postgres import NoPostgres, PostgresServer, postgres_server
from lab.servers.valkey import free_port
from tests.support.access import NO_KEYS, all_answers, declared, failures, looked_up, scanned, unreadable
from tests.support.threads import started_threads

psycopg = pytest.importorskip("psycopg")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("x", pa.float64()), ("d", pa.date32()), ("ts", pa.timestamp("us")),
     ("tz", pa.timestamp("us", "UTC")), ("b", pa.binary()), ("n", pa.decimal128(10, 2)), ("ok", pa.bool_())]
)  # fmt: skip
ROWS = [
    {
        "id": 1,
        "name": 'a "quoted", é',
        "x": 0.5,
        "d": date(2026, 1, 2),
        "ts": datetime(1999, 1, 2, 3, 4, 5, 6),
        "tz": datetime(2026, 1, 1, tzinfo=UTC),
        "b": b"\x00\xff",
        "n": Decimal("1.25"),
        "ok": True,
    },
    {
        "id": 2,
        "name": "",
        "x": float("inf"),
        "d": date(1, 1, 1),
        "ts": datetime(2026, 1, 1),
        "tz": datetime(1, 1, 2, tzinfo=UTC),
        "b": b"",
        "n": Decimal("-3.00"),
        "ok": False,
    },
    {"id": 3, "name": None, "x": None, "d": None, "ts": None, "tz": None, "b": None, "n": None, "ok": None},
    {
        "id": 4,
        "name": "two\nlines\\",
        "x": -0.0,
        "d": date(9999, 12, 31),
        "ts": datetime(9999, 12, 31),
        "b": b"\\",
        "n": Decimal(0),
        "tz": datetime(2026, 1, 1, tzinfo=UTC),
        "ok": True,
    },
]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        with postgres_server() as running:
            with psycopg.connect(running.url, autocommit=True) as connection:
                connection.execute(
                    'CREATE TABLE "All types" (id int4 PRIMARY KEY, "NAME" text, x float8, d date, ts timestamp,'
                    " tz timestamptz, b bytea, n numeric, ok bool)"
                )
                for row in ROWS:
                    values = ",".join(["%s"] * len(row))
                    insert = f'INSERT INTO "All types" ({", ".join(row).replace("name", chr(34) + "NAME" + chr(34))})'
                    connection.execute(f"{insert} VALUES ({values})", list(row.values()))
                connection.execute(
                    "CREATE TABLE pairs AS SELECT i AS a, 'b' || i % 3 AS b, i AS c FROM generate_series(1, 40000) i"
                )
                connection.execute("CREATE INDEX ON pairs (a, b)")
                connection.execute(
                    "CREATE TABLE odd (k text, v text, w timestamp); INSERT INTO odd"
                    " VALUES ('1', '1', 'infinity'), ('2', 'x', now()), ('3', '3', now())"
                )
                connection.execute("CREATE TABLE padded (k char(4), v int); INSERT INTO padded VALUES ('a', 1)")
            yield running
    except NoPostgres as reason:
        pytest.skip(f"PostgreSQL: {reason}")


@pytest.fixture
def table(server: PostgresServer) -> Callable[..., AccessTable]:
    def made(name: str, schema: pa.Schema, **options: object) -> AccessTable:
        return declared("postgres", schema, url=server.url, table=name, **options)

    return made


Made = Callable[..., AccessTable]


def test_values_of_all_types(table: Made) -> None:
    all_types = table('"All types"', SCHEMA)
    keys = pa.record_batch({"id": [4, 1, 2, 3, 99]})
    assert looked_up(all_types.open, keys, *SCHEMA.names) == sorted(ROWS, key=repr)
    assert looked_up(all_types.open, pa.record_batch({"id": [99]}), *SCHEMA.names) == []
    (part,) = scanned(all_types.open, *SCHEMA.names)
    assert part.to_pylist() == ROWS


@pytest.mark.parametrize("name", [name for name in SCHEMA.names if name != "b"])
def test_keys_of_all_types(name: str, table: Made) -> None:
    values = [row[name] for row in ROWS if row[name] is not None]
    keys = pa.record_batch({name: pa.array(dict.fromkeys(values), SCHEMA.field(name).type)})
    found = looked_up(table('"All types"', SCHEMA).open, keys, "id")
    assert [row["id"] for row in found] == ([1, 2, 3, 4] if name == "id" else [1, 2, 4])


def test_keys_of_bytes(table: Made) -> None:
    keys = pa.record_batch({"b": pa.array([b"\x00\xff", b"\\", b"no"])})
    assert looked_up(table('"All types"', SCHEMA).open, keys, "id") == [{"id": 1}, {"id": 4}]


def test_a_key_that_is_too_large_for_the_column_has_no_rows(table: Made) -> None:
    keys = pa.record_batch({"id": [2**62, 1]})
    assert looked_up(table('"All types"', SCHEMA).open, keys, "id") == [{"id": 1}]


PAIRS = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.int64())])


def test_keys_of_two_columns(table: Made) -> None:
    keys = pa.record_batch({"b": ["b1", "b1", "b2"], "a": pa.array([1, 2, 2], pa.int32())})
    assert [row["c"] for row in looked_up(table("public.pairs", PAIRS).open, keys, "c")] == [1, 2]


def test_a_scan_in_parts(table: Made) -> None:
    parts = scanned(table("pairs", PAIRS).open, "c")
    assert len(parts) == 3
    assert pa.Table.from_batches(parts).column("c").to_pylist() == [*range(1, 40001)]


def test_requests_at_once_with_a_scan(table: Made) -> None:
    keys = pa.record_batch({"a": pa.array(range(30_000, 50_000), pa.int32())})
    found = all_answers(table("pairs", PAIRS, concurrency=4, batch=1000), keys, NO_KEYS)
    rows = sorted(row["c"] for a in found if a.method == 0 for row in a.rows.to_pylist())
    assert rows == [*range(30_000, 40_001)]
    assert sum(a.keys.num_rows for a in found if a.method == 0) == 20_000
    assert sum(a.rows.num_rows for a in found if a.method == 1) == 40_000
    assert not any(a.error for a in found)


def test_a_value_that_does_not_fit_kills_its_row_only(table: Made) -> None:
    odd = table("odd", pa.schema([("k", pa.string()), ("v", pa.int64()), ("w", pa.timestamp("us"))]), retries=0)
    keys = pa.record_batch({"k": ["1", "2", "3", "4"]})
    answers = all_answers(odd, keys, columns=("k", "v"))
    assert unreadable(answers) == ["column v: 'x' is not a value of type BIGINT"] and not failures(answers)
    assert sorted(row["v"] for a in answers for row in a.rows.to_pylist()) == [1, 3]
    answers = all_answers(odd, keys, columns=("k", "w"))
    assert unreadable(answers) == ["column w: 'infinity' is not a value of type TIMESTAMP"]


def test_spaces_that_the_database_ignores(table: Made) -> None:
    padded = table("padded", pa.schema([("k", pa.string()), ("v", pa.int64())]))
    answers = all_answers(padded, pa.record_batch({"k": ["a", "a   "]}))
    assert [row for a in answers for row in a.rows.to_pylist()] == [{"k": "a", "v": 1}]


@pytest.mark.parametrize(
    "name, schema, message",
    [
        ("missing", PAIRS, "the database has no table missing"),
        ("pairs", pa.schema([("a", pa.int64()), ("z", pa.int64())]), "table pairs of the database has no column z"),
        ("pairs; DROP TABLE pairs", PAIRS, None),
    ],
)
def test_tables_that_are_refused(name: str, schema: pa.Schema, message: str | None, table: Made) -> None:
    with pytest.raises(TableRefused) as caught:
        looked_up(table(name, schema).open, pa.record_batch({"a": [1]}), "a")
    assert message is None or str(caught.value) == message


def test_nothing_is_written(server: PostgresServer) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE FUNCTION bad() RETURNS int LANGUAGE sql AS 'DELETE FROM pairs; SELECT 1'")
        connection.execute("CREATE VIEW worse AS SELECT bad() AS a")
        connection.commit()
    worse = declared("postgres", pa.schema([("a", pa.int64())]), url=server.url, table="worse")
    with pytest.raises((TryFailed, TableRefused), match="read-only"):
        looked_up(worse.open, pa.record_batch({"a": [1]}), "a")


def test_a_password_is_in_no_message(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in (f"postgresql://nobody:hidden@127.0.0.1:{server.port}/postgres",
                f"postgresql://me:hidden@127.0.0.1:{free_port()}/postgres?connect_timeout=2"):  # fmt: skip
        monkeypatch.setenv("PG_URL", url)
        nowhere = declared("postgres", PAIRS, url_env="PG_URL", table="pairs")
        with pytest.raises(TryFailed) as caught:
            looked_up(nowhere.open, pa.record_batch({"a": [1]}), "a")
        assert "hidden" not in str(caught.value) and "\n" not in str(caught.value)
        assert "hidden" not in repr(nowhere)


def test_lost_connections_are_made_again(table: Made, server: PostgresServer) -> None:
    pairs = table("pairs", PAIRS, concurrency=1)
    with Asking({"t": pairs}) as asking:
        for key in range(1, 4):
            asking.ask([Request("t", 0, pa.record_batch({"a": pa.array([key], pa.int32())}))])
            (answer,) = asking.answers(20)
            assert (answer.error, answer.rows.column("c").to_pylist()) == (None, [key])
            with psycopg.connect(server.url, autocommit=True) as other:
                ended = other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND backend_type = 'client backend'"
                ).fetchall()
                assert len(ended) == 1


def test_a_lookup_that_is_cancelled_leaves_the_client_usable(table: Made, server: PostgresServer) -> None:
    keys = pa.record_batch({"a": pa.array([1], pa.int32())})

    async def course() -> None:
        client = table("pairs", PAIRS).open()
        with psycopg.connect(server.url) as locking:
            locking.execute("LOCK TABLE pairs IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.lookup(("c",), keys), 0.2)
            locking.rollback()
        assert (await client.lookup(("c",), keys)).rows.to_pylist() == [{"c": 1}]
        await client.close()

    asyncio.run(course())


def test_a_lock_of_another_session_is_named(
    table: Made, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_SESSION", postgres._SESSION.replace("20s", "200ms"))
    keys = pa.record_batch({"a": pa.array([1], pa.int32())})
    pairs = table("pairs", PAIRS, timeout="1 s", retries=99)
    with psycopg.connect(server.url) as locking:
        locking.execute("LOCK TABLE pairs IN ACCESS EXCLUSIVE MODE")
        found = failures(all_answers(pairs, keys))
        scan = all_answers(pairs, NO_KEYS)
    assert "another session holds a lock on pairs" in found[1]
    assert [answer.error for answer in scan] == ["another session holds a lock on pairs"]
    assert failures(all_answers(pairs, keys)) == {}


def sessions(server: PostgresServer) -> int:
    with psycopg.connect(server.url) as connection:
        found: Any = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchone()
        return int(found[0])


def test_close_ends_lookups_and_sessions(table: Made, server: PostgresServer) -> None:
    threads = started_threads()
    with psycopg.connect(server.url) as locking:
        locking.execute("LOCK TABLE pairs IN ACCESS EXCLUSIVE MODE")
        asking = Asking({"t": table("pairs", PAIRS, batch=1, concurrency=3)})
        asking.ask([Request("t", 0, pa.record_batch({"a": pa.array(range(9), pa.int32())}))])
        while sessions(server) < 4:
            time.sleep(0.01)
        begin = time.monotonic()
        asking.close()
        assert time.monotonic() - begin < 25, "it waited for the deadline of the lookups, which is after 30 s"
    assert started_threads() == threads
    for _ in range(30_000):
        if not sessions(server):
            return
        time.sleep(0.01)
    raise AssertionError("sessions are left")


def test_a_server_that_hangs_is_left_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/db"
        hung = declared("postgres", PAIRS, url=url, table="pairs", timeout="0.3 s")
        answers = all_answers(hung, pa.record_batch({"a": pa.array([1, 2], pa.int32())}))
        assert failures(answers) == {1: "no answer within 0.3 s", 2: "no answer within 0.3 s"}


def test_close_in_the_middle_of_a_scan(table: Made, caplog: pytest.LogCaptureFixture) -> None:
    threads = started_threads()
    with Asking({"t": table("pairs", PAIRS)}, tuning=AccessTuning(scan_parts=1)) as asking:
        asking.ask([Request("t", 0, NO_KEYS)])
        assert not asking.answers(10)[0].is_last
    assert not caplog.records and started_threads() == threads


def test_a_server_that_hangs_in_the_middle_and_comes_back(table: Made, server: PostgresServer) -> None:
    with Asking({"t": table("pairs", PAIRS, timeout="0.4 s", concurrency=2)}) as asking:

        def ask(key: int) -> tuple[str | None, int]:
            asking.ask([Request("t", 0, pa.record_batch({"a": pa.array([key], pa.int32())}))])
            (answer,) = asking.answers(20)
            return answer.error, answer.rows.num_rows

        assert ask(1) == (None, 1)
        server.pause()
        try:
            assert ask(2) == ("no answer within 0.4 s", 0)
        finally:
            server.go_on()
        assert ask(3) == (None, 1)
