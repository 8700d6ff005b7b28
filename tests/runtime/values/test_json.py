"""Values of JSON: read as their text would be, at any depth."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eddyline.runtime.values.json import from_json_values, value_of

BAD = object()


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("[1, 2.5]", pa.list_(pa.int64()), BAD),
        ('[1, "2", null]', pa.list_(pa.int64()), [1, 2, None]),
        ('"abc"', pa.list_(pa.string()), BAD),
        ("5", pa.list_(pa.string()), BAD),
        ("[]", pa.list_(pa.string()), []),
        (
            '[{"a": 1.50, "a": [ ]}, 1.50, "x", true]',
            pa.list_(pa.string()),
            ['{"a": 1.50, "a": [ ]}', "1.50", "x", "true"],
        ),
        ("123456789012345678.25", pa.decimal128(20, 2), Decimal("123456789012345678.25")),
        ("[12345678901234567890123.5]", pa.list_(pa.decimal128(38, 1)), [Decimal("12345678901234567890123.5")]),
        ('{"x": 1, "x": 2}', pa.map_(pa.string(), pa.int64()), [("x", 2)]),
        (
            '{"x": {"y": null}}',
            pa.struct({"x": pa.struct({"y": pa.int64()}), "z": pa.int8()}),
            {"x": {"y": None}, "z": None},
        ),
        ('["/w==", "!"]', pa.list_(pa.binary()), BAD),
        ('["/w=="]', pa.list_(pa.binary()), [b"\xff"]),
        ('["\\ud800"]', pa.list_(pa.string()), BAD),
        ('["\\ud83d\\ude00"]', pa.list_(pa.string()), ["😀"]),
        ("NaN", pa.string(), "NaN"),
        ("[-Infinity]", pa.list_(pa.float64()), [float("-inf")]),
        ("1.5", pa.date32(), BAD),
    ],
)
def test_values(text: str, type_: pa.DataType, expected: Any) -> None:
    """Each value among good ones and NULL, which it must not disturb."""
    assert text == "NaN" or "Infinity" in text or json.loads(text) is not None
    values = [None, value_of(text, type_), None]
    array, bad = from_json_values(values, type_)
    array.validate(full=True)
    assert array.to_pylist() == [None, None if expected is BAD else expected, None]
    assert (bad is not None and bad.tolist() == [False, True, False]) == (expected is BAD)


@pytest.mark.parametrize(
    "text", ["[1,]", "[1 2]", "[", '{"a" 1}', '{"a": 1,}', "{a: 1}", '{"a": tru}', "[1] x", '{"a": "\n"}']
)
def test_a_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        value_of(text, pa.struct({"a": pa.list_(pa.int64())}) if text[0] == "{" else pa.list_(pa.int64()))
