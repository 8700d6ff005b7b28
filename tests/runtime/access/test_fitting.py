from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eddyline.runtime.access.client import TableRefused
from eddyline.runtime.access.fitting import fitted_batch, fitted_json, fitted_values, only, only_dead, values_of


@pytest.mark.parametrize(
    "type_, values, expected",
    [
        (pa.int64(), [1, "2", None], [1, 2, None]),
        (pa.int64(), [1, None, 3.0], [1, None, 3]),
        (pa.string(), ["a", 1, None], ["a", "1", None]),
        (pa.bool_(), [1, 0, None], [True, False, None]),
        (pa.bool_(), [True, False], [True, False]),
        (pa.float64(), [1, 2.5], [1.0, 2.5]),
        (pa.decimal128(10, 2), ["1.25", 2], [Decimal("1.25"), Decimal(2)]),
        (pa.timestamp("us"), ["2026-01-02 03:04:05", None], [datetime(2026, 1, 2, 3, 4, 5), None]),
    ],
)
def test_values_of_python(type_: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    assert fitted_values({"x": values}, pa.schema([("x", type_)])).rows.column(0).to_pylist() == expected


@pytest.mark.parametrize(
    "type_, value, message",
    [
        (pa.int64(), 1.5, "column x: '1.5' is not a value of type BIGINT"),
        (pa.int8(), 300, "column x: '300' is not a value of type TINYINT"),
        (pa.timestamp("us"), 17, "column x: '17' is not a value of type TIMESTAMP"),
        (pa.int64(), b"\xff", "column x: '\N{REPLACEMENT CHARACTER}' is not a value of type BIGINT"),
        (pa.list_(pa.int64()), ["a"], "column x: '['a']' is not a value of type BIGINT[]"),
    ],
)
def test_values_that_do_not_fit(type_: pa.DataType, value: Any, message: str) -> None:
    found = fitted_values({"x": [None, value], "y": [1, 2]}, pa.schema([("x", type_), ("y", pa.int64())]))
    assert found.rows.to_pylist() == [{"x": None, "y": 1}]
    assert found.dead is not None and found.dead.reasons.to_pylist() == [message]
    assert found.dead.rows.to_pylist() == [{"x": None, "y": 2}]


def test_objects_of_json() -> None:
    schema = pa.schema([("x", pa.binary()), ("y", pa.list_(pa.int64())), ("d", pa.decimal128(20, 2))])
    number = "12345678901234567.12"
    rows = [{"x": "AP8=", "y": ["1"], "d": number}, {"d": "1e2", "y": None}]
    found = fitted_json(rows, schema, pa.record_batch({"k": [1]})).rows.to_pylist()
    assert found == [{"x": b"\x00\xff", "y": [1], "d": Decimal(number)}, {"x": None, "y": None, "d": Decimal(100)}]
    dead = fitted_json([{"x": "no"}], schema, pa.record_batch({"k": [1]})).dead
    assert dead is not None and dead.texts.to_pylist() == [{"x": "no", "y": None, "d": None}]
    keys = pa.record_batch({"d": pa.array([Decimal("7.50")], pa.decimal128(20, 2))})
    only_d = pa.schema([schema.field("d")])
    found = fitted_json([{}, {"d": "1"}, {"d": None}], only_d, keys).rows.column(0).to_pylist()
    assert found == [Decimal("7.50"), Decimal(1), None]


def test_batches_of_other_types() -> None:
    rows = pa.table({"y": pa.chunked_array([[1.0], [2.0]]), "x": ["1", "2"]})
    schema = pa.schema([("x", pa.int64()), ("y", pa.int32())])
    assert fitted_batch(rows, schema).rows.to_pylist() == [{"x": 1, "y": 1}, {"x": 2, "y": 2}]
    with pytest.raises(TableRefused, match="the rows have no column z"):
        fitted_batch(rows, pa.schema([("z", pa.int64())]))
    with pytest.raises(TableRefused, match="more than one column x"):
        fitted_batch(pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), pa.schema([("x", pa.int64())]))
    with pytest.raises(TableRefused, match="column x is not of type"):
        fitted_batch(pa.table({"x": [[1]]}), pa.schema([("x", pa.int64())]))
    dead = fitted_batch(pa.table({"x": [1], "y": [1.5]}), schema).dead
    assert dead is not None and dead.reasons.to_pylist() == ["column y: '1.5' is not a value of type INTEGER"]


def test_a_dead_row_whose_key_cannot_be_read_stays() -> None:
    schema = pa.schema([("k", pa.int8()), ("v", pa.int8())])
    dead = fitted_values({"k": [1, 2, 300], "v": ["x", "y", 1]}, schema).dead
    found = only_dead(dead, pa.record_batch({"k": pa.array([1], pa.int8())}))
    assert found is not None and found.texts.to_pylist() == [{"k": "1", "v": "x"}, {"k": "300", "v": "1"}]
    assert only_dead(None, pa.record_batch({"k": [1]})) is None


def test_only_rows_of_the_keys() -> None:
    rows = pa.record_batch({"a": ["x", "X", "y"], "b": [1, 2, 3]})
    assert only(rows, pa.record_batch({"a": ["x", "y"]})).column("b").to_pylist() == [1, 3]
    assert only(rows, pa.record_batch({"b": [2, 3], "a": ["X", "x"]})).column("b").to_pylist() == [2]
    assert only(rows, rows) is rows


@pytest.mark.parametrize("copies", [1, 30])
def test_a_row_without_a_key_changes_no_other(copies: int) -> None:
    large = 2**53 + 1
    rows = pa.record_batch({"a": [large, None] * copies, "b": [1.0, None] * copies})
    assert only(rows, pa.record_batch({"a": [large]})).column("a").to_pylist() == [large] * copies
    assert only(rows, pa.record_batch({"a": [large], "b": [1.0]})).num_rows == copies
    assert not only(rows, pa.record_batch({"b": [float("nan")]})).num_rows


def test_zero_has_no_sign() -> None:
    rows, keys = pa.record_batch({"a": [0.0, -0.0, 1.0]}), pa.record_batch({"a": [-0.0]})
    assert only(rows, keys).num_rows == 2
    assert set(values_of(rows)[0]) >= set(values_of(keys)[0])


@pytest.mark.parametrize("copies", [1, 30])
def test_nan_is_one_key(copies: int) -> None:
    rows = pa.record_batch({"a": [float("nan"), 1.0] * copies, "b": [1, 2] * copies})
    assert only(rows, pa.record_batch({"a": [float("nan")]})).column("b").to_pylist() == [1] * copies
    assert only(rows, pa.record_batch({"b": [1], "a": [float("nan")]})).num_rows == copies
    assert set(values_of(rows)[0]) == set(values_of(rows)[0])
