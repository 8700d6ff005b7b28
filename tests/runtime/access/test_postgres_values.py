"""Values of a real PostgreSQL server: the same by scan and by key, whatever a role, a client or a database sets, and a
key that a column cannot hold has no match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eddyline.bound.types import arrow_type
from eddyline.runtime.access.client import TableRefused
from eddyline.runtime.access.fitting import only
from eddyline.runtime.access.tables import AccessTable
from lab.servers.postgres import NoPostgres, PostgresServer, postgres_server
from tests.support.access import all_answers, declared, failures, looked_up, scanned, unreadable, unreadable_by_scan

psycopg = pytest.importorskip("psycopg")
NAN, INF = float("nan"), float("inf")
REFUSED = "column x: '\N{REPLACEMENT CHARACTER}' is not a value of type VARCHAR"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        with postgres_server() as running:
            yield running
    except NoPostgres as reason:
        pytest.skip(f"PostgreSQL: {reason}")


@pytest.fixture
def run(server: PostgresServer) -> Callable[..., None]:
    """Runs statements, one after the other."""

    def run(*statements: str, url: str = "") -> None:
        with psycopg.connect(url or server.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    return run


def table(url: str, name: str, columns: str) -> AccessTable:
    """A table of the database with columns such as `k BIGINT, v VARCHAR`."""
    fields = [column.strip().split(" ", 1) for column in columns.split(";")]
    return declared("postgres", pa.schema([(n, arrow_type(t)) for n, t in fields]), url=url, table=name, retries=0)


def by_both(opened: AccessTable, keys: Mapping[str, Sequence[Any]], *columns: str) -> Rows:
    """The rows that a scan and an index find for keys of the declared types; they are the same."""
    arrays = {name: pa.array(values, opened.schema.field(name).type) for name, values in keys.items()}
    asked = pa.record_batch(arrays)
    names = [*columns, *(name for name in keys if name not in columns)]
    parts = [only(part, asked) for part in scanned(opened.open, *names)]
    by_scan = sorted((row for part in parts for row in part.to_pylist()), key=repr)
    answers = all_answers(opened, asked, columns=names)
    assert failures(answers) == {}
    by_key = sorted((row for answer in answers for row in answer.rows.to_pylist()), key=repr)
    assert repr(by_key) == repr(by_scan)
    return [{name: row[name] for name in columns} for row in by_scan]


SETTINGS = (
    "client_encoding = 'LATIN1'",
    "bytea_output = 'escape'",
    "extra_float_digits = -3",
    "IntervalStyle = 'iso_8601'",
    "TimeZone = 'Asia/Kathmandu'",
    "DateStyle = 'SQL, DMY'",
    "xmlbinary = 'hex'",
    "search_path = 'other'",
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_role_change_no_value(setting: str, server: PostgresServer, run: Callable[..., None]) -> None:
    run(
        "DROP TABLE IF EXISTS public.se",
        "CREATE TABLE public.se (k bigint, f double precision, r real, b bytea, i interval, d date, z timestamptz,"
        " t text, j jsonb, a float8[], da date[])",
        r"INSERT INTO public.se VALUES (1, 0.1234567890123456, 0.12345678, '\x00ff41', '1 year 2 days 03:04:05',"
        " '2026-03-04', '2026-03-04 05:06:07.123456+02', 'äöü€', '{\"a\": 1.50}', '{0.1234567890123456}',"
        " '{2026-03-04}')",
        f"ALTER ROLE eddyline SET {setting}",
    )
    try:
        opened = table(server.url, "public.se", "k BIGINT; f DOUBLE; r FLOAT; b BLOB; i VARCHAR; d DATE; z TIMESTAMPTZ;"
                       "t VARCHAR; j VARCHAR; a VARCHAR; da VARCHAR")  # fmt: skip
        (row,) = by_both(opened, {"k": [1]}, *opened.schema.names)
        assert list(row.values()) == [
            *(1, 0.1234567890123456, pytest.approx(0.12345678, rel=1e-7), b"\x00\xffA", "1 year 2 days 03:04:05"),
            *(date(2026, 3, 4), datetime(2026, 3, 4, 3, 6, 7, 123456, UTC), "äöü€", '{"a": 1.50}'),
            *("{0.1234567890123456}", "{2026-03-04}"),
        ]
        for key in ("f", "b", "d", "z", "t", "i"):
            assert len(by_both(opened, {key: [row[key]]}, "k")) == 1, key
    finally:
        run(f"ALTER ROLE eddyline RESET {setting.split(' ')[0]}")


def test_a_client_encoding_of_the_environment(
    server: PostgresServer, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("DROP TABLE IF EXISTS ce", "CREATE TABLE ce AS SELECT 'äöü日' AS x")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    for url in (server.url, f"{server.url}?client_encoding=WIN1252"):
        assert by_both(table(url, "ce", "x VARCHAR"), {"x": ["äöü日", "plain"]}, "x") == [{"x": "äöü日"}]


def test_a_database_that_is_not_utf8(server: PostgresServer, run: Callable[..., None]) -> None:
    run("DROP DATABASE IF EXISTS lat", "CREATE DATABASE lat ENCODING 'LATIN1' TEMPLATE template0")
    url = server.url.replace("/postgres", "/lat")
    run("CREATE TABLE p (k bigint, x text)", "INSERT INTO p VALUES (1, 'äöü'), (2, 'plain')", url=url)
    opened = table(url, "p", "k BIGINT; x VARCHAR")
    assert by_both(opened, {"k": [1, 2]}, "x") == [{"x": "plain"}, {"x": "äöü"}]
    assert by_both(opened, {"x": ["日本", "äöü", "plain", "€"]}, "k") == [{"k": 1}, {"k": 2}]
    missing = table(url, "tä", "k BIGINT")
    with pytest.raises(TableRefused, match="no table tä"):
        looked_up(missing.open, pa.record_batch({"k": [1]}), "k")


def test_a_database_without_an_encoding(server: PostgresServer, run: Callable[..., None]) -> None:
    run("DROP DATABASE IF EXISTS raw", "CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0")
    url = server.url.replace("/postgres", "/raw")
    insert = r"INSERT INTO p VALUES (1, E'\xff'), (2, 'é')"
    run("CREATE TABLE p (k bigint, x text)", insert, url=f"{url}?client_encoding=UTF8")
    opened = table(url, "p", "k BIGINT; x VARCHAR")
    assert by_both(table(url, "p", "k BIGINT"), {"k": [1, 2]}, "k") == [{"k": 1}, {"k": 2}]
    answers = all_answers(opened, pa.record_batch({"k": [1, 2]}))
    assert unreadable(answers) == unreadable_by_scan(opened.open, "x") == [REFUSED]
    assert [row for a in answers for row in a.rows.to_pylist()] == [{"k": 2, "x": "é"}]


def test_enums_wherever_their_type_is(server: PostgresServer, run: Callable[..., None]) -> None:
    run(
        'DROP SCHEMA IF EXISTS "my %s" CASCADE', 'CREATE SCHEMA "my %s"',
        """CREATE TYPE "my %s"."Mo'od" AS ENUM ('ok', 'bad')""",
        """CREATE TABLE "my %s".e (k "my %s"."Mo'od", n int, v int)""",
        """INSERT INTO "my %s".e VALUES ('ok', 1, 1), ('bad', 2, 2)""",
    )  # fmt: skip
    opened = table(server.url, '"my %s".e', "k VARCHAR; n BIGINT; v INTEGER")
    assert by_both(opened, {"k": ["ok", "unknown", ""]}, "v") == [{"v": 1}]
    pairs: dict[str, list[Any]] = {"k": ["ok", "unknown", "bad", "bad"], "n": [1, 1, 1, 2]}
    assert by_both(opened, pairs, "v") == [{"v": 1}, {"v": 2}]


def test_a_domain_over_an_enum(server: PostgresServer, run: Callable[..., None]) -> None:
    run("DROP DOMAIN IF EXISTS small CASCADE", "CREATE DOMAIN small AS int CHECK (VALUE < 10)",
        "DROP TABLE IF EXISTS dom", "CREATE TABLE dom (k small)", "INSERT INTO dom VALUES (1)")  # fmt: skip
    assert by_both(table(server.url, "dom", "k BIGINT"), {"k": [1, 100, 2**40]}, "k") == [{"k": 1}]


GOOD = "00000000-0000-0000-0000-00000000000a"
NO_MATCH: list[tuple[str, str, str, list[Any]]] = [
    ("uuid", GOOD, "VARCHAR", [GOOD, GOOD.upper(), "none", "", GOOD.replace("-", "")]),
    ("inet", "10.0.0.1", "VARCHAR", ["10.0.0.1/32", "none", "10.0.0.1"]),
    ("int", "7", "BIGINT", [7, 2**40, -(2**63)]),
    ("smallint", "7", "DOUBLE", [7.0, 7.5, NAN, INF, 1e300]),
    ("bigint", "9007199254740992", "DOUBLE", [9007199254740992.0, 1e19, -INF]),
    ("int", "7", "VARCHAR", ["7", "07", "x", "", "7.0"]),
    ("bool", "true", "VARCHAR", ["true", "t", "yes", "false"]),
    ("bigint", "7", "DECIMAL(10,2)", [Decimal("7.00"), Decimal("7.01")]),
    ("date", "2026-01-01", "TIMESTAMP", [datetime(2026, 1, 1), datetime(2026, 1, 1, 1)]),
    ("date", "0001-01-01", "DATE", [date(1, 1, 1), date(9999, 12, 31)]),
    ("timestamp", "2026-01-01", "DATE", [date(2026, 1, 1), date(1, 1, 1)]),
    ("timestamp", "2026-01-01", "VARCHAR", ["2026-01-01 00:00:00", "2026-01-01", "no time"]),
    ("real", "0.1", "DOUBLE", [0.10000000149011612, 0.1]),
    ("real", "0.1", "VARCHAR", ["0.1", "0.10", "x"]),
    ("double precision", "0.1", "FLOAT", [0.1, 0.2, NAN]),
    ("double precision", "NaN", "DOUBLE", [NAN, INF, 0.0]),
    ("double precision", "-0", "DOUBLE", [0.0, 1.0]),
    ("double precision", "1e-50", "FLOAT", [0.0, 1.0]),
    ("numeric", "0.10000000000000000001", "DOUBLE", [0.1, 0.5, NAN]),
    ("numeric", "NaN", "DOUBLE", [NAN, INF]),
    ("numeric", "1.50", "VARCHAR", ["1.50", "1.5", "x", ""]),
    ("numeric", "1.50", "DECIMAL(10,3)", [Decimal("1.500"), Decimal("1.501")]),
    ("text", "a", "VARCHAR", ["a", "a\0", "A", "\0"]),
    ("char(5)", "ab", "VARCHAR", ["ab", "ab   ", "abcdefg"]),
    ("varchar(3)", "abc", "VARCHAR", ["abc", "abcd"]),
    ("bytea", r"\x00", "BLOB", [b"\0", b"", b"\\x00"]),
]


@pytest.mark.parametrize("there, value, mine, keys", NO_MATCH)
def test_a_key_that_the_column_cannot_hold_has_no_match(
    there: str, value: str, mine: str, keys: list[Any], server: PostgresServer, run: Callable[..., None]
) -> None:
    """The first key is the value; no other is."""
    run("DROP TABLE IF EXISTS no", f"CREATE TABLE no (k {there}, i int)", f"INSERT INTO no VALUES ('{value}', 1)")
    opened = table(server.url, "no", f"k {mine}; i INTEGER")
    assert by_both(opened, {"k": keys}, "i") == [{"i": 1}]
    assert by_both(opened, {"k": keys[1:]}, "i") == []
    pairs = {"k": [*keys, keys[0]], "i": [1] * len(keys) + [2]}
    assert by_both(opened, pairs, "i") == [{"i": 1}]


def test_a_text_column_is_no_index_of_numbers(server: PostgresServer, run: Callable[..., None]) -> None:
    """A scan would find 01 for the key 1, an index could not."""
    run("DROP TABLE IF EXISTS tn", "CREATE TABLE tn AS SELECT '01'::text AS k")
    with pytest.raises(TableRefused, match="column k is text in the database: an INDEX needs it as VARCHAR"):
        looked_up(table(server.url, "tn", "k BIGINT").open, pa.record_batch({"k": [1]}), "k")


CELLS = [
    ("timestamp", "'infinity'", "TIMESTAMP"), ("timestamp", "'-infinity'", "VARCHAR"), ("date", "'infinity'", "DATE"),
    ("timestamp", "'294276-12-31'", "TIMESTAMP"), ("timestamptz", "'infinity'", "TIMESTAMPTZ"),
    ("numeric", "'NaN'", "DECIMAL(10,2)"), ("numeric", "1.555", "DECIMAL(10,2)"), ("bigint", "300", "TINYINT"),
    ("numeric", "2.5", "BIGINT"), ("timestamp", "'2026-01-01 01:00'", "DATE"), ("text", "'x'", "BIGINT"),
    ("double precision", "1e300", "FLOAT"), ("double precision", "2.5", "BIGINT"), ("bytea", r"'\xff'", "VARCHAR"),
]  # fmt: skip


@pytest.mark.parametrize("there, value, mine", CELLS)
def test_a_row_that_cannot_be_read_is_dead_by_both(
    there: str, value: str, mine: str, server: PostgresServer, run: Callable[..., None]
) -> None:
    run("DROP TABLE IF EXISTS misfit", f"CREATE TABLE misfit AS SELECT 1 AS k, {value}::{there} AS v")
    opened = table(server.url, "misfit", f"k BIGINT; v {mine}")
    (reason,) = unreadable_by_scan(opened.open, "v")
    assert unreadable(all_answers(opened, pa.record_batch({"k": [1]}))) == [reason]
    assert reason.startswith("column v: ")


@pytest.mark.parametrize(
    "there, value, mine, read",
    [
        ("timestamp", "'0044-03-15 BC'", "VARCHAR", "0044-03-15 (BC) 00:00:00"),
        ("date", "'0044-03-15 BC'", "VARCHAR", "0044-03-15 (BC)"),
        ("int[]", "'{1,2}'", "VARCHAR", "{1,2}"),
        ("jsonb", """'{"a": 1.50}'""", "VARCHAR", '{"a": 1.50}'),
        ("time", "'24:00:00'", "VARCHAR", "24:00:00"),
        ("numeric", "12345678901234567890.0123456789", "DECIMAL(30,10)", Decimal("12345678901234567890.0123456789")),
        ("numeric", "'Infinity'", "DOUBLE", INF),
        ("bool", "true", "VARCHAR", "true"),
        ("bool", "true", "BIGINT", 1),
        ("real", "0.1", "DOUBLE", 0.10000000149011612),
        ("real", "0.1", "DECIMAL(3,2)", Decimal("0.10")),
        ("timestamp", "'2026-01-01'", "VARCHAR", "2026-01-01 00:00:00"),
        ("timestamptz", "'2026-01-01'", "VARCHAR", "2026-01-01 00:00:00+00"),
        ("double precision", "'-Infinity'", "VARCHAR", "-inf"),
        ("money", "12.5", "VARCHAR", "$12.50"),
    ],
)
def test_values_in_other_types(
    there: str, value: str, mine: str, read: Any, server: PostgresServer, run: Callable[..., None]
) -> None:
    run("DROP TABLE IF EXISTS other", f"CREATE TABLE other AS SELECT 1 AS k, {value}::{there} AS v")
    opened = table(server.url, "other", f"k BIGINT; v {mine}")
    assert by_both(opened, {"k": [1]}, "v") == [{"v": read}]


@pytest.mark.parametrize(
    "column, mine, key",
    [("i", "DOUBLE", 2.0**53), ("n", "DOUBLE", 0.1), ("n", "FLOAT", 0.1), ("s", "FLOAT", 2.0**24),
     ("b", "FLOAT", 2.0**54 + 2.0**31)],
)  # fmt: skip
def test_a_number_is_found_by_the_nearest_float(
    column: str, mine: str, key: float, server: PostgresServer, run: Callable[..., None]
) -> None:
    numbers = f"9007199254740993::int8 AS i, 0.1::numeric AS n, 16777217::int4 AS s, {2**54 + 2**30 + 1}::int8 AS b"
    run("DROP TABLE IF EXISTS near", f"CREATE TABLE near AS SELECT 1::int8 AS k, {numbers}")
    assert by_both(table(server.url, "near", f"k BIGINT; {column} {mine}"), {column: [key]}, "k") == [{"k": 1}]
