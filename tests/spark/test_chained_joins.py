"""Spark's own joins as `bench peers` runs them give DuckDB's rows."""

from __future__ import annotations

from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from lab.peers.cells import checksum, write
from lab.peers.chained_joins import ChainedJoins, run
from lab.peers.queries import QUERIES
from lab.peers.sql import condition, duckdb_select, name_of


def test_keys_of_different_names_filters_and_conditions(spark: SparkSession, tmp_path: Path) -> None:
    query = QUERIES["tpch-q5"]
    tables = query.make(20_000)
    write(tables, str(tmp_path))
    join = ChainedJoins(
        f"{tmp_path}/parquet",
        query.first,
        [(j.stream, j.key, j.partner, j.partner_key) for j in query.joins],
        query.window,
        {"customer": "segment = 1"},
        [condition(text, name_of) for text in query.conditions],
        [name_of(*output) for output in query.outputs],
    )
    read: list[int] = []
    seconds, rows = run(spark, join, str(tmp_path / "out"), 4, read.append)
    whole = sum(table.num_rows for table in tables.values())
    assert seconds > 0 and abs(rows - whole / 2) < 50
    for name, table in tables.items():
        duckdb.register(name, table)
    (tmp_path / "expected").mkdir()
    duckdb.sql(duckdb_select(query) + " AND customer.segment = 1").write_parquet(f"{tmp_path}/expected/0.parquet")
    assert checksum(query, tables, str(tmp_path / "out")) == checksum(query, tables, str(tmp_path / "expected"))
