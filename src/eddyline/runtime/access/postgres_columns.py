"""Columns of Arrow to PostgreSQL and back, whole, without a Python object for a value.

Keys become one array for each column: of integers in binary form, of all others as text, `{"a","b"}`. Rows come back as
one row of arrays, one for each column, by `array_agg`. All aggregates of one query see the rows in the same order, so
the columns belong together. The binary form of an array is a header, and for each element its length (-1: NULL) and its
bytes. NumPy reads arrays of fixed width without NULLs in place; a compiled loop takes all others apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel
from eddyline.runtime.access.client import KeysRefused
from eddyline.runtime.sources.json_values import is_bytes

_EPOCH_DAYS = 10_957
_EPOCH_MICROS = _EPOCH_DAYS * 86_400_000_000
"""PostgreSQL counts from 2000-01-01."""
_HEADER = 20
"""Bytes before the first element: dimensions, whether there are NULLs, type, number of elements, first index."""
_INT8 = 20
"""The number of the type int8."""
_INT8_ITEMS = np.dtype([("length", ">i4"), ("value", ">i8")])


@dataclass(frozen=True)
class ColumnForm:
    """How a column travels: as a type of fixed width (`code`, a NumPy type in network order), or as text or bytes."""

    cast: str
    code: str | None
    arrow: pa.DataType

    def array(self, data: bytes | None) -> pa.Array:
        """The column that array_agg gave, in binary form; None if there was no row."""
        if data is None:
            return pa.array([], self.arrow)
        has_nulls, count = data[7] != 0, int.from_bytes(data[12:16])
        if self.code is None:
            values, offsets, valid = _taken_apart(data, count)
            nulls = _bitmap(valid) if has_nulls else None
            return pa.Array.from_buffers(self.arrow, count, [nulls, pa.py_buffer(offsets), pa.py_buffer(values)])
        nulls = None
        if has_nulls:
            values, _, valid = _taken_apart(data, count)
            numbers = np.zeros(count, self._native)
            numbers[valid] = values.view(self.code)
            nulls = _bitmap(valid)
        else:
            numbers = np.frombuffer(data, self._items, count, _HEADER)["value"].astype(self._native)
        if self._epoch:
            limits = np.iinfo(self._native)
            if numbers.max() == limits.max or numbers.min() == limits.min:
                raise KeysRefused("a time is infinite")
            numbers += self._epoch
        if self._native == np.int8:
            return pa.Array.from_buffers(self.arrow, count, [nulls, _bitmap(numbers.view(np.bool_))])
        return pa.Array.from_buffers(self.arrow, count, [nulls, pa.py_buffer(numbers)])

    @cached_property
    def _native(self) -> np.dtype[Any]:
        return np.dtype(self.code).newbyteorder("=")

    @cached_property
    def _items(self) -> np.dtype[Any]:
        return np.dtype([("length", ">i4"), ("value", self.code)])

    @cached_property
    def _epoch(self) -> int:
        """PostgreSQL's first day in the units of the column; 0 if the column is no time."""
        is_date = pa.types.is_date(self.arrow)
        return _EPOCH_DAYS if is_date else _EPOCH_MICROS if pa.types.is_timestamp(self.arrow) else 0


_FORMS = {
    "bool": ColumnForm("bool", "i1", pa.bool_()),
    "int2": ColumnForm("int2", ">i2", pa.int16()),
    "int4": ColumnForm("int4", ">i4", pa.int32()),
    "int8": ColumnForm("int8", ">i8", pa.int64()),
    "float4": ColumnForm("float4", ">f4", pa.float32()),
    "float8": ColumnForm("float8", ">f8", pa.float64()),
    "date": ColumnForm("date", ">i4", pa.date32()),
    "timestamp": ColumnForm("timestamp", ">i8", pa.timestamp("us")),
    "timestamptz": ColumnForm("timestamptz", ">i8", pa.timestamp("us", "UTC")),
    "bytea": ColumnForm("bytea", None, pa.binary()),
}
"""By the type of the column in the database."""
_TEXT = ColumnForm("text", None, pa.string())


def form_of(database_type: str) -> ColumnForm:
    """How a column of a type of the database travels: numbers and times as they are, all others as text."""
    return _FORMS.get(database_type, _TEXT)


def key_type(database_type: str) -> str:
    """The type of keys that are compared with a column, so that its index is used. An integer that is too large for the
    column is a key without rows, not an error."""
    return {"int2": "int8", "int4": "int8", "varchar": "text", "name": "text"}.get(database_type, database_type)


class Int8Array(bytes):
    """An array of int8 in binary form."""


def int8_array(keys: pa.Array) -> Int8Array:
    """Integers of at most 64 bits with a sign, none of them NULL, as an array."""
    items = np.empty(len(keys), _INT8_ITEMS)
    items["length"], items["value"] = 8, keys.to_numpy()
    header = np.array([1, 0, _INT8, len(keys), 1], ">i4")
    return Int8Array(header.tobytes() + items.tobytes())


def array_literal(keys: pa.Array) -> str:
    """Keys as the text of an array.

    >>> array_literal(pa.array([1, 2])), array_literal(pa.array(["a b", 'c"']))
    ('{"1","2"}', '{"a b","c\\\\""}')
    """
    if is_bytes(keys.type):
        return "{" + ",".join(f'"\\\\x{value.hex()}"' for value in keys.to_pylist()) + "}"
    if not len(keys):
        return "{}"
    texts = keys if pa.types.is_string(keys.type) else keys.cast(pa.string())
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), "\0")
    whole: str = joined[0].as_py()
    if whole.count("\0") == len(keys) - 1:
        return '{"' + _escaped(whole).replace("\0", '","') + '"}'
    # No text of PostgreSQL has a NUL, so nothing is equal to a key that has one.
    return "{" + ",".join("NULL" if "\0" in text else f'"{_escaped(text)}"' for text in texts.to_pylist()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _bitmap(flags: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _taken_apart(data: bytes, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.bool_]]:
    """The bytes of all elements without their lengths, where each begins, and which are not NULL."""
    values = np.empty(len(data), np.uint8)
    offsets, valid = np.zeros(count + 1, np.int32), np.empty(count, np.bool_)
    size = take_apart(np.frombuffer(data, np.uint8), _HEADER, values, offsets, valid)
    return values[:size], offsets, valid


@kernel
def take_apart(
    data: NDArray[np.uint8],
    at: int,
    values: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    valid: NDArray[np.bool_],
) -> int:
    """Copy the elements that begin at byte `at`; returns the size of all of them."""
    size = 0
    for i in range(len(valid)):
        valid[i] = data[at] < 128
        if valid[i]:
            length = 0
            for _ in range(4):
                length = length * 256 + data[at]
                at += 1
            for _ in range(length):
                values[size] = data[at]
                size += 1
                at += 1
        else:
            at += 4
        offsets[i + 1] = size
    return size
