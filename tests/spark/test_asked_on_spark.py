"""Tables that are asked, on Spark: the rows of the local engine; lookups that fail for good are dead."""

from __future__ import annotations

import io
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import Settings
from tests.conftest import Ran

SCRIPT = """
CREATE STREAM {clicks};
CREATE TABLE users (id BIGINT, name VARCHAR) USING sqlite OPTIONS (path '{database}', table 'users', retries 0)
    INDEX ON (id) DEAD INTO failed;
CREATE SINK out USING parquet OPTIONS (path '{folder}/out', mode 'overwrite');
CREATE SINK failed USING parquet OPTIONS (path '{folder}/failed', mode 'overwrite');
INSERT INTO out SELECT c.user AS user, u.name AS name FROM clicks [RANGE 1 MINUTE] c, users u WHERE c.user = u.id;
"""
Files = Callable[..., str]
Tables = Callable[..., pa.Table]
Runs = Callable[..., Ran]


def _script(tmp_path: Path, files: Files, table: Tables) -> str:
    """Four files of clicks of 50 users, of whom 40 are known, some under two names."""
    parts = [table("user", *[(10 * n + i / 100, (37 * n + i) % 50) for i in range(100)]) for n in range(4)]
    with sqlite3.connect(tmp_path / "u.db") as database:
        database.execute("CREATE TABLE users (id INTEGER, name TEXT)")
        database.executemany("INSERT INTO users VALUES (?, ?)", [(i % 40, f"n{i}") for i in range(60)])
    database.close()
    return SCRIPT.format(clicks=files("clicks", *parts), database=tmp_path / "u.db", folder=tmp_path)


def _rows(folder: Path) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in pq.read_table(folder).to_pylist())


def test_the_same_rows_as_on_the_local_engine(tmp_path: Path, run_on_spark: Runs, files: Files, table: Tables) -> None:
    text = _script(tmp_path, files, table)
    LocalRunner(prepare(text, out=io.StringIO()), Settings(slots=2, batch_rows=100, at_end="flush")).run()
    expected = _rows(tmp_path / "out")
    ran = run_on_spark(text, checkpoint=tmp_path / "checkpoint", slots=2, batch_rows=100)
    assert _rows(tmp_path / "out") == expected and expected.total() == ran.summary.rows_out > 400
    assert ran.summary.rows_dead == 0


def test_lookups_that_fail_are_dead(tmp_path: Path, run_on_spark: Runs, files: Files, table: Tables) -> None:
    text = _script(tmp_path, files, table)
    with sqlite3.connect(tmp_path / "u.db") as database:
        database.execute("DROP TABLE users")
    database.close()
    ran = run_on_spark(text, checkpoint=tmp_path / "checkpoint", slots=2, batch_rows=200)
    failed = pq.read_table(tmp_path / "failed").to_pylist()
    assert ran.summary.rows_out == 0 and ran.summary.rows_dead == len(failed) > 0
    assert {row["id"] for row in failed} == {str(user) for user in range(50)}
    assert all("no such table" in row["reason"] for row in failed)
