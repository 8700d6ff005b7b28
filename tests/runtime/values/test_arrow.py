"""Columns of Arrow as declared types: exactly, or refused with their own row only."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.types import MONTHS
from eddyline.runtime.values.arrow import convert

DAY, NOON = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 12)
BAD = object()


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1.0, 1.5, None, float("nan")], pa.float64(), pa.int64(), [1, BAD, None, BAD]),
        ([2**53, 2**53 + 1], pa.int64(), pa.float64(), [2.0**53, 2.0**53]),
        ([2**54 + 2**30 + 1, None], pa.int64(), pa.float32(), [2.0**54 + 2.0**31, None]),
        ([0.5, 1e300, float("inf")], pa.float64(), pa.float32(), [0.5, BAD, float("inf")]),
        ([5, 12345, None], pa.int64(), pa.decimal128(4, 0), [Decimal(5), BAD, None]),
        ([0.1, 1.005, 1e20], pa.float64(), pa.decimal128(5, 2), [Decimal("0.10"), BAD, BAD]),
        ([Decimal("7.50"), Decimal("8.00")], pa.decimal128(5, 2), pa.int64(), [BAD, 8]),
        ([Decimal("999.9"), None], pa.decimal128(4, 1), pa.float64(), [999.9, None]),
        ([True, None], pa.bool_(), pa.decimal128(4, 1), [Decimal(1), None]),
        ([0, 1, 2, None], pa.int64(), pa.bool_(), [False, True, BAD, None]),
        ([True, None], pa.bool_(), pa.string(), ["true", None]),
        ([True], pa.bool_(), pa.int8(), [1]),
        ([1.0, 0.1], pa.float64(), pa.string(), ["1.0", "0.1"]),
        ([b"x", b"\xff"], pa.binary(), pa.string(), ["x", BAD]),
        ([NOON], pa.timestamp("us"), pa.string(), ["2026-01-01 12:00:00"]),
        ([NOON], pa.timestamp("us", "Asia/Kathmandu"), pa.string(), ["2026-01-01 12:00:00+00"]),
        ([DAY, NOON], pa.timestamp("us"), pa.date32(), [DAY.date(), BAD]),
        ([1_001, -1, None], pa.timestamp("ns"), pa.timestamp("us"), [1, -1, None]),
        ([1_500, 2_000], pa.timestamp("us"), pa.timestamp("ms"), [BAD, 2]),
        ([2**62, 1], pa.timestamp("us"), pa.timestamp("ns"), [BAD, 1_000]),
        (["2026-01-01 00:00:00.123456789"], pa.string(), pa.timestamp("ns"), [1767225600123456789]),
        ([-1, 1_000], pa.duration("ns"), pa.duration("us"), [-1, 1]),
        (["7", "x"], pa.string(), pa.int64(), [7, BAD]),
        ([None], pa.null(), pa.list_(pa.int64()), [None]),
        ([[1.0], [1.5], None, []], pa.list_(pa.float64()), pa.list_(pa.int64()), [[1], BAD, None, []]),
        ([[1, 2], [1], None], pa.list_(pa.int64()), pa.list_(pa.int8(), 2), [[1, 2], BAD, None]),
        ([{"a": 1.5, "z": 1}, {"a": 2.0}], None, pa.struct({"a": "int8", "b": "int8"}), [BAD, {"a": 2, "b": None}]),
        ([[("a", 1.5)], [("a", 1.0)]], pa.map_("string", "double"), pa.map_("string", "int8"), [BAD, [("a", 1)]]),
        ([[("x", 1)], [("1", 1)]], pa.map_("string", "int8"), pa.map_("int8", "int8"), [BAD, [(1, 1)]]),
    ],
)
def test_a_cast_is_exact_or_refused(values: list[Any], source: Any, target: Any, expected: list[Any]) -> None:
    given = pa.array(values, source)
    for array in (given, given[1:]):  # also of a slice
        result, bad = convert(array, target)
        wanted = expected[len(expected) - len(array) :]
        assert result.type == target
        result.validate(full=True)
        moments = pa.types.is_temporal(target) and not pa.types.is_date(target)
        found = (result.view(pa.int64()) if moments else result).to_pylist()
        assert found == [None if value is BAD else value for value in wanted]
        assert list(np.zeros(len(array), bool) if bad is None else bad) == [value is BAD for value in wanted]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.timestamp("us")),
        (pa.float64(), pa.date32()),
        (pa.timestamp("us"), pa.int64()),
        (pa.duration("us"), pa.int64()),
        (pa.list_(pa.int64()), pa.int64()),
        (pa.int64(), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.string()),
        (pa.struct({"a": pa.int64()}), pa.struct({"b": pa.int64()})),
        (pa.int64(), MONTHS),
    ],
)
def test_types_that_share_no_value_are_refused_whole(source: pa.DataType, target: pa.DataType) -> None:
    for rows in (0, 2):
        with pytest.raises(pa.ArrowNotImplementedError):
            convert(pa.nulls(rows, source), target)
