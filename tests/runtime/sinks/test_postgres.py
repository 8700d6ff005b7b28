"""Tables of PostgreSQL as sinks: a batch and its number in one transaction, types, upsert, what is refused."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from threading import Thread
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from eddyline import faults
from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.running.job import prepare
from eddyline.runtime.sinks.postgres import PostgresTable, open_table
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery
from lab.servers.postgres import NoPostgres, PostgresServer, postgres_server

ME = BatchOwner("0123456789ab", "results")
PAIRS = pa.schema([("k", pa.int64()), ("v", pa.string())])


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        with postgres_server() as running:
            yield running
    except NoPostgres as error:
        pytest.skip(str(error))


@pytest.fixture
def ask(server: PostgresServer) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    """Runs a statement, in a database without tables."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS public, other CASCADE; CREATE SCHEMA public")

        def ask(statement: str) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

        yield ask
    faults.inject(None)


def options(server: PostgresServer, **more: str) -> Options:
    return Options("postgres", {"url": server.url, "table": "out", "create": "true", **more})


def table(server: PostgresServer, schema: pa.Schema = PAIRS, **more: str) -> PostgresTable:
    opened = open_table(options(server, **{"mode": "append", **more}), (), schema)
    opened.check()
    opened.open()
    return opened


def pairs(*rows: tuple[int | None, str | None]) -> pa.RecordBatch:
    return pa.record_batch([[k for k, _ in rows], [v for _, v in rows]], schema=PAIRS)


def delivery(batch: int, owner: BatchOwner = ME, history: int = 7) -> Delivery:
    return Delivery(owner, BatchMark(batch, history), None)


def add(to: PostgresTable, batch: int, *batches: pa.RecordBatch, owner: BatchOwner | None = ME) -> None:
    to.add(lambda: iter(batches), None if owner is None else delivery(batch, owner))


Ask = Callable[[str], list[tuple[Any, ...]]]


def test_a_batch_that_comes_again_is_left_out(server: PostgresServer, ask: Ask) -> None:
    to = table(server)
    assert to.newest(ME) is None
    add(to, 0, pairs((1, "a"), (None, None)), pairs((2, "")))
    add(to, 0, pairs((1, "a"), (None, None)), pairs((2, "")))
    add(to, 4, pairs((3, 'say "hi",\n\\.')))
    with pytest.raises(JobError, match="has batch 4 of another run of this job; start it again"):
        add(to, 3, pairs((9, "old")))
    with pytest.raises(JobError, match="has batch 4 of another run of this job; start it again"):
        to.add(lambda: iter([pairs((9, "old"))]), delivery(4, history=8))
    with pytest.raises(JobError, match="has batch 4 of another run of this job; start it again"):
        to.add(lambda: iter([pairs((9, "old"))]), Delivery(ME, BatchMark(5, 8), BatchMark(4, 8)))
    assert sorted(ask("SELECT * FROM out"), key=str) == [(1, "a"), (2, ""), (3, 'say "hi",\n\\.'), (None, None)]
    assert ask("SELECT job, outlet, batch FROM eddyline_batches") == [("0123456789ab", "results", 4)]
    assert table(server).newest(ME) == BatchMark(4, 7)
    add(to, 0, pairs((5, "no owner")), owner=None)
    assert ask("SELECT count(*) FROM out") == [(5,)]


def test_marks_of_an_earlier_version(server: PostgresServer, ask: Ask) -> None:
    ask(
        "CREATE TABLE out (k bigint, v text); CREATE TABLE eddyline_batches (job text, outlet text,"
        " batch bigint NOT NULL, at timestamptz DEFAULT now(), PRIMARY KEY (job, outlet));"
        " INSERT INTO eddyline_batches VALUES ('0123456789ab', 'results', 3)"
    )
    to = open_table(options(server), (), PAIRS)
    assert to.newest(ME) == BatchMark(3)
    to.open()
    add(to, 3, pairs((1, "a")))
    add(to, 4, pairs((2, "b")))
    assert ask("SELECT * FROM out") == [(2, "b")] and to.newest(ME) == BatchMark(4, 7)
    to.close()


def test_the_number_and_the_rows_are_one_transaction(server: PostgresServer, ask: Ask) -> None:
    """A death between the rows and the end of the transaction leaves neither."""
    to = table(server)

    def reached(name: str) -> None:
        if name == "table: rows are copied":
            raise KeyboardInterrupt

    faults.inject(reached)
    with pytest.raises(KeyboardInterrupt):
        add(to, 0, pairs((1, "a")))
    faults.inject(None)
    assert ask("SELECT * FROM out") == [] and to.newest(ME) is None
    to.close()
    add(to, 0, pairs((1, "a")))
    assert ask("SELECT * FROM out") == [(1, "a")] and to.newest(ME) == BatchMark(0, 7)


