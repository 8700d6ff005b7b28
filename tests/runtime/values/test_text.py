"""Text to typed columns: good values, bad values, and that one never spoils another."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eddyline.bound.as_text import as_text
from eddyline.runtime.values.text import cast_text

_TIME = datetime(2024, 1, 1, 10, 0, 0)


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        (pa.int64(), {"1": 1, " -7 ": -7, "+5": 5}, ["x", "1.5", "", "9223372036854775808", "1 2"]),
        (pa.int8(), {"127": 127}, ["128", "-129"]),
        (pa.float64(), {"1": 1.0, "-.5": -0.5, "1e3": 1000.0, "inf": float("inf")}, ["one", "1,5", "--1"]),
        (pa.bool_(), {"true": True, "FALSE": False, "1": True}, ["yes", "2"]),
        (pa.decimal128(5, 2), {"1.25": Decimal("1.25"), "-3": Decimal("-3.00")}, ["1.255", "12345", "x"]),
        (pa.date32(), {"2024-02-29": datetime(2024, 2, 29).date()}, ["2023-02-29", "1.1.2024"]),
        (
            pa.timestamp("us"),
            {
                "2024-01-01 10:00:00": _TIME,
                "2024-01-01T10:00": _TIME,
                "2024-01-01T10:00:00Z": _TIME,
                "2024-01-01T12:00:00+02:00": _TIME,
                "2024-01-01T10:00:00.1234567": _TIME.replace(microsecond=123456),
                "2024-01-01": datetime(2024, 1, 1),
            },
            ["2024-01-32", "now", "2024-01-01T25:00:00"],
        ),
    ],
)
def test_each_value_by_itself(type_: pa.DataType, good: dict[str, Any], bad: list[str]) -> None:
    for values in (list(good), [*good, *bad], [None, *bad, *good, *bad]):
        result, mask = cast_text(pa.array(values, pa.string()), type_)
        assert result.type == type_
        assert result.to_pylist() == [good.get(v) if v is not None else None for v in values]
        assert (mask.tolist() if mask is not None else [False] * len(values)) == [v in bad for v in values]


def test_many_bad_values_are_quick() -> None:
    values = pa.array(["x", "1", "999"] * 50_000)
    result, mask = cast_text(values, pa.int8())
    assert mask is not None
    assert mask.sum() == 100_000
    assert result.null_count == 100_000


def test_decimals_that_do_not_fit_are_quick() -> None:
    values = pa.array(["1.234", "1.2", "100000", "12.50000"] * 20_000)
    result, mask = cast_text(values, pa.decimal128(5, 2))
    assert mask is not None
    assert mask.sum() == 40_000
    assert result[3].as_py() == Decimal("12.50")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"plain", None, b"caf\xc3\xa9", b"\xff\x00odd", b""]),
        pa.array([b"plain", b"\xff"], pa.large_binary()),
        pa.array([b"plain", b"\xff"], pa.binary_view()),
        pa.array([b"ab", None, b"a\xff"], pa.binary(2)),
        pa.array([b"plain", b"\xff", b"plain"]).dictionary_encode(),
        pa.array([[b"plain"], [b"\xff"], None]),
        pa.array([0, 2**62, None], pa.timestamp("us")),
        pa.array([1, None], pa.duration("us")),
    ],
    ids=lambda values: str(values.type),
)
def test_the_text_of_a_value_does_not_depend_on_what_stands_beside_it(values: pa.Array) -> None:
    whole = as_text(values)
    assert whole.type == pa.string()
    cut = [as_text(values.slice(at, 1)).to_pylist()[0] for at in range(len(values))]
    assert whole.to_pylist() == cut


def test_bytes_that_are_text_are_that_text() -> None:
    values = pa.array([b"plain", b"caf\xc3\xa9", b"\xff\x00 odd", None])
    assert as_text(values).to_pylist() == ["plain", "caf\u00e9", "\\xff\x00 odd", None]
