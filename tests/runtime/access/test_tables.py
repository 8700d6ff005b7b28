"""Options of tables that are asked, and what is wrong with them, in one line."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from eddyline.bound.model import AccessMethod
from eddyline.cql.declaration import Declaration, DeclaredMethod
from eddyline.cql.places import Place
from eddyline.errors import SettingError
from eddyline.extras import install
from eddyline.runtime.access import tables
from eddyline.runtime.access.tables import AccessTable, open_table
from eddyline.runtime.secrets import secret

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
PLAIN = pa.schema([("id", pa.int64()), ("name", pa.string())])
SCAN = AccessMethod()


def answers(keys: pa.RecordBatch) -> pa.RecordBatch:
    return keys


def opened(format_: str, schema: pa.Schema = PLAIN, **options: object) -> AccessTable:
    written = {key: str(value) for key, value in options.items()}
    return open_table(Declaration("TABLE", "t", None, format_, written, None, 0, None, None, Place(1, 1)), schema)


def refusal(format_: str, schema: pa.Schema = PLAIN, **options: object) -> str:
    with pytest.raises(SettingError) as caught:
        opened(format_, schema, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PG_URL", "postgresql://me:hidden@localhost/db")
    monkeypatch.setenv("BROKEN_URL", "nonsense with hidden words")
    monkeypatch.setenv("URL_WITH_AT", "postgresql://me:very@hidden@h/db")
    sqlite3.connect("a.db").close()
    duckdb.connect("a.duckdb").close()


GOOD = {
    "postgres": {"url_env": "PG_URL", "table": "users"},
    "sqlite": {"path": "a.db", "table": "users"},
    "duckdb": {"path": "a.duckdb", "table": "users"},
    "redis": {"host": "localhost", "port": 6379, "prefix": "user:"},
    "http": {"url": "http://localhost/x?id={id}"},
    "python": {"function": "tests.runtime.access.test_tables:answers"},
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("format_", tables.FORMATS)
def test_the_options_of_every_format(format_: str) -> None:
    common = {"concurrency": 3, "timeout": "2 s", "retries": 1, "rate": "2.5", "ttl": "10 minutes", "cache_rows": 9}
    found = opened(format_, **GOOD[format_], **common).options
    assert (found.concurrency, found.timeout, found.retries, found.rate) == (3, 2.0, 1, 2.5)
    assert (found.ttl, found.cache_rows) == (600.0, 9)
    plain = opened(format_, **GOOD[format_]).options
    assert (plain.timeout, plain.rate, plain.ttl, plain.cache_rows) == (30.0, None, None, None)
    assert "did you mean 'timeout'?" in refusal(format_, **GOOD[format_], timeot=1)
    assert plain.batch == 1 if format_ == "http" else plain.batch > 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "format_, options, message",
    [
        ("postgress", {}, "'postgress' cannot be asked for rows; did you mean 'postgres'?"),
        ("sqlite", {"batch": 0}, "option batch is a whole number of at least 1, not '0'"),
        ("sqlite", {"timeout": "soon"},
         "option timeout is a length of time such as '2 s' or '1 minute 30 s', not 'soon'"),
        ("sqlite", {"timeout": "0"}, "option timeout must be more than 0"),
        ("sqlite", {"rate": "fast"}, "option rate is a number of requests per second, not 'fast'"),
        ("sqlite", {"rate": "-1"}, "option rate is a number of requests per second, not '-1'"),
        ("sqlite", {"path": "b.db"}, "there is no file 'b.db'"),
        ("sqlite", {"table": ""}, "sqlite needs an option table, as in OPTIONS (table 'users')"),
        ("http", {"batch": 5}, "option batch: a request has one key; several can be posted to a batch_url"),
        ("http", {"url": "http://localhost/{ids}"}, "option url: there is no column 'ids'; did you mean 'id'?"),
        ("http", {"url": "http://localhost/"}, "option url needs the key, as in http://localhost:8080/price?sku={sku}"),
        ("http", {"url": "localhost/{id}"}, "option url begins with http:// or https:// and a host"),
        ("http", {"url": "http://me:hidden@h/{id}"}, "option url must not have a password; use authorization_env"),
        ("http", {"authorization_env": "NOBODY_SET_IT"},
         "authorization_env names the environment variable NOBODY_SET_IT, which is not set"),
        ("postgres", {"url": "postgresql://h/db"},
         "postgres needs an option url_env, as in OPTIONS (url_env 'PG_URL'), or url, but not both"),
        ("postgres", {"url_env": "BROKEN_URL"},
         "the environment variable BROKEN_URL is not a URL such as postgresql://user@host:5432/database"),
        ("postgres", {"url_env": "URL_WITH_AT"},
         "the environment variable URL_WITH_AT has an @ in the user or the password; write %40 in its place"),
        ("postgres", {"url_env": "", "url": "postgresql://me:hidden@h/db"},
         "option url must not have a password; put the URL in an environment variable: url_env"),
        ("redis", {"url": "valkey://h"}, "option url says where the server is; leave out host, port"),
        ("python", {"function": "scores"}, "option function is 'module:name', not 'scores'"),
        ("python", {"function": "no_such_module:f"},
         "option function: no_such_module cannot be imported (ModuleNotFoundError: No module named 'no_such_module')"),
        ("python", {"function": "json:no_such"}, "option function: json has no function no_such"),
    ],
)  # fmt: skip
def test_wrong_options(format_: str, options: dict[str, object], message: str) -> None:
    assert refusal(format_, **{**GOOD.get(format_, {}), **options}) == message
    assert "hidden" not in message


@pytest.mark.usefixtures("files")
def test_types_that_cannot_be_read() -> None:
    assert "column tags: a value of type" in refusal("sqlite", SCHEMA, **GOOD["sqlite"])
    for format_ in ("http", "duckdb", "python"):
        opened(format_, SCHEMA, **GOOD[format_])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "format_, methods, message",
    [
        ("http", [SCAN], "table t: http cannot give all rows; leave SCAN out"),
        ("http", [AccessMethod(("name",))], "table t: INDEX ON (name): option url needs column id too"),
        ("redis", [AccessMethod(("id", "name"))], "table t: INDEX ON (id, name): a key of redis is one column"),
        ("redis", [AccessMethod(("id",)), AccessMethod(("name",))], "table t: redis has one INDEX, by its key"),
        ("python", [AccessMethod(("id",)), SCAN], "table t: python cannot give all rows; leave SCAN out"),
    ],
)
def test_access_methods_that_a_format_does_not_have(format_: str, methods: list[AccessMethod], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        opened(format_, **GOOD[format_]).check(methods)
    assert str(caught.value) == message


@pytest.mark.usefixtures("files")
def test_access_methods_that_there_are() -> None:
    for format_ in ("postgres", "sqlite", "duckdb"):
        opened(format_, **GOOD[format_]).check([SCAN, AccessMethod(("id",)), AccessMethod(("id", "name"))])
    opened("http", **GOOD["http"]).check([AccessMethod(("id", "name"))])
    with pytest.raises(SettingError, match="is not a key"):
        opened("duckdb", SCHEMA, **GOOD["duckdb"]).check([AccessMethod(("tags",))])


def of_methods(format_: str, options: dict[str, object], *own: dict[str, str]) -> AccessTable:
    written = {key: str(value) for key, value in options.items()}
    methods = tuple(DeclaredMethod(("id",), one) for one in own)
    declaration = Declaration("TABLE", "t", None, format_, written, None, 0, None, None, Place(1, 1), methods=methods)
    return open_table(declaration, PLAIN)


@pytest.mark.usefixtures("files")
def test_methods_with_equal_options_are_at_one_place() -> None:
    slow, fast = {"timeout": "9"}, {"timeout": "1", "rate": "5"}
    found = of_methods("sqlite", {**GOOD["sqlite"], "ttl": 7}, {}, slow, fast, slow, {"path": "a.db"})
    assert [found.at(method).place for method in range(5)] == [0, 1, 2, 1, 0]
    assert [(table.place, table.options.timeout, table.options.rate) for table in found.places] == [
        (0, 30.0, None),
        (1, 9.0, None),
        (2, 1.0, 5.0),
    ]
    assert {table.options.ttl for table in found.places} == {7.0}
    assert opened("sqlite", **GOOD["sqlite"]).at(3).place == 0


@pytest.mark.usefixtures("files")
def test_a_place_that_only_methods_name() -> None:
    found = of_methods("sqlite", {"table": "users"}, {"path": "a.db", "timeout": "2"}, {"path": "a.db"})
    assert [table.options.timeout for table in found.places] == [2.0, 30.0]


@pytest.mark.usefixtures("files")
def test_replicas_of_a_format_with_one_index() -> None:
    found = of_methods("redis", GOOD["redis"], {}, {"port": "6380"})
    found.check([AccessMethod(("id",)), AccessMethod(("id",))])
    with pytest.raises(SettingError, match="redis has one INDEX"):
        found.check([AccessMethod(("id",)), AccessMethod(("name",))])
    found = of_methods("http", GOOD["http"], {}, {"url": "http://other/{name}"})
    with pytest.raises(SettingError, match="option url needs column name too"):
        found.check([AccessMethod(("id",)), AccessMethod(("id",))])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "own, message, at",
    [
        ({"timeot": "1"}, "sqlite has no option 'timeot'; did you mean 'timeout'?", "method 1 option timeot"),
        ({"path": "b.db"}, "there is no file 'b.db'", "method 1 option path"),
        ({"table": ""}, "sqlite needs an option table, as in OPTIONS (table 'users')", "method 1"),
        ({"ttl": "5"}, "option ttl is for all access methods; write it in the OPTIONS of the table",
         "method 1 option ttl"),
        ({"cache_rows": "5"}, "option cache_rows is for all access methods; write it in the OPTIONS of the table",
         "method 1 option cache_rows"),
    ],
)  # fmt: skip
def test_wrong_options_of_a_method(own: dict[str, str], message: str, at: str) -> None:
    with pytest.raises(SettingError) as caught:
        of_methods("sqlite", GOOD["sqlite"], {}, own)
    assert (str(caught.value), caught.value.at) == (message, at)


@pytest.mark.usefixtures("files")
def test_wrong_options_of_the_table_are_told_there() -> None:
    with pytest.raises(SettingError) as caught:
        of_methods("sqlite", {**GOOD["sqlite"], "batch": 0}, {"timeout": "5"})
    assert caught.value.at == "option batch"


@pytest.mark.parametrize("format_, library", [("postgres", "psycopg"), ("http", "aiohttp"), ("redis", "valkey-py")])
def test_a_missing_library_is_named(format_: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'something'")

    monkeypatch.setattr(tables, "import_module", missing)
    message = refusal(format_)
    assert message.startswith(f"{format_} needs {library}")
    assert message.endswith(f"(No module named 'something'); type: {install(format_)}")


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "x")
    assert secret("url_env", "A_SECRET") == "x"