def test_a_second_driver_waits_and_finds_the_batch(server: PostgresServer, ask: Ask) -> None:
    one, two = table(server), table(server)
    add(one, 0, pairs((0, "before")))
    other = Thread(target=add, args=(two, 1, pairs((1, "a"))))

    def rows() -> Iterator[pa.RecordBatch]:
        other.start()
        while ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == [(0,)]:
            assert other.is_alive()
        yield pairs((1, "a"))

    one.add(rows, delivery(1))
    other.join()
    assert ask("SELECT * FROM out WHERE k = 1") == [(1, "a")]


def test_a_lost_connection(server: PostgresServer, ask: Ask) -> None:
    """The server ends the session after the rows were copied; the second try writes them."""
    to, ended = table(server), []

    def reached(name: str) -> None:
        if name == "table: rows are copied" and not ended:
            ended.append(ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                             " AND state = 'idle in transaction'"))  # fmt: skip

    faults.inject(reached)
    add(to, 0, pairs((1, "a")))
    assert ended and ask("SELECT * FROM out") == [(1, "a")]


def test_types(server: PostgresServer, ask: Ask) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 678901)
    columns: dict[str, tuple[pa.Array, str, Any]] = {
        "byte": (pa.array([1], pa.int8()), "smallint", 1),
        "unsigned": (pa.array([2**32 - 1], pa.uint32()), "bigint", 2**32 - 1),
        "huge": (pa.array([2**64 - 1], pa.uint64()), "numeric", Decimal(2**64 - 1)),
        "float": (pa.array([float("-inf")]), "double precision", float("-inf")),
        "decimal": (pa.array([Decimal("-1.50")], pa.decimal128(10, 2)), "numeric", Decimal("-1.50")),
        "yes": (pa.array([True]), "boolean", True),
        "day": (pa.array([date(2026, 1, 1)]), "date", date(2026, 1, 1)),
        "local": (pa.array([when], pa.timestamp("us")), "timestamp without time zone", when),
        "moment": (pa.array([when], pa.timestamp("us", "UTC")), "timestamp with time zone", when.replace(tzinfo=UTC)),
        "clock": (pa.array([time(1, 2, 3)]), "time without time zone", time(1, 2, 3)),
        "gap": (pa.array([timedelta(days=-1, seconds=5)]), "interval", timedelta(days=-1, seconds=5)),
        "months": (pa.array([(0, 3, 4_000_000)], pa.month_day_nano_interval()), "interval",
                   timedelta(days=3, milliseconds=4)),
        "word": (pa.array(["x"]).dictionary_encode(), "text", "x"),
        "bytes": (pa.array([b"\x00\xff\\"]), "bytea", b"\x00\xff\\"),
        "list": (pa.array([[1, None]]), "jsonb", [1, None]),
        "struct": (pa.array([{"a": 1, "b": 'say "x"'}]), "jsonb", {"a": 1, "b": 'say "x"'}),
        "a.b ": (pa.array(["odd name"]), "text", "odd name"),
        "nothing": (pa.array([None], pa.int32()), "integer", None),
    }  # fmt: skip
    rows = pa.record_batch([array for array, _, _ in columns.values()], names=list(columns))
    add(table(server, rows.schema), 0, rows)
    types = ask("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'out'")
    assert dict(types) == {name: type_ for name, (_, type_, _) in columns.items()}
    assert ask("SELECT * FROM out") == [tuple(value for _, _, value in columns.values())]


def test_upsert(server: PostgresServer, ask: Ask) -> None:
    to = table(server, mode="upsert", key="K")
    add(to, 0, pairs((1, "a"), (2, "b"), (1, "c")), pairs((2, "d")))
    assert sorted(ask("SELECT * FROM out")) == [(1, "c"), (2, "d")]
    add(to, 1, pairs((1, "e"), (3, "f")))
    add(to, 1, pairs((1, "again")))
    assert sorted(ask("SELECT * FROM out")) == [(1, "e"), (2, "d"), (3, "f")]
    keys = table(server, pa.schema([("k", pa.int64())]), mode="upsert", key="k", table="keys")
    add(keys, 0, pa.record_batch({"k": [1, 1, 2]}), owner=BatchOwner("x", "results"))
    assert sorted(ask("SELECT * FROM keys")) == [(1,), (2,)]


