from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.runtime.access.client import KeysRefused
from eddyline.runtime.access.postgres_columns import array_literal, form_of, key_type


@pytest.mark.parametrize(
    "keys, literal",
    [
        (pa.array([1, -2], pa.int8()), "{1,-2}"),
        (pa.array(["a", "", 'b"\\', "NULL", "{,}"]), '{"a","","b\\"\\\\","NULL","{,}"}'),
        (pa.array([1.5, float("nan")]), '{"1.5","nan"}'),
        (pa.array([True, False]), '{"true","false"}'),
        (pa.array([date(2026, 1, 2)]), '{"2026-01-02"}'),
        (pa.array([datetime(2026, 1, 2, 3)], pa.timestamp("us")), '{"2026-01-02 03:00:00.000000"}'),
        (pa.array([Decimal("1.50")]), '{"1.50"}'),
        (pa.array([b"\x00a"]), '{"\\\\x0061"}'),
    ],
)
def test_array_literals(keys: pa.Array, literal: str) -> None:
    assert array_literal(keys) == literal
    assert array_literal(pa.concat_arrays([keys, keys]).slice(len(keys))) == literal


def binary(code: str, values: list[Any]) -> bytes:
    items = np.zeros(len(values), [("length", ">i4"), ("value", code)])
    items["length"], items["value"] = np.dtype(code).itemsize, values
    return np.array([1, 0, 20, len(values), 1], ">i4").tobytes() + items.tobytes()


def test_numbers() -> None:
    form = form_of("int8")
    assert form.array([binary(">i8", [1, -(2**63)])]).to_pylist() == [1, -(2**63)]
    assert form.array([binary(">i8", [1, 0, 2]), b"101"]).to_pylist() == [1, None, 2]
    assert form.array([None]).to_pylist() == [] == form.array([None, None]).to_pylist()


def test_texts() -> None:
    form = form_of("varchar")
    found = form.array([binary(">i4", [1, -1, 0, 2]), "aé".encode()])
    found.validate(full=True)
    assert found.to_pylist() == ["a", None, "", "é"]
    assert form.array([binary(">i4", [-1, -1]), None]).to_pylist() == [None, None]
    assert form.array([None, None]).to_pylist() == []


def test_times() -> None:
    assert form_of("date").array([binary(">i4", [-1, 0])]).to_pylist() == [date(1999, 12, 31), date(2000, 1, 1)]
    assert form_of("timestamp").array([binary(">i8", [1])]).to_pylist() == [datetime(2000, 1, 1, 0, 0, 0, 1)]
    with pytest.raises(KeysRefused, match="a time is infinite"):
        form_of("date").array([binary(">i4", [0, 2**31 - 1])])


def test_types_of_keys() -> None:
    assert [key_type(name) for name in ("int4", "varchar", "uuid")] == ["int8", "text", "uuid"]
    assert form_of("uuid").aggregates("c", True) == form_of("text").aggregates("c", False)
