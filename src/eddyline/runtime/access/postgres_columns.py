"""Columns of Arrow to PostgreSQL and back, whole, without a Python object for a value.

A column has one form, whichever access method reads it: an index asks for arrays, one for each column, by `array_agg`;
a scan copies rows (COPY). Both bring the same bytes in binary form, so both give the same values. All aggregates of
one query see the rows in the same order, so the columns of a lookup belong together. An element is its length (-1:
NULL) and its bytes; an array has a header before its elements, and a row of COPY the number of its columns. NumPy reads
arrays of fixed width without NULLs in place; a compiled loop takes all others apart.

Keys become one array for each column: numbers and times in binary form, all others as text, `{"a","b"}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel
from eddyline.runtime.access.fitting import Marked
from eddyline.runtime.values.json import is_bytes

_EPOCH_DAYS = 10_957
_EPOCH_MICROS = _EPOCH_DAYS * 86_400_000_000
"""PostgreSQL counts from 2000-01-01."""
_DAYS = -2_451_545, 2_145_031_948
"""The first and the last day that PostgreSQL has, counted from 2000-01-01: in 4714 BC and in 5874897."""
_HEADER = 20
"""Bytes of an array before the first element: dimensions, whether there are NULLs, type, number of elements, first
index."""
_COPY_HEADER = 19
"""Bytes of COPY before the first row, at least: a signature, flags, and the length of what follows."""


@dataclass(frozen=True)
class ColumnForm:
    """How a column travels: as a type of fixed width (`code`, a NumPy type in network order, and the number of the type
    in PostgreSQL), or as text or bytes."""

    cast: str
    code: str | None
    arrow: pa.DataType
    number: int = 0

    def array(self, data: bytes | None) -> pa.Array | Marked:
        """The column that array_agg gave, in binary form; None if there was no row."""
        if data is None:
            return pa.array([], self.arrow)
        has_nulls, count = data[7] != 0, int.from_bytes(data[12:16])
        if self.code is None or has_nulls:
            return self._taken_apart(np.frombuffer(data, np.uint8), count, _HEADER, 0, 1, 0)
        return self._numbers(np.frombuffer(data, self._items, count, _HEADER)["value"].astype(self._native))

    def copied(self, data: NDArray[np.uint8], rows: int, columns: int, column: int) -> pa.Array | Marked:
        """One of the columns of rows that COPY gave, in binary form, without their header."""
        return self._taken_apart(data, rows, 0, 2, columns, column)

    def keys(self, keys: pa.Array) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Keys of this type that the column may hold, and which of the keys they are."""
        valid = keys.is_valid().to_numpy(zero_copy_only=False)
        if self._epoch:
            days = pc.cast(keys, pa.date32(), safe=False).cast(pa.int32()).fill_null(0).to_numpy()
            valid = valid & (days >= _DAYS[0] + _EPOCH_DAYS) & (days <= _DAYS[1])
        elif pa.types.is_string(self.arrow):  # no text of PostgreSQL has a NUL
            valid = valid & ~pc.match_substring(keys, "\0").fill_null(True).to_numpy(zero_copy_only=False)
        return keys if valid.all() else keys.filter(pa.array(valid)), valid

    def parameter(self, keys: pa.Array) -> str | BinaryArray:
        """Keys, as `keys` gives them, to compare with the column."""
        if self.code is None:
            return array_literal(keys)
        items = np.empty(len(keys), self._items)
        if pa.types.is_boolean(keys.type) or pa.types.is_floating(keys.type):
            numbers = keys.to_numpy(zero_copy_only=False)
        else:
            bits = pa.int32() if pa.types.is_date(keys.type) else pa.int64()
            numbers = keys.cast(bits).to_numpy(zero_copy_only=False) - self._epoch
        items["length"], items["value"] = self._native.itemsize, numbers
        return BinaryArray(np.array([1, 0, self.number, len(keys), 1], ">i4").tobytes() + items.tobytes())

    def _taken_apart(
        self, data: NDArray[np.uint8], count: int, at: int, header: int, columns: int, column: int
    ) -> pa.Array | Marked:
        values, offsets = np.empty(len(data), np.uint8), np.zeros(count + 1, np.int32)
        valid = np.empty(count, np.bool_)
        size = take_apart(data, at, header, columns, column, values, offsets, valid)
        if self.code is not None:
            numbers = np.zeros(count, self._native)
            numbers[valid] = values[:size].view(self.code)
            return self._numbers(numbers, valid)
        nulls = None if valid.all() else _bitmap(valid)
        buffers = [nulls, pa.py_buffer(offsets), pa.py_buffer(values[:size])]
        return pa.Array.from_buffers(self.arrow, count, buffers)  # the server looks that texts are UTF-8

    def _numbers(self, numbers: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array | Marked:
        odd = None
        if self._epoch and len(numbers):
            limits = np.iinfo(self._native)
            if numbers.min() == limits.min or numbers.max() > limits.max - self._epoch:
                wrong = (numbers == limits.min) | (numbers > limits.max - self._epoch)
                texts = [self._odd(number) if bad else None for number, bad in zip(numbers, wrong, strict=True)]
                odd, valid = pa.array(texts, pa.string()), ~wrong if valid is None else valid & ~wrong
                numbers = np.where(wrong, 0, numbers)
            numbers += self._epoch
        array = self._arrow(numbers, None if valid is None or valid.all() else _bitmap(valid))
        return array if odd is None else Marked(array, odd)

    def _odd(self, number: Any) -> str:
        """An infinite time, or one after the last that 64 bits have when they count from 1970."""
        limits = np.iinfo(self._native)
        if number in (limits.min, limits.max):
            return "infinity" if number > 0 else "-infinity"
        return str(np.datetime64(int(number) // 1000 + self._epoch // 1000, "ms"))

    def _arrow(self, numbers: NDArray[Any], nulls: pa.Buffer | None) -> pa.Array:
        if self._native == np.int8:
            return pa.Array.from_buffers(self.arrow, len(numbers), [nulls, _bitmap(numbers.view(np.bool_))])
        return pa.Array.from_buffers(self.arrow, len(numbers), [nulls, pa.py_buffer(numbers)])

    @property
    def is_text(self) -> bool:
        """Whether values travel as text."""
        return self is _TEXT

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


class BinaryArray(bytes):
    """An array in binary form."""


_FORMS = {
    "bool": ColumnForm("bool", "i1", pa.bool_(), 16),
    "int2": ColumnForm("int2", ">i2", pa.int16(), 21),
    "int4": ColumnForm("int4", ">i4", pa.int32(), 23),
    "int8": ColumnForm("int8", ">i8", pa.int64(), 20),
    "float4": ColumnForm("float4", ">f4", pa.float32(), 700),
    "float8": ColumnForm("float8", ">f8", pa.float64(), 701),
    "date": ColumnForm("date", ">i4", pa.date32(), 1082),
    "timestamp": ColumnForm("timestamp", ">i8", pa.timestamp("us"), 1114),
    "timestamptz": ColumnForm("timestamptz", ">i8", pa.timestamp("us", "UTC"), 1184),
    "bytea": ColumnForm("bytea", None, pa.binary()),
}
"""By the type of the column in the database."""
_TEXT = ColumnForm("text", None, pa.string())
RAW = ColumnForm("bytea", None, pa.binary())
"""Text of a database that knows no encoding."""


def form_of(database_type: str) -> ColumnForm:
    """How a column of a type of the database travels: numbers and times as they are, all others as text."""
    return _FORMS.get(database_type, _TEXT)


def arrays(forms: Mapping[str, ColumnForm], values: Sequence[bytes | None]) -> dict[str, pa.Array | Marked]:
    """The columns that array_agg gave."""
    return {name: form.array(data) for (name, form), data in zip(forms.items(), values, strict=True)}


def copied_rows(forms: Mapping[str, ColumnForm], parts: Sequence[bytes]) -> dict[str, pa.Array | Marked]:
    """The same for rows that COPY gave in binary form, each part a row; the first may begin with the header, the last
    be the end."""
    joined = b"".join(parts)
    begin = _COPY_HEADER + int.from_bytes(joined[15:19]) if joined.startswith(b"PGCOPY\n\xff\r\n\0") else 0
    end = len(joined) - 2 if parts[-1] == b"\xff\xff" else len(joined)
    data = np.frombuffer(joined, np.uint8)[begin:end]
    rows = count_rows(data, len(forms))
    return {name: form.copied(data, rows, len(forms), at) for at, (name, form) in enumerate(forms.items())}


def array_literal(keys: pa.Array) -> str:
    """Keys as the text of an array.

    >>> array_literal(pa.array(["a b", 'c"']))
    '{"a b","c\\\\""}'
    """
    if is_bytes(keys.type):
        return "{" + ",".join(f'"\\\\x{value.hex()}"' for value in keys.to_pylist()) + "}"
    if not len(keys):
        return "{}"
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(keys)], pa.int32()), keys), "\0")
    return '{"' + _escaped(joined[0].as_py()).replace("\0", '","') + '"}'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _bitmap(flags: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


@kernel
def count_rows(data: NDArray[np.uint8], columns: int) -> int:
    """The number of rows in the bytes of COPY."""
    rows, at = 0, 0
    while at < len(data):
        at += 2
        for _ in range(columns):
            length = 0
            if data[at] < 128:
                for place in range(4):
                    length = length * 256 + data[at + place]
            at += 4 + length
        rows += 1
    return rows


@kernel
def take_apart(
    data: NDArray[np.uint8],
    at: int,
    header: int,
    columns: int,
    column: int,
    values: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    valid: NDArray[np.bool_],
) -> int:
    """Copy the elements of one of the columns of the rows that begin at byte `at`, each with a header; returns the size
    of all of them."""
    size = 0
    for i in range(len(valid)):
        at += header
        for c in range(columns):
            is_valid, length = data[at] < 128, 0
            if is_valid:
                for place in range(4):
                    length = length * 256 + data[at + place]
            at += 4
            if c == column:
                valid[i] = is_valid
                for place in range(length):
                    values[size + place] = data[at + place]
                size += length
                offsets[i + 1] = size
            at += length
    return size
