"""Multisets of rows: what is equal and what is not."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from eddyline.testing.compare import difference

NAN = float("nan")


def table(*columns: pa.Array) -> pa.Table:
    return pa.table(list(columns), names=[f"c{i}" for i in range(len(columns))])


def test_order_does_not_matter_and_copies_do() -> None:
    assert difference(table(pa.array([1, 2, 2])), table(pa.array([2, 1, 2]))) is None
    assert "1 too many, 1 missing" in str(difference(table(pa.array([1, 2, 2])), table(pa.array([2, 1, 1]))))


def test_nan_and_negative_zero() -> None:
    assert difference(table(pa.array([NAN, 0.0, None])), table(pa.array([-0.0, None, NAN]))) is None


def test_types_count_but_not_their_layout() -> None:
    strings = pa.array(["a", "b"])
    assert difference(table(strings.dictionary_encode()), table(strings.cast(pa.large_string()))) is None
    assert "type" in str(difference(table(pa.array([1])), table(pa.array([1.0]))))
    seconds = pa.array([5], pa.timestamp("s"))
    assert difference(table(seconds), table(seconds.cast(pa.timestamp("us")))) is None
    assert (
        difference(
            table(pa.array([86_400_000_000], pa.duration("us"))),
            table(pa.array([(0, 1, 0)], pa.month_day_nano_interval())),
        )
        is None
    )


def test_floats_are_near_relative_to_the_sum_of_absolute_values() -> None:
    keys, near = pa.array(["a", "b"]), pa.array([1e-7, 5.0])
    exact = table(keys, pa.array([0.0, 5.0]))
    assert difference(table(keys, near), exact) is not None
    assert difference(table(keys, near), exact, {1: np.array([1000.0, 5.0])}) is None
    assert difference(table(keys, pa.array([0.0, 5.0 + 1e-10])), exact) is None
    assert difference(table(keys, pa.array([5.0, 0.0])), exact) is not None


def test_decimals_by_value() -> None:
    one = pa.array([Decimal("1.50")], pa.decimal128(9, 2))
    assert difference(table(one), table(one)) is None
    assert difference(table(one), table(pa.array([Decimal("1.51")], pa.decimal128(9, 2)))) is not None
