"""Every query of `bench peers`: Eddyline's form and DuckDB's form give the same rows, and some."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lab.peers import cell
from lab.peers.cells import checksum, pathway_task, write
from lab.peers.queries import QUERIES
from lab.peers.sql import flink_statements

SHORT = ("three-way", "drift", "nexmark-q3", "nexmark-q4", "tpch-q5")


@pytest.mark.parametrize("name", [n if n in SHORT else pytest.param(n, marks=pytest.mark.long) for n in QUERIES])
def test_results_are_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    query = QUERIES[name]
    tables = query.make(100_000 if name == "ten-way" else 20_000)
    assert set(tables) == set(query.streams)
    write(tables, str(tmp_path))
    found = []
    for peer in ("eddyline", "duckdb"):
        out = tmp_path / peer
        out.mkdir()
        task = {"peer": peer, "query": name, "folder": f"{tmp_path}/parquet", "out": str(out), "rows": 0}
        monkeypatch.setattr("sys.argv", ["cell", json.dumps(task)])
        cell.main()
        found.append(checksum(query, tables, str(out)))
    assert found[0] == found[1] and found[0][0] > 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said[-2]["rows"] == sum(table.num_rows for table in tables.values())


def test_text_results_have_the_same_checksum(tmp_path: Path) -> None:
    query = QUERIES["nexmark-q3"]
    tables = query.make(1000)
    names = "person_name,person_city,person_state,auction_id"
    rows = ["Ann Lee,Kent,OR,1001", ",Bend,ID,1002"]
    for place, text in (("flink/part-0", "\n".join(rows) + "\n"), ("pathway/0.csv", "")):
        (tmp_path / place).parent.mkdir()
        lines = [f"{names},time,diff", *(f"{row},5,1" for row in reversed(rows))]
        (tmp_path / place).write_text(text or "\n".join(lines) + "\n")
    first, second = (checksum(query, tables, str(tmp_path / peer)) for peer in ("flink", "pathway"))
    values = ["Ann Lee", ""], ["Kent", "Bend"], ["OR", "ID"], [1001, 1002]
    (tmp_path / "duckdb").mkdir()
    pq.write_table(pa.table(dict(zip(names.split(","), values, strict=True))), tmp_path / "duckdb" / "0.parquet")
    assert first == second == checksum(query, tables, str(tmp_path / "duckdb")) and first[0] == 2
    (tmp_path / "flink/part-0").write_text(rows[0] + "\n" + rows[0] + "\n")
    assert checksum(query, tables, str(tmp_path / "flink")) != first


def test_flink_gets_interval_joins_or_numbers() -> None:
    query = QUERIES["nexmark-q4"]
    tables = query.make(1000)
    binary, multi = ("\n".join(flink_statements(query, tables, "in", "out", multi)) for multi in (False, True))
    assert "WATERMARK FOR ts AS ts" in binary
    assert "auction.ts BETWEEN bid.ts - INTERVAL '10' SECOND AND bid.ts + INTERVAL '10' SECOND" in binary
    assert "WATERMARK" not in multi and "ABS(auction.t - bid.t) <= 10000" in multi
    assert "bid.t <= auction.expires" in binary and "`expires` BIGINT" in multi


def test_pathway_gets_conditions_in_parts() -> None:
    query = QUERIES["nexmark-q3"]
    filters = pathway_task(query, query.make(1000))["filters"]
    assert filters == {"auction": [("category", "=", 10)], "person": [("state", "in", ["OR", "ID", "CA"])]}
    query = QUERIES["tpch-q5"]
    assert pathway_task(query, query.make(1000))["conditions"] == [("customer_nation", "=", "supplier_nation")]
