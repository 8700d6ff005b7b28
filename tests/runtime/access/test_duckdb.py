"""Tables of DuckDB files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.engine.lookups.look_up import Request
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

duckdb = pytest.importorskip("duckdb")
PAIRS = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.int64()))])
Made = Callable[..., AccessTable]


@pytest.fixture
def table(tmp_path: Path) -> Made:
    path = tmp_path / "small.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE \"a pair\" AS SELECT i::INT AS a, 'b' || i % 3 AS b, [i, i] AS c FROM range(200000) t(i)"
        )
        database.execute("CREATE TABLE odd AS SELECT * FROM (VALUES ('1', '1'), ('2', 'x')) v(k, v)")

    def made(name: str, schema: pa.Schema, **options: object) -> AccessTable:
        return declared("duckdb", schema, path=path, table=name, **options)

    return made


def test_lookups(table: Made) -> None:
    pairs = table("main.a pair", PAIRS)
    keys = pa.record_batch({"a": pa.array([1, 2, 999_999], pa.int32())})
    assert looked_up(pairs.open, keys, "a", "c") == [{"a": 1, "c": [1, 1]}, {"a": 2, "c": [2, 2]}]
    keys = pa.record_batch({"b": ["b1", "b1"], "a": pa.array([1, 2], pa.int32())})
    assert looked_up(pairs.open, keys, "b") == [{"b": "b1"}]


def test_requests_at_once_with_a_scan(table: Made) -> None:
    keys = pa.record_batch({"a": pa.array(range(190_000, 210_000), pa.int32())})
    threads = started_threads()
    found = all_answers(table("a pair", PAIRS, concurrency=3, batch=3000), keys, NO_KEYS)
    assert sum(a.rows.num_rows for a in found if a.method == 0) == 10_000
    assert sum(a.rows.num_rows for a in found if a.method == 1) == 200_000
    assert sum(a.method == 1 for a in found) > 2
    assert not any(a.error for a in found)
    assert started_threads() == threads


def test_tables_of_one_file_that_are_opened_together(table: Made) -> None:
    keys = pa.record_batch({"a": pa.array([1, 2], pa.int32())})
    for _ in range(10):
        with Asking({name: table("main.a pair", PAIRS, retries=0) for name in ("t", "u", "v")}) as asking:
            asking.ask([Request(name, 0, keys) for name in ("t", "u", "v")])
            answers = [answer for _ in range(3) for answer in asking.answers(60.0)]
        assert [(answer.rows.num_rows, answer.error) for answer in answers] == [(2, None)] * 3


def test_a_scan(table: Made) -> None:
    parts = scanned(table("a pair", PAIRS).open, "a")
    assert sorted(pa.Table.from_batches(parts).column("a").to_pylist()) == [*range(200_000)]


def test_a_value_that_does_not_fit_kills_its_row_only(table: Made) -> None:
    odd = table("odd", pa.schema([("k", pa.string()), ("v", pa.int64())]), retries=0)
    answers = all_answers(odd, pa.record_batch({"k": ["1", "2"]}))
    assert unreadable(answers) == ["column v: 'x' is not a value of type BIGINT"]
    assert not failures(answers) and len(answers) == 1


def test_tables_that_are_refused(table: Made, tmp_path: Path) -> None:
    keys = pa.record_batch({"a": [1]})
    with pytest.raises(TableRefused, match="missing does not exist"):
        looked_up(table("missing", PAIRS).open, keys, "a")
    (tmp_path / "text.duckdb").write_text("this is no database")
    with pytest.raises((TableRefused, TryFailed)) as caught:
        looked_up(declared("duckdb", PAIRS, path=tmp_path / "text.duckdb", table="t").open, keys, "a")
    assert "\n" not in str(caught.value)


def test_close_in_the_middle_of_a_scan(table: Made, caplog: pytest.LogCaptureFixture) -> None:
    threads = started_threads()
    with Asking({"t": table("a pair", PAIRS)}, tuning=AccessTuning(scan_parts=1)) as asking:
        asking.ask([Request("t", 0, NO_KEYS)])
        assert not asking.answers(10)[0].is_last
    assert not caplog.records and started_threads() == threads


@pytest.mark.parametrize(
    ("there", "keys"),
    [
        ("7::INT", ["7", "x", "07", "1e99"]),
        ("'00000000-0000-0000-0000-00000000000a'::UUID", ["00000000-0000-0000-0000-00000000000a", "none"]),
        ("'ok'::ENUM('ok', 'bad')", ["ok", "unknown"]),
        ("1.50::DECIMAL(10, 3)", ["1.500", "1.5", "x"]),
        ("0.1::FLOAT", ["0.1", "x"]),
        ("DATE '2026-01-01'", ["2026-01-01", "2026-13-01"]),
        ("TIMESTAMPTZ '2026-01-01 00:00:00+00'", ["2026-01-01 00:00:00+00", "x"]),
    ],
)
def test_a_text_that_is_no_value_of_the_column_has_no_match(there: str, keys: list[str], tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute(f"CREATE TABLE t AS SELECT {there} AS k")
    made = declared("duckdb", pa.schema([("k", pa.string())]), path=tmp_path / "t.duckdb", table="t", retries=0)
    answers = all_answers(made, pa.record_batch({"k": keys}))
    assert failures(answers) == {}
    assert [row["k"] for a in answers for row in a.rows.to_pylist()] == keys[:1]


@pytest.mark.parametrize(
    ("there", "type_"),
    [
        ("TIMESTAMP", pa.timestamp("us")),
        ("DATE", pa.date32()),
        ("TIMESTAMPTZ", pa.string()),
        ("TIMESTAMP_S", pa.string()),
    ],
)
def test_an_infinite_time_is_no_value(there: str, type_: pa.DataType, tmp_path: Path) -> None:
    """It was the year 294247."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES (1, '-infinity'::{there}), (2, NULL)) v(k, v)")
    schema = pa.schema([("k", pa.int64()), ("v", type_)])
    made = declared("duckdb", schema, path=tmp_path / "t.duckdb", table="t", retries=0)
    answers = all_answers(made, pa.record_batch({"k": [1, 2]}))
    (reason,) = unreadable(answers)
    assert reason.startswith("column v: '-infinity' is not a value of type") and not failures(answers)
    assert unreadable_by_scan(made.open, "v") == [reason]
    assert [row for part in scanned(made.open, "k") for row in part.to_pylist()] == [{"k": 1}, {"k": 2}]
