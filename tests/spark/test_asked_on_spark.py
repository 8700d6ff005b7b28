"""Tables that are asked, on Spark: the rows of the local engine; lookups that fail for good are dead."""

from __future__ import annotations

import io
import sqlite3
import time
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
    ran = run_on_spark(text, checkpoint=tmp_path / "checkpoint", slots=2, batch_rows=100, prefer="u.id % 5 = 0")
    assert _rows(tmp_path / "out") == expected and expected.total() == ran.summary.rows_out > 400
    assert ran.summary.rows_dead == 0
    assert ran.summary.decisions["preference"] == 2, "each slot has heard of it once"


def test_answers_need_no_new_rows(tmp_path: Path, run_on_spark: Runs, files: Files, table: Tables) -> None:
    """The answer comes after the batch, and the job waits for files that never come."""
    (tmp_path / "slow_names.py").write_text(
        "import time, pyarrow as pa\n"
        "def names(keys):\n"
        "    time.sleep(2)\n"
        "    return pa.record_batch({'id': keys.column('id'), 'name': pa.array(['n'] * keys.num_rows)})\n"
    )
    text = f"""CREATE STREAM {files("clicks", table("user", (1, 7), (2, 8)))};
        CREATE TABLE users (id BIGINT, name VARCHAR) USING python OPTIONS (function 'slow_names:names') INDEX ON (id);
        CREATE SINK out USING parquet OPTIONS (path '{tmp_path}/out', mode 'overwrite');
        INSERT INTO out SELECT c.user AS user, u.name AS name
        FROM clicks [RANGE 1 MINUTE] c, users u WHERE c.user = u.id"""
    until = time.monotonic() + 300

    def came() -> bool:
        """Each slot asks for its own user, so the two rows may come in different files and batches."""
        written = sum(pq.read_metadata(file).num_rows for file in (tmp_path / "out").glob("part-*"))
        return time.monotonic() > until or written == 2

    run_on_spark(text, tmp_path / "c", came, (str(tmp_path / "slow_names.py"),), follow=True, batch_seconds=0.2)
    assert _rows(tmp_path / "out") == Counter({(7, "n"): 1, (8, "n"): 1})


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


def test_partial_rows(tmp_path: Path, run_on_spark: Runs, files: Files, table: Tables) -> None:
    """The full rows and their keys are those of the local engine. Which partial rows there are depends on the time."""
    text = _script(tmp_path, files, table).replace("SELECT", "SELECT PARTIAL")
    LocalRunner(prepare(text, out=io.StringIO()), Settings(slots=2, batch_rows=100, at_end="flush")).run()
    expected = {row: n for row, n in _rows(tmp_path / "out").items() if row[2] is None}
    ran = run_on_spark(text, checkpoint=tmp_path / "checkpoint", slots=2, batch_rows=100, batch_seconds=0.001)
    rows = _rows(tmp_path / "out")
    assert {row: n for row, n in rows.items() if row[2] is None} == expected and rows.total() == ran.summary.rows_out
    keys = {(user, key) for user, _, _, key in expected}
    for user, name, missing, key in rows:
        assert missing is None or (name, missing) == (None, "u")
        assert missing is None or user >= 40 or (user, key) in keys
