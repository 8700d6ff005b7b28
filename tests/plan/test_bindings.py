"""What binds the indexes of tables that are asked."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from eddyline.bound.bind import bind
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import SourceColumn
from eddyline.bound.functions.casts import cast
from eddyline.bound.model import BoundQuery
from eddyline.bound.types import TypeMismatch, keeps_apart
from eddyline.cql.script import parse
from eddyline.plan.bindings import IndexBinding, index_bindings, unreachable
from eddyline.plan.explain import text
from eddyline.plan.graph import join_graph

_TYPES = ("TINYINT", "INTEGER", "BIGINT", "UBIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(9, 2)")
_COLUMNS = ", ".join(f"{type.split('(')[0].lower()} {type}" for type in _TYPES)


def asked(where: str, methods: str = "INDEX ON (id)", id: str = "BIGINT", more: str = "") -> BoundQuery:
    """A query over streams a and b and the tables t and u, which have the same methods."""
    streams = "".join(
        f"CREATE STREAM {name} (k BIGINT, s VARCHAR, {_COLUMNS}, ts TIMESTAMP) USING json TIMESTAMP BY ts;"
        for name in "ab"
    )
    tables = "".join(f"CREATE TABLE {name} (id {id}, name VARCHAR, x BIGINT) USING sqlite {methods};" for name in "tu")
    script = f"{streams}{tables}SELECT a.k FROM a, b, t{more} WHERE {where}"
    return bind(parse(script), lambda declaration: pa.schema(declaration.columns))


def ways(query: BoundQuery, table: int = 2) -> tuple[IndexBinding, ...]:
    return index_bindings(query, join_graph(query), table)


def told(query: BoundQuery, table: int = 2) -> list[str]:
    """Each way to ask, in words."""
    return [
        ", ".join(
            f"{text(key, query)} = {text(by.expr, query)}" for key, by in zip(way.keys, way.bound_by, strict=True)
        )
        for way in ways(query, table)
    ]


@pytest.mark.parametrize(
    ("where", "by"),
    [
        ("t.id = a.k", ["t.id = a.k"]),
        ("a.k + b.bigint = 7 AND a.k = t.id", ["t.id = a.k"]),
        ("t.id = a.k AND t.id = b.k", ["t.id = a.k", "t.id = b.k"]),
        ("t.id = a.k AND a.k = b.k", ["t.id = a.k", "t.id = b.k"]),
        ("t.id = a.k * 2 + 1", ["t.id = (a.k * 2) + 1"]),
        ("t.id = 7", ["t.id = 7"]),
        ("7 = t.id AND t.id = a.k", ["t.id = 7", "t.id = a.k"]),
        ("t.id = 7 + 1", ["t.id = CAST(7 + 1 AS BIGINT)"]),
        ("t.id = -7", ["t.id = -7"]),
        ("t.id = a.integer", ["t.id = CAST(a.integer AS BIGINT)"]),
        ("t.id = CAST(a.s AS BIGINT)", ["t.id = CAST(a.s AS BIGINT)"]),
        ("t.id = a.k + b.k", []),
        ("t.id + 1 = a.k", []),
        ("t.id > a.k", []),
        ("t.id = a.k OR t.id = b.k", []),
        ("t.id IN (1, 2)", []),
        ("t.id = t.x", []),
        ("t.x = a.k", []),
        ("t.id = a.double", []),
        ("CAST(t.id AS VARCHAR) = a.s", []),
        ("t.id IS NOT DISTINCT FROM a.k", []),
    ],
)
def test_what_binds_a_column(where: str, by: list[str]) -> None:
    assert told(asked(where)) == by


@pytest.mark.parametrize(
    ("id", "other", "by"),
    [
        ("INTEGER", "a.k", ["CAST(t.id AS BIGINT) = a.k"]),
        ("INTEGER", "5000000000", ["CAST(t.id AS BIGINT) = 5000000000"]),
        ("INTEGER", "a.double", ["CAST(t.id AS DOUBLE) = a.double"]),
        ("INTEGER", "a.float", []),
        ("SMALLINT", "a.float", ["CAST(t.id AS FLOAT) = a.float"]),
        ("FLOAT", "a.double", ["CAST(t.id AS DOUBLE) = a.double"]),
        ("DOUBLE", "a.k", ["t.id = CAST(a.k AS DOUBLE)"]),
        ("BIGINT", "a.ubigint", ["CAST(t.id AS DECIMAL(38,0)) = CAST(a.ubigint AS DECIMAL(38,0))"]),
        ("INTEGER", "a.decimal", ["CAST(t.id AS DECIMAL(12,2)) = CAST(a.decimal AS DECIMAL(12,2))"]),
        ("DECIMAL(9, 2)", "a.double", []),
        ("BOOLEAN", "a.k", ["CAST(t.id AS BIGINT) = a.k"]),
        ("DATE", "a.timestamp", ["CAST(t.id AS TIMESTAMP) = a.timestamp"]),
        ("TIMESTAMP", "a.date", ["t.id = CAST(a.date AS TIMESTAMP)"]),
        ("TIMESTAMP_S", "a.ts", ["t.id = a.ts"]),
        ("DATE", "DATE '2026-01-01'", ["t.id = 20454"]),
    ],
)
def test_casts_of_the_column(id: str, other: str, by: list[str]) -> None:
    """A cast that keeps different values different binds the column; another one does not."""
    assert told(asked(f"t.id = {other}", id=id)) == by


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())


@pytest.mark.parametrize("narrow", _INTEGERS)
@pytest.mark.parametrize("wide", [*_INTEGERS, pa.float32(), pa.float64(), pa.decimal128(20, 0), pa.decimal128(38, 30)])
def test_whole_numbers_that_a_cast_keeps_apart(narrow: pa.DataType, wide: pa.DataType) -> None:
    """Compared with Arrow's casts of the largest values of each type, which are those that fall together."""
    signed = narrow in _INTEGERS[:4]
    top = 2 ** (narrow.bit_width - signed) - 1
    values = [top, top - 1, top - 2, 0, 1, *([-top - 1, -top, -top + 1] if signed else [])]
    array = pa.array(values, narrow)
    try:
        cast = array.cast(wide).to_pylist()
        kept = len(set(cast)) == len(set(values))
    except pa.ArrowInvalid:
        kept = False
    assert keeps_apart(narrow, wide) == kept