def test_a_table_that_is_there(server: PostgresServer, ask: Ask) -> None:
    """It may have more columns, in another order and of other types that take the values."""
    ask("CREATE SCHEMA other; CREATE TABLE other.out (at timestamptz DEFAULT now(), v jsonb, k integer)")
    add(table(server, table="other.out", create="false"), 0, pairs((1, '{"a": 5}')))
    assert ask("SELECT k, v, at IS NULL FROM other.out") == [(1, {"a": 5}, False)]
    assert ask("SELECT batch FROM other.eddyline_batches") == [(0,)]


@pytest.mark.parametrize(
    ("before", "more", "message"),
    [
        ("", {"create": "false"}, "the PostgreSQL table out does not exist; create 'true' makes it"),
        ("CREATE TABLE out (k bigint, w text)", {}, "the PostgreSQL table out has no column v; "),
        ("CREATE TABLE out (k date, v text)", {}, 'cannot write to .* out: column "k" is of type date but expression'),
        ("CREATE TABLE out (k bigint, v text)", {"mode": "upsert", "key": "k"}, "no unique or exclusion constraint"),
        ("CREATE TABLE out (k bigint, v text); GRANT SELECT ON out TO small", {"as": "small"}, "permission denied"),
        ("", {"table": "a.b.c.d"}, "improper|cross-database|not implemented"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    server: PostgresServer, ask: Ask, before: str, more: dict[str, str], message: str
) -> None:
    ask("DO $$ BEGIN CREATE ROLE small LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    ask("GRANT USAGE, CREATE ON SCHEMA public TO small")
    ask(before or "SELECT 1")
    more = dict(more)
    if user := more.pop("as", None):
        more["url"] = server.url.replace(server.user, user)
    with pytest.raises(SettingError, match=message):
        open_table(options(server, **more), (), PAIRS).check()
    assert ask("SELECT count(*) FROM pg_class WHERE relname LIKE 'eddyline%'") == [(0,)], "a check changes nothing"


def test_values_that_do_not_fit_stop_the_job(server: PostgresServer, ask: Ask) -> None:
    ask("CREATE TABLE out (k smallint, v text CHECK (v <> 'bad'))")
    to = table(server)
    with pytest.raises(JobError, match=r'cannot write to .* out: value "99999" is out of range .*COPY out, line 1'):
        add(to, 0, pairs((99999, "a")))
    with pytest.raises(JobError, match="violates check constraint"):
        add(to, 0, pairs((1, "fine"), (2, "bad")))
    assert ask("SELECT * FROM out") == [] and to.newest(ME) is None


SCRIPT = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts; CREATE SINK o "


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("(table 'x')", r"postgres needs an option url_env, as in OPTIONS \(url_env 'PG_URL'\), or url, but not both"),
        ("(url_env 'PG_URL')", "postgres needs an option table"),
        ("(url_env 'PG_URL', table 'x', mode 'upsert')", "mode 'upsert' needs an option key, as in key 'id'"),
        ("(url_env 'PG_URL', table 'x', key 'k')", "key needs mode 'upsert'"),
        ("(url_env 'PG_URL', table 'x', mode 'upsert', key 'j')", "option key: there is no column j in the results"),
        ("(url_env 'PG_URL', table 'x') PARTITION BY (k)", "postgres divides tables itself; leave PARTITION BY out"),
        ("(url 'postgresql://me:hidden@h/db', table 'x')", "sink o: option url must not have a password"),
        ("(url_env 'PG_URL', table 'x', timeout '0 s')", "option timeout must be more than 0"),
        ("(url_env 'PG_URL', table 'x', timeout 'soon')", "option timeout is a length of time such as"),
    ],
)
def test_wrong_options(sink: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_URL", "postgresql://me:hidden@127.0.0.1:1/db?connect_timeout=2")
    with pytest.raises((ScriptError, SettingError), match=message) as told:
        prepare(f"{SCRIPT} USING postgres OPTIONS {sink}; INSERT INTO o SELECT k FROM s")
    assert "hidden" not in str(told.value)


def test_a_server_that_is_down_or_says_nothing_is_no_fault_of_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = f"{SCRIPT} USING postgres OPTIONS (url_env 'PG_URL', table 'x', timeout '1 s');"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port, message in ((1, "refused"), (silent.getsockname()[1], "timeout expired")):
            monkeypatch.setenv("PG_URL", f"postgresql://me:hidden@127.0.0.1:{port}/db")
            with pytest.raises(JobError, match=f"^cannot write to the PostgreSQL table x: .*{message}") as told:
                prepare(f"{sink} INSERT INTO o SELECT k FROM s")
            assert "hidden" not in str(told.value)


def test_a_lock_that_another_session_holds_is_named(server: PostgresServer, ask: Ask) -> None:
    to = table(server, timeout="500 ms")
    add(to, 0, pairs((1, "a")))
    with psycopg.connect(server.url) as other:
        other.execute("LOCK TABLE out IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(JobError, match=r"table out: another session has held a lock on it for 0\.5 s"):
            add(to, 1, pairs((2, "b")))
    add(to, 1, pairs((2, "b")))
    assert ask("SELECT count(*) FROM out") == [(2,)]


def test_a_server_that_hangs_ends_the_wait(server: PostgresServer, ask: Ask) -> None:
    to = table(server, timeout="1 s")
    server.pause()
    try:
        with pytest.raises(JobError, match="table out: no answer for 1 s, and no new session either"):
            add(to, 0, pairs((1, "a")))
    finally:
        server.go_on()
    add(to, 0, pairs((1, "a")))
    assert ask("SELECT count(*) FROM out") == [(1,)]


def test_a_server_that_only_needs_long_is_waited_for(server: PostgresServer, ask: Ask) -> None:
    ask("CREATE TABLE out (k bigint, v text);"
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END $$;"
        "CREATE TRIGGER slow BEFORE INSERT ON out FOR EACH ROW EXECUTE FUNCTION slow()")  # fmt: skip
    add(table(server, timeout="500 ms"), 0, pairs((1, "a")))
    assert ask("SELECT count(*) FROM out") == [(1,)]


TEXTS = [
    "äöü€",
    "日本",
    "",
    None,
    "\\.",
    "\\N",
    'q"q',
    "a,b",
    "l1\nl2",
    "cr\r\n",
    " x ",
    "😀",
    "\u0085",
    "NULL",
    "\ufeffbom",
]


@pytest.mark.parametrize("where", ["role", "environment", "url", "database"])
def test_texts_in_every_encoding(where: str, server: PostgresServer, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, url = TEXTS, server.url
    if where == "role":
        ask("ALTER ROLE eddyline SET client_encoding = 'WIN1252'")
    elif where == "environment":
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    elif where == "url":
        url += "?client_encoding=LATIN1"
    else:
        texts, url = ["äöü", "plain"], server.url.replace("/postgres", "/lat")
        ask("DROP DATABASE IF EXISTS lat")
        ask("CREATE DATABASE lat ENCODING 'LATIN1' TEMPLATE template0")
    try:
        to = table(server, url=url)
        add(to, 0, pairs(*enumerate(texts)))
        if where == "database":
            with pytest.raises(JobError, match='character with byte sequence 0xe6 0x97 0xa5 in encoding "UTF8" has no'):
                add(to, 1, pairs((9, "日")))
    finally:
        ask("ALTER ROLE eddyline RESET client_encoding")
        to.close()
    with psycopg.connect(url, client_encoding="UTF8") as connection:
        assert connection.execute("SELECT v FROM out ORDER BY k").fetchall() == [(text,) for text in texts]


def test_far_times_in_every_style(server: PostgresServer, ask: Ask) -> None:
    micros = [-62_135_596_800_000_001, -(2**57), 0, 253_402_300_800_000_000, None]
    days = [-800_000, -719_163, 0, 3_000_000, None]
    schema = pa.schema(
        [("a", pa.timestamp("us")), ("b", pa.timestamp("us", "UTC")), ("c", pa.date32()), ("d", pa.duration("us"))]
    )
    gaps = [-1, 0, 2**57, -(2**57), None]
    columns = [pa.array(v, f.type) for v, f in zip((micros, micros, days, gaps), schema, strict=True)]
    ask("ALTER ROLE eddyline SET TimeZone = 'Asia/Kathmandu'; ALTER ROLE eddyline SET DateStyle = 'SQL, DMY';"
        "ALTER ROLE eddyline SET IntervalStyle = 'iso_8601'")  # fmt: skip
    try:
        add(table(server, schema), 0, pa.RecordBatch.from_arrays(columns, schema=schema))
    finally:
        ask("ALTER ROLE eddyline RESET ALL")
    found = ask("SELECT (extract(epoch FROM a) * 1e6)::bigint, (extract(epoch FROM b) * 1e6)::bigint,"
                " c - date '1970-01-01', (extract(epoch FROM d) * 1e6)::bigint FROM out")  # fmt: skip
    assert found == list(zip(micros, micros, days, gaps, strict=True))
