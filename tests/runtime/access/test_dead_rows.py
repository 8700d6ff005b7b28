"""Rows of a table that cannot be read: dead by scan and by index alike, in memory and with a checkpoint."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

import eddyline as el

METHODS = ("SCAN", "INDEX ON (k)", "SCAN INDEX ON (k)", "INDEX ON (k) INDEX ON (n)")


@pytest.fixture
def table(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.execute("CREATE TABLE u (k INTEGER, n INTEGER, v)")
        rows = [(1, 1, 10), (1, 2, "x"), (2, 3, 2.5), (3, 4, 30), (3, 5, "y"), (3, 6, 31)]
        database.executemany("INSERT INTO u VALUES (?, ?, ?)", rows)
    database.close()
    return f"USING sqlite OPTIONS (path '{tmp_path}/t.db', table 'u', retries '0')"


@pytest.mark.parametrize("methods", METHODS)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_row_that_cannot_be_read_is_dead(methods: str, checkpoint: bool, table: str, tmp_path: Path) -> None:
    script = f"""
        CREATE SINK dead USING json OPTIONS (path '{tmp_path}/dead');
        CREATE SINK out USING json OPTIONS (path '{tmp_path}/out');
        CREATE STREAM t (ts TIMESTAMP, k BIGINT) USING json OPTIONS (path '{tmp_path}/in') TIMESTAMP BY ts;
        CREATE TABLE u (k BIGINT, n BIGINT, v BIGINT) {table} {methods} DEAD INTO dead;
        INSERT INTO out SELECT t.k, u.n, u.v FROM t, u WHERE t.k = u.k"""
    (tmp_path / "in").mkdir()
    lines = (f'{{"ts": "2026-01-01", "k": {k}}}' for k in (1, 2, 3, 4))
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    where = str(tmp_path / "cp") if checkpoint else None
    summary = el.query(script).start(checkpoint=where, final=checkpoint).wait()
    assert summary is not None and summary.rows_dead == 3
    assert summary.dead.startswith(" (u 3: unreadable rows") and summary.rows_out == 3
    assert _read(tmp_path / "out") == [(1, 1, 10), (3, 4, 30), (3, 6, 31)]
    reasons = {reason for *_, reason in _read(tmp_path / "dead")}
    assert reasons == {f"column v: '{text}' is not a value of type BIGINT" for text in ("x", "2.5", "y")}
    dead = [row[:3] for row in _read(tmp_path / "dead")]
    assert dead == [("1", "2", "x"), ("2", "3", "2.5"), ("3", "5", "y")]


def _read(folder: Path) -> list[tuple[object, ...]]:
    rows = [json.loads(line) for path in folder.glob("*.json") for line in path.read_text().splitlines()]
    return sorted(tuple(row.values()) for row in rows)
