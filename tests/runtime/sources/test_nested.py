"""Structs and lists from files: fields in every clause, on both sides of a join, the same as DuckDB has them."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el

ORDERS = [
    {"ts": f"2026-01-01 00:00:0{n}", "payload": payload, "tags": ["x"] * n}
    for n, payload in enumerate(
        [
            {"customer": {"id": 1, "name": "Ann"}, "amount": 5},
            {"customer": {"id": 2, "name": None}, "amount": None},
            None,
            {"customer": None, "amount": 7},
            {"customer": {"id": 1, "name": "Ann"}, "amount": 8},
        ]
    )
]
TYPES = "ts TIMESTAMP, payload STRUCT(customer STRUCT(id BIGINT, name VARCHAR), amount BIGINT), tags VARCHAR[]"


@pytest.fixture(params=["json", "parquet", "declared"])
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    lines = tmp_path / "orders.json"
    lines.write_text("\n".join(map(json.dumps, ORDERS)))
    path, columns, format = lines, "", "json"
    if request.param == "parquet":
        path, format = tmp_path / "orders.parquet", "parquet"
        columns_of = f"{{{', '.join(f'{n}: {t!r}' for n, t in COLUMNS.items())}}}"
        duckdb.sql(f"COPY (FROM read_json('{lines}', columns = {columns_of})) TO '{path}' (FORMAT parquet)")
        assert pa.types.is_struct(pq.read_schema(path).field("payload").type)
    elif request.param == "declared":
        columns = f"({TYPES})"
    return f"CREATE STREAM orders {columns} USING {format} OPTIONS (path '{path}') TIMESTAMP BY ts;"


COLUMNS = {
    "ts": "TIMESTAMP",
    "payload": "STRUCT(customer STRUCT(id BIGINT, name VARCHAR), amount BIGINT)",
    "tags": "VARCHAR[]",
}


def rows(script: str) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    el.query(script).start(sink=lambda batch: found.extend(tuple(row.values()) for row in batch.to_pylist())).wait()
    return sorted(found, key=repr)


def test_fields_in_every_clause(stream: str) -> None:
    select = """
        SELECT o.payload.customer.id, payload.customer.`Name` AS name, o.tags, o.payload.amount + 1 AS more
        FROM orders AS o WHERE payload.amount > 5 OR o.payload.customer.id = 2
    """
    assert rows(stream + select) == sorted(
        [(1, "Ann", ["x"] * 4, 9), (None, None, ["x"] * 3, 8), (2, None, ["x"], None)], key=repr
    )


def test_fields_as_join_and_group_keys(stream: str) -> None:
    joined = """
        SELECT a.payload.amount AS x, b.payload.amount AS y FROM orders [RANGE 1 MINUTE] AS a JOIN
        orders [RANGE 1 MINUTE] AS b ON a.payload.customer.id = b.payload.customer.id AND a.payload.amount < 8
    """
    assert rows(stream + joined) == [(5, 5), (5, 8)]
    grouped = """
        SELECT payload.customer.id, COUNT(*) AS n, SUM(payload.amount) AS total FROM orders
        GROUP BY payload.customer.id HAVING MAX(orders.payload.amount) > 7
    """
    assert rows(stream + grouped) == [(1, 2, 13)]