def test_all_columns_of_an_index_must_be_bound() -> None:
    methods = "SCAN INDEX ON (id, name) INDEX ON (x)"
    assert told(asked("t.id = a.k", methods)) == []
    query = asked("t.id = a.k AND t.id = b.k AND t.name = b.s AND t.x = 3", methods)
    assert told(query) == ["t.id = a.k, t.name = b.s", "t.id = b.k, t.name = b.s", "t.x = 3"]
    assert [(way.method, way.needs) for way in ways(query)] == [(1, 0b11), (1, 0b10), (2, 0)]


@pytest.mark.parametrize(
    ("where", "methods", "lost"),
    [
        ("t.id = a.k AND u.id = t.x", "INDEX ON (id)", []),
        ("t.id = a.k AND u.id = 3", "INDEX ON (id)", []),
        ("t.id = u.x AND u.id = t.x", "INDEX ON (id)", [2, 3]),
        ("t.id = u.x AND u.id = t.x", "INDEX ON (id) SCAN", []),
        ("t.id = u.x", "INDEX ON (id)", [2, 3]),
        ("t.id = a.k", "INDEX ON (id)", [3]),
    ],
)
def test_tables_that_cannot_be_reached(where: str, methods: str, lost: list[int]) -> None:
    query = asked(where, methods, more=", u")
    assert unreachable(query, [ways(query, source) for source in range(4)]) == lost


_SAMPLES: dict[pa.DataType, list[object]] = {
    pa.bool_(): [False, True],
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int32(): [-(2**31), -(2**24) - 1, -(2**24), 0, 1, 2**24, 2**24 + 1, 2**31 - 1],
    pa.int64(): [-(2**63), -(2**53) - 1, -(2**53), 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    pa.uint64(): [0, 1, 2**53, 2**53 + 1, 2**64 - 1],
    pa.float32(): [-1.5, 0.0, 1e-40, 16777216.0, float("inf"), float("nan")],
    pa.float64(): [-1.5, 0.0, 5e-324, 1e300, 1e-300, 16777216.0, 16777217.0, float("inf"), float("nan")],
    pa.decimal128(9, 2): [Decimal("-1.01"), Decimal("0.00"), Decimal("0.01"), Decimal("9999999.99")],
    pa.decimal128(38, 0): [Decimal(10**37), Decimal(10**37 + 1), Decimal(0), Decimal(1)],
    pa.date32(): [date(1, 1, 1), date(1970, 1, 1), date(2026, 1, 1), date(9999, 12, 31)],
    pa.timestamp("us"): [datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1), datetime(1969, 12, 31, 23)],
}


@pytest.mark.parametrize("narrow", _SAMPLES, ids=str)
@pytest.mark.parametrize("wide", _SAMPLES, ids=str)
def test_a_cast_that_keeps_values_apart_does(narrow: pa.DataType, wide: pa.DataType) -> None:
    """Our own casts of values at the limits: different ones stay different. Other pairs of types have two values that
    fall together, or one that the wider type cannot hold. Of decimals as floats nothing is claimed."""
    try:
        cast_ = cast(SourceColumn(0, "x", narrow), wide)
    except TypeMismatch:
        assert not keeps_apart(narrow, wide)
        return
    values = pa.array(_SAMPLES[narrow], narrow)
    result = evaluate(cast_, {SourceColumn(0, "x", narrow): values}, len(values), ErrorCount()).to_pylist()
    texts = {str(value) for value in result if value is not None}
    cautious = pa.types.is_decimal(narrow) and pa.types.is_floating(wide)
    assert keeps_apart(narrow, wide) == (len(texts) == len(values) and not cautious)
