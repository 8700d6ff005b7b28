"""Jobs that ask real tables, from the script to the results, with a checkpoint and without."""

from __future__ import annotations

import io
import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.errors import ScriptError, SettingError
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import Settings

SCRIPT = """
CREATE STREAM clicks USING parquet OPTIONS (path 'clicks') TIMESTAMP BY ts;
CREATE TABLE users (id BIGINT, name VARCHAR) USING sqlite OPTIONS (path 'u.db', table 'users')
    {methods} DEAD INTO failed;
CREATE SINK out USING parquet OPTIONS (path 'out', mode 'overwrite');
CREATE SINK failed USING parquet OPTIONS (path 'failed', mode 'overwrite');
INSERT INTO out SELECT c.user, u.name FROM clicks [RANGE 1 MINUTE] c, users u WHERE c.user = u.id;
"""


@pytest.fixture
def data(in_tmp: Path) -> Counter[tuple[int, str]]:
    """The files and the database; returns the rows that result."""
    Path("clicks").mkdir()
    users = [(n * 37 + i) % 50 for n in range(4) for i in range(200)]
    for n in range(4):
        times = pa.array([n * 10_000_000 + i * 1000 for i in range(200)], pa.timestamp("us"))
        pq.write_table(pa.table({"ts": times, "user": users[200 * n : 200 * n + 200]}), f"clicks/{n}.parquet")
    with sqlite3.connect("u.db") as database:
        database.execute("CREATE TABLE users (id INTEGER, name TEXT)")
        database.executemany("INSERT INTO users VALUES (?, ?)", [(i % 40, f"n{i}") for i in range(60)])
    database.close()
    return Counter((user, f"n{i}") for user in users for i in range(60) if i % 40 == user)


def rows(path: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in pq.read_table(path).to_pylist())


@pytest.mark.parametrize("methods", ["INDEX ON (id)", "SCAN", "SCAN INDEX ON (id)"])
@pytest.mark.parametrize("checkpoint", [None, "checkpoint"])
@pytest.mark.parametrize("slots", [1, 3])
def test_the_same_rows_whatever_the_methods(
    methods: str, checkpoint: str | None, slots: int, data: Counter[tuple[int, str]]
) -> None:
    job = prepare(SCRIPT.format(methods=methods), out=io.StringIO(), checkpoint=checkpoint)
    patience = 1e-6 if slots == 3 else 1.0  # then most answers come in later batches, or at the end
    settings = Settings(slots=slots, batch_rows=150, at_end="flush", batch_seconds=patience)
    summary = LocalRunner(job, settings, checkpoint).run()
    assert rows("out") == data
    assert summary.rows_out == data.total() and summary.rows_dead == 0


def test_a_table_that_is_gone_is_told_and_rows_are_dead(data: Counter[tuple[int, str]]) -> None:
    with sqlite3.connect("u.db") as database:
        database.execute("DROP TABLE users")
    database.close()
    job = prepare(SCRIPT.format(methods="INDEX ON (id)").replace("table 'users'", "table 'users', retries 0"))
    summary = LocalRunner(job, Settings(batch_rows=1000)).run()
    assert summary.rows_out == 0 and summary.rows_dead > 0
    failed = pq.read_table("failed").to_pylist()
    assert {row["id"] for row in failed} == {str(user) for user in range(50)}
    assert all("no such table" in row["reason"] for row in failed)


@pytest.mark.parametrize(
    ("trouble", "first", "checkpoint"),
    [
        ("locked", True, None),  # takes five seconds: SQLite cannot be interrupted while it waits for a lock
        ("no such table", True, None),
        ("no such table", True, "checkpoint"),
        ("no such table", False, None),
        ("no such table", False, "checkpoint"),
    ],
)
def test_a_replica_stands_in_for_another(
    trouble: str, first: bool, checkpoint: str | None, data: Counter[tuple[int, str]]
) -> None:
    Path("replica.db").write_bytes(Path("u.db").read_bytes())
    bad = sqlite3.connect("u.db" if first else "replica.db", isolation_level=None)
    bad.execute("DROP TABLE users" if trouble == "no such table" else "BEGIN EXCLUSIVE")
    methods = "INDEX ON (id) OPTIONS (timeout '200 ms', retries 1) INDEX ON (id) OPTIONS (path 'replica.db', timeout 1)"
    job = prepare(SCRIPT.format(methods=methods), out=io.StringIO(), checkpoint=checkpoint)
    summary = LocalRunner(job, Settings(slots=2, batch_rows=150, at_end="flush"), checkpoint).run()
    bad.close()
    assert rows("out") == data
    assert summary.rows_out == data.total() and summary.rows_dead == 0


@pytest.mark.parametrize(
    ("own", "message", "column"),
    [
        ("path 'none.db'", "there is no file 'none.db'", 42),
        ("tabel 'x'", "sqlite has no option 'tabel'; did you mean 'table'?", 42),
        ("retries 1, ttl '5 s'", "option ttl is for all access methods; write it in the OPTIONS of the table", 53),
        ("timeout soon", "option timeout is a length of time such as '2 s' or '1 minute 30 s', not 'soon'", 42),
    ],
)
def test_a_wrong_option_of_a_method_is_told_at_its_place(
    own: str, message: str, column: int, data: Counter[tuple[int, str]]
) -> None:
    with pytest.raises(ScriptError) as caught:
        prepare(SCRIPT.format(methods=f"INDEX ON (id) INDEX ON (id) OPTIONS ({own})"), out=io.StringIO())
    assert (str(caught.value).split(": ", 1)[-1].splitlines()[0], caught.value.line) == (message, 4)
    assert caught.value.column == column


def test_a_sink_is_not_where_a_replica_is(data: Counter[tuple[int, str]]) -> None:
    Path("out").mkdir()
    Path("out/u.db").write_bytes(Path("u.db").read_bytes())
    with pytest.raises(ScriptError, match=r"lies in 'out/u\.db', which users is read from"):
        prepare(SCRIPT.format(methods="INDEX ON (id) SCAN OPTIONS (path 'out/u.db')"), out=io.StringIO())


def test_rows_of_a_scan_cannot_be_forgotten(data: Counter[tuple[int, str]]) -> None:
    script = SCRIPT.format(methods="SCAN INDEX ON (id)").replace("table 'users'", "table 'users', ttl '1 second'")
    with pytest.raises(SettingError, match="rows of a SCAN are kept; leave out ttl and cache_rows, or SCAN"):
        LocalRunner(prepare(script, out=io.StringIO()), Settings())


@pytest.mark.parametrize("checkpoint", [None, "checkpoint"])
@pytest.mark.parametrize("limit", ["ttl '1 millisecond'", "cache_rows 5"])
def test_the_same_rows_if_answers_are_forgotten(
    limit: str, checkpoint: str | None, data: Counter[tuple[int, str]]
) -> None:
    script = SCRIPT.format(methods="INDEX ON (id)").replace("table 'users'", f"table 'users', {limit}")
    job = prepare(script, out=io.StringIO(), checkpoint=checkpoint)
    LocalRunner(job, Settings(slots=2, batch_rows=150, at_end="flush"), checkpoint).run()
    assert rows("out") == data
