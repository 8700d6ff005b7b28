from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.runtime.access.client import KeysRefused
from eddyline.runtime.access.postgres_columns import array_literal, form_of, int8_array, key_type


@pytest.mark.parametrize(
    "keys, literal",
    [
        (pa.array([1, -2], pa.int8()), '{"1","-2"}'),
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


def with_nulls(*values: bytes | None) -> bytes:
    items = [b"\xff" * 4 if v is None else len(v).to_bytes(4) + v for v in values]
    return np.array([1, 1, 20, len(values), 1], ">i4").tobytes() + b"".join(items)


def test_numbers() -> None:
    form = form_of("int8")
    assert form.array(binary(">i8", [1, -(2**63)])).to_pylist() == [1, -(2**63)]
    found = form.array(with_nulls((1).to_bytes(8), None, (2).to_bytes(8), None))
    found.validate(full=True)
    assert found.to_pylist() == [1, None, 2, None]
    assert form.array(with_nulls(None)).to_pylist() == [None]
    assert form.array(None).to_pylist() == []
    assert form_of("bool").array(with_nulls(b"\1", None, b"\0")).to_pylist() == [True, None, False]
    assert form_of("bool").array(binary("i1", [1, 0] * 9)).to_pylist() == [True, False] * 9


def test_texts() -> None:
    form = form_of("varchar")
    found = form.array(with_nulls(b"a", None, b"", "é".encode(), b"x" * 300))
    found.validate(full=True)
    assert found.to_pylist() == ["a", None, "", "é", "x" * 300]
    assert form.array(None).to_pylist() == []
    assert form_of("bytea").array(with_nulls(b"\xff", None)).to_pylist() == [b"\xff", None]


def test_times() -> None:
    assert form_of("date").array(binary(">i4", [-1, 0])).to_pylist() == [date(1999, 12, 31), date(2000, 1, 1)]
    assert form_of("timestamp").array(binary(">i8", [1])).to_pylist() == [datetime(2000, 1, 1, 0, 0, 0, 1)]
    assert form_of("date").array(with_nulls(None)).to_pylist() == [None]
    with pytest.raises(KeysRefused, match="a time is infinite"):
        form_of("date").array(binary(">i4", [0, 2**31 - 1]))


def test_keys_in_binary_form() -> None:
    keys = pa.array([0, 1, -1, 2**31], pa.int64())
    assert int8_array(keys.slice(1)) == binary(">i8", [1, -1, 2**31])
    assert int8_array(pa.array([255], pa.uint8())) == binary(">i8", [255])


def test_a_text_with_nul_is_equal_to_nothing() -> None:
    assert array_literal(pa.array(["a", "b\0c", '"'])) == '{"a",NULL,"\\""}'
    assert array_literal(pa.array([], pa.string())) == "{}"


def test_types_of_keys() -> None:
    assert [key_type(name) for name in ("int4", "varchar", "uuid")] == ["int8", "text", "uuid"]
    assert form_of("uuid") == form_of("text")
