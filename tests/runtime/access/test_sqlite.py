"""Tables of SQLite files."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.bound.model import AccessMethod
from eddyline.engine.lookups.look_up import Request
from eddyline.errors import SettingError
from eddyline.runtime.access.asking import Asking
from eddyline.runtime.access.client import TableRefused, TryFailed
from eddyline.runtime.access.tables import AccessTable
from eddyline.runtime.access.tuning import AccessTuning
from tests.support.access import (
    NO_KEYS,
    all_answers,
    declared,
    failures,
    looked_up,
    scanned,
    unreadable,
    unreadable_by_scan,
)
from tests.support.threads import started_threads

SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("x", pa.float64()), ("d", pa.date32()), ("ts", pa.timestamp("us")),
     ("b", pa.binary()), ("ok", pa.bool_())]
)  # fmt: skip
ROWS = [
    (1, 'a "b"', 0.5, "2026-01-02", "2026-01-02 03:04:05", b"\x00\xff", 1),
    (2, "", -1.0, "2026-01-03", "2026-01-02 03:04:05.25", b"", 0),
    (3, None, None, None, None, None, None),
]
Made = Callable[..., AccessTable]


@pytest.fixture
def table(tmp_path: Path) -> Made:
    path = tmp_path / "small file.db"
    with sqlite3.connect(path) as database:
        database.execute(
            'CREATE TABLE "a table" (id INTEGER PRIMARY KEY, name TEXT, x REAL, d TEXT, ts TEXT, b BLOB, ok INTEGER)'
        )
        database.executemany('INSERT INTO "a table" VALUES (?, ?, ?, ?, ?, ?, ?)', ROWS)
        database.execute("CREATE TABLE pairs (a INTEGER, b TEXT COLLATE NOCASE, c INTEGER)")
        database.executemany("INSERT INTO pairs VALUES (?, ?, ?)", [(i, f"b{i % 3}", i) for i in range(40_000)])
        database.execute("CREATE INDEX i ON pairs (a, b)")
        database.execute("CREATE TABLE odd (k TEXT, v)")
        database.executemany("INSERT INTO odd VALUES (?, ?)", [("1", 1), ("2", "x"), ("3", 3.5), ("4", "4")])
    database.close()

    def made(name: str, schema: pa.Schema, **options: object) -> AccessTable:
        return declared("sqlite", schema, path=path, table=name, **options)

    return made


def test_values_and_keys_of_all_types(table: Made) -> None:
    all_types = table("a table", SCHEMA)
    (part,) = scanned(all_types.open, *SCHEMA.names)
    assert part.to_pylist()[0] == {
        "id": 1, "name": 'a "b"', "x": 0.5, "d": date(2026, 1, 2), "ts": datetime(2026, 1, 2, 3, 4, 5),
        "b": b"\x00\xff", "ok": True,
    }  # fmt: skip
    assert part.to_pylist()[2] == {"id": 3, **dict.fromkeys(SCHEMA.names[1:])}
    keys = pa.record_batch({"id": [1, 2, 3, 4]})
    assert looked_up(all_types.open, keys, *SCHEMA.names) == sorted(part.to_pylist(), key=repr)
    for name in ("name", "x", "d", "ok"):
        keys = pa.record_batch({name: part.column(name).drop_null()})
        assert [row["id"] for row in looked_up(all_types.open, keys, "id")] == [1, 2]
    assert looked_up(all_types.open, pa.record_batch({"x": [float("nan"), 0.5]}), "id") == [{"id": 1}]
    with pytest.raises(SettingError, match="sqlite has no keys of bytes"):
        all_types.check([AccessMethod(("b",))])


@pytest.mark.parametrize(
    "type_, written, key",
    [
        (pa.timestamp("us"), "TEXT '2026-01-02 03:04:05'", datetime(2026, 1, 2, 3, 4, 5)),
        (pa.timestamp("us"), "TEXT '2026-01-02 03:04:05.25'", datetime(2026, 1, 2, 3, 4, 5, 250_000)),
        (pa.timestamp("us"), "TEXT '2026-01-02T03:04:05.250'", datetime(2026, 1, 2, 3, 4, 5, 250_000)),
        (pa.timestamp("us"), "TIMESTAMP '2026-01-02 03:04:05.250000'", datetime(2026, 1, 2, 3, 4, 5, 250_000)),
        (pa.timestamp("us", "UTC"), "TEXT '2026-01-02 03:04:05+00:00'", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (pa.timestamp("us", "UTC"), "TEXT '2026-01-02T03:04:05Z'", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (pa.decimal128(10, 2), "NUMERIC 1.5", Decimal("1.50")),
        (pa.decimal128(10, 2), "TEXT '1.5'", Decimal("1.50")),
        (pa.decimal128(10, 2), "TEXT '2.00'", Decimal(2)),
        (pa.bool_(), "TEXT 'true'", True),
        (pa.int64(), "TEXT '7'", 7),
        (pa.int64(), "BLOB 7", 7),
        (pa.uint64(), "TEXT '18446744073709551615'", 2**64 - 1),
        (pa.float32(), "REAL 0.1", 0.1),
        (pa.float64(), "REAL 9e999", float("inf")),
        (pa.float64(), "REAL -9e999", float("-inf")),
    ],
)
def test_each_way_to_write_a_value_is_found(tmp_path: Path, type_: pa.DataType, written: str, key: object) -> None:
    sql, value = written.split(" ", 1)
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.execute(f"CREATE TABLE t (k {sql}, n INTEGER)")
        database.execute(f"INSERT INTO t VALUES ({value}, 1)")
    database.close()
    made = declared("sqlite", pa.schema([("k", type_), ("n", pa.int64())]), path=tmp_path / "t.db", table="t")
    keys = pa.record_batch([pa.array([key], type_), pa.array([1], pa.int64())], names=["k", "n"])
    for some in (keys.select(["k"]), keys):
        assert [row["n"] for row in looked_up(made.open, some, "n")] == [1]
        assert [a.rows.num_rows for a in all_answers(made, some)] == [1]  # none is left out later


PAIRS = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])


def test_keys_of_two_columns(table: Made) -> None:
    keys = pa.record_batch({"b": ["b1", "b1", "b2"], "a": [1, 2, 2]})
    assert [row["c"] for row in looked_up(table("pairs", PAIRS).open, keys, "c")] == [1, 2]


def test_the_index_is_used(table: Made, tmp_path: Path) -> None:
    client = table("pairs", PAIRS).open()
    plans: list[str] = []

    async def explain(work: Callable[[sqlite3.Connection], object]) -> list[object]:
        with sqlite3.connect(tmp_path / "small file.db") as database:

            class Explaining:
                def execute(self, query: str, values: tuple[str]) -> sqlite3.Cursor:
                    plans.append(str(database.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()))
                    return database.execute(query, values)

            work(Explaining())  # type: ignore[arg-type]
        database.close()
        return []

    client._run = explain  # type: ignore[attr-defined]
    looked_up(lambda: client, pa.record_batch({"a": [1]}), "c")
    looked_up(lambda: client, pa.record_batch({"a": [1], "b": ["b1"]}), "c")
    assert all("USING INDEX i" in plan and "SCAN t" not in plan for plan in plans) and len(plans) == 2


def test_requests_at_once_with_a_scan(table: Made) -> None:
    keys = pa.record_batch({"a": range(30_000, 50_000)})
    threads = started_threads()
    found = all_answers(table("pairs", PAIRS, concurrency=4, batch=3000), keys, NO_KEYS)
    assert sum(a.rows.num_rows for a in found if a.method == 0) == 10_000
    assert sum(a.rows.num_rows for a in found if a.method == 1) == 40_000
    assert not any(a.error for a in found)
    assert started_threads() == threads


def test_case_that_the_database_ignores(table: Made) -> None:
    answers = all_answers(table("pairs", PAIRS), pa.record_batch({"a": [1, 1], "b": ["b1", "B1"]}))
    assert [row for a in answers for row in a.rows.to_pylist()] == [{"a": 1, "b": "b1", "c": 1}]


def test_a_value_that_does_not_fit_kills_its_row_only(table: Made) -> None:
    odd = table("odd", pa.schema([("k", pa.string()), ("v", pa.int64())]), retries=0)
    answers = all_answers(odd, pa.record_batch({"k": ["1", "2", "3", "4"]}))
    reasons = [f"column v: '{text}' is not a value of type BIGINT" for text in ("x", "3.5")]
    assert unreadable(answers) == unreadable_by_scan(odd.open, "v") == reasons and not failures(answers)
    assert sorted(row["v"] for a in answers for row in a.rows.to_pylist()) == [1, 4]


def test_tables_that_are_refused(table: Made, tmp_path: Path) -> None:
    keys = pa.record_batch({"a": [1]})
    with pytest.raises(TableRefused, match="no such table: missing"):
        looked_up(table("missing", PAIRS).open, keys, "a")
    (tmp_path / "text.db").write_text("this is no database, and long enough to be read as one" * 100)
    with pytest.raises(TableRefused, match="not a database"):
        looked_up(declared("sqlite", PAIRS, path=tmp_path / "text.db", table="t").open, keys, "a")


def test_a_locked_file_is_tried_again(table: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0}))
    locking = connect(tmp_path / "small file.db", isolation_level=None)
    locking.execute("BEGIN EXCLUSIVE")
    pairs = table("pairs", PAIRS)
    with pytest.raises(TryFailed, match="locked"):
        looked_up(pairs.open, pa.record_batch({"a": [1]}), "a")
    locking.close()
    assert looked_up(pairs.open, pa.record_batch({"a": [1]}), "a") == [{"a": 1}]


def test_a_long_query_is_interrupted(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute(
            "CREATE VIEW endless AS WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT a FROM n"
        )
    database.close()
    endless = declared("sqlite", pa.schema([("a", pa.int64())]), path=tmp_path / "a.db", table="endless", timeout=0.2)
    with Asking({"t": endless}) as asking:
        asking.ask([Request("t", 0, pa.record_batch({"a": [-1]}))])
        (answer,) = asking.answers(300)
        assert answer.error == "no answer within 0.2 s"


def test_close_in_the_middle_of_a_scan(table: Made, caplog: pytest.LogCaptureFixture) -> None:
    threads = started_threads()
    with Asking({"t": table("pairs", PAIRS)}, tuning=AccessTuning(scan_parts=1)) as asking:
        asking.ask([Request("t", 0, NO_KEYS)])
        assert not asking.answers(10)[0].is_last
    assert not caplog.records and started_threads() == threads


def test_a_text_that_is_not_utf8_kills_its_own_row(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.execute("CREATE TABLE t (k INTEGER, v)")
        database.execute("INSERT INTO t VALUES (1, CAST(x'61ff' AS TEXT)), (2, 'é')")
    database.close()
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    made = declared("sqlite", schema, path=tmp_path / "t.db", table="t", retries=0)
    answers = all_answers(made, pa.record_batch({"k": [1, 2]}))
    assert unreadable(answers) == ["column v: 'a?' is not a value of type VARCHAR"]
    assert [row["v"] for a in answers for row in a.rows.to_pylist()] == ["é"]
