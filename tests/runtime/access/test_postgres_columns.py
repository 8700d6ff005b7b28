from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.runtime.access.fitting import Marked
from eddyline.runtime.access.postgres_columns import array_literal, copied_rows, form_of


@pytest.mark.parametrize(
    "keys, literal",
    [
        (pa.array(["a", "", 'b"\\', "NULL", "{,}"]), '{"a","","b\\"\\\\","NULL","{,}"}'),
        (pa.array([b"\x00a"]), '{"\\\\x0061"}'),
    ],
)
def test_array_literals(keys: pa.Array, literal: str) -> None:
    assert array_literal(keys) == literal
    assert array_literal(pa.concat_arrays([keys, keys]).slice(len(keys))) == literal


def binary(code: str, values: list[Any], number: int = 20) -> bytes:
    items = np.zeros(len(values), [("length", ">i4"), ("value", code)])
    items["length"], items["value"] = np.dtype(code).itemsize, values
    return np.array([1, 0, number, len(values), 1], ">i4").tobytes() + items.tobytes()


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
    days = form_of("date").array(binary(">i4", [0, 2**31 - 1, -(2**31)]))
    assert isinstance(days, Marked) and days.values.to_pylist() == [date(2000, 1, 1), None, None]
    assert days.odd.to_pylist() == [None, "infinity", "-infinity"]
    late = form_of("timestamp").array(binary(">i8", [2**63 - 2]))
    assert isinstance(late, Marked) and late.odd.to_pylist() == ["294277-01-09T04:00:54.775"]


def test_copied_rows() -> None:
    """Rows of COPY are the columns that array_agg gives."""
    header = b"PGCOPY\n\xff\r\n\0" + bytes(8)

    def row(*values: bytes | None) -> bytes:
        return len(values).to_bytes(2) + with_nulls(*values)[20:]

    rows = [row((7).to_bytes(8), b"a", None), row(None, "é".encode(), b"\1")]
    forms = {name: form_of(name) for name in ("int8", "text", "bool")}
    for parts in ([header + rows[0], rows[1], b"\xff\xff"], rows, [header, *rows]):
        found = copied_rows(forms, parts)
        assert [array.to_pylist() for array in found.values()] == [[7, None], ["a", "é"], [None, True]]
        for array in found.values():
            array.validate(full=True)
    empty = copied_rows(forms, [header, b"\xff\xff"])
    assert [array.to_pylist() for array in empty.values()] == [[], [], []]


def test_keys_in_binary_form() -> None:
    keys = pa.array([0, 1, -1, 2**31], pa.int64())
    assert form_of("int8").parameter(keys.slice(1)) == binary(">i8", [1, -1, 2**31])
    assert form_of("bool").parameter(pa.array([True, False])) == binary("i1", [1, 0], 16)
    assert form_of("date").parameter(pa.array([date(2000, 1, 2), date(1, 1, 1)])) == binary(">i4", [1, -730119], 1082)


@pytest.mark.parametrize(
    "database_type, keys, kept",
    [
        ("text", pa.array(["a", "b\0c", '"', None]), [True, False, True, False]),
        ("date", pa.array([0, -2_451_545 + 10_957, -2_451_546 + 10_957, 2**31 - 1], pa.int32()).cast(pa.date32()),
         [True, True, False, False]),
        ("timestamp", pa.array([2**63 - 1, -(2**63) + 1], pa.timestamp("us")), [True, False]),
        ("int2", pa.array([1, None], pa.int16()), [True, False]),
    ],
)  # fmt: skip
def test_keys_that_no_column_holds(database_type: str, keys: pa.Array, kept: list[bool]) -> None:
    left, which = form_of(database_type).keys(keys)
    assert which.tolist() == kept and len(left) == sum(kept)
