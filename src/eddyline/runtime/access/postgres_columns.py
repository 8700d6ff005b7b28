"""Columns of Arrow to PostgreSQL and back, whole, without a Python object for a value.

Keys become the text of an array, one for each column: `{1,2,3}`. Rows come back as one row of aggregates. A column of
fixed width is `array_agg`, whose binary form is a list of lengths and values that NumPy reads in place. A column of
text is `string_agg`, one long text, beside the lengths of its values: the layout that Arrow itself has for text. All
aggregates of one query see the rows in the same order, so the columns belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.runtime.access.client import KeysRefused
from eddyline.runtime.sources.json_values import is_bytes

_EPOCH_DAYS = 10_957
_EPOCH_MICROS = _EPOCH_DAYS * 86_400_000_000
"""PostgreSQL counts from 2000-01-01."""
_HEADER = 20
"""Bytes before the first element of an array with one dimension."""


@dataclass(frozen=True)
class ColumnForm:
    """How a column travels: as a type of fixed width (`code`, a NumPy type in network order), or as text or bytes."""

    cast: str
    code: str | None
    arrow: pa.DataType
    zero: str = "0"
    """What stands for NULL in the array; another aggregate says where."""

    def aggregates(self, column: str, nullable: bool) -> list[str]:
        """What is selected for a column, whose name is quoted."""
        value = f"{column}::{self.cast}"
        if self.code is None:
            empty = f"'{'' if self.cast == 'text' else chr(92) + 'x'}'::{self.cast}"
            return [f"array_agg(coalesce(octet_length({value}), -1))", f"string_agg({value}, {empty})"]
        if not nullable:
            return [f"array_agg({value})"]
        return [
            f"array_agg(coalesce({value}, '{self.zero}'))",
            f"string_agg(CASE WHEN {column} IS NULL THEN '0' ELSE '1' END, '')",
        ]

    def array(self, values: Sequence[bytes | None]) -> pa.Array:
        """The column that the aggregates gave, in binary form: NULL if there was no row."""
        data, *more = values
        if data is None:
            return pa.array([], self.arrow)
        if self.code is None:
            return _texts(_elements(data, ">i4"), more[0] or b"", self.arrow)
        numbers = _elements(data, self.code)
        nulls = np.frombuffer(more[0], np.uint8) == ord("0") if more and more[0] is not None else None
        if pa.types.is_boolean(self.arrow):
            return pa.array(numbers != 0, mask=nulls)
        if pa.types.is_temporal(self.arrow):
            limits = np.iinfo(numbers.dtype)
            if ((numbers == limits.max) | (numbers == limits.min)).any():
                raise KeysRefused("a time is infinite")
            numbers += _EPOCH_DAYS if pa.types.is_date(self.arrow) else _EPOCH_MICROS
        return pa.array(numbers, mask=nulls).view(self.arrow)


_FORMS = {
    "bool": ColumnForm("bool", "i1", pa.bool_(), "false"),
    "int2": ColumnForm("int2", ">i2", pa.int16()),
    "int4": ColumnForm("int4", ">i4", pa.int32()),
    "int8": ColumnForm("int8", ">i8", pa.int64()),
    "float4": ColumnForm("float4", ">f4", pa.float32()),
    "float8": ColumnForm("float8", ">f8", pa.float64()),
    "date": ColumnForm("date", ">i4", pa.date32(), "2000-01-01"),
    "timestamp": ColumnForm("timestamp", ">i8", pa.timestamp("us"), "2000-01-01"),
    "timestamptz": ColumnForm("timestamptz", ">i8", pa.timestamp("us", "UTC"), "2000-01-01"),
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


def array_literal(keys: pa.Array) -> str:
    """Keys as the text of an array.

    >>> array_literal(pa.array([1, 2])), array_literal(pa.array(["a b", 'c"']))
    ('{1,2}', '{"a b","c\\\\""}')
    """
    if is_bytes(keys.type):
        return "{" + ",".join(f'"\\\\x{value.hex()}"' for value in keys.to_pylist()) + "}"
    texts = keys if pa.types.is_string(keys.type) else keys.cast(pa.string())
    if not pa.types.is_integer(keys.type):
        if pa.types.is_string(keys.type):
            texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = pc.binary_join_element_wise('"', texts, '"', "")
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return f"{{{pc.binary_join(whole, ',')[0].as_py()}}}"


def _elements(data: bytes, code: str) -> NDArray[Any]:
    """The values of an array without NULLs in binary form: (length, value) pairs after the header."""
    type_ = np.dtype(code)
    count = int.from_bytes(data[12:16])
    items = np.frombuffer(data, [("length", ">i4"), ("value", type_)], count, _HEADER)
    return items["value"].astype(type_.newbyteorder("="))


def _texts(lengths: NDArray[Any], data: bytes, type_: pa.DataType) -> pa.Array:
    """Texts that lie one after the other; a length of -1 is a NULL."""
    nulls = lengths < 0
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(np.where(nulls, 0, lengths), out=offsets[1:])
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    return pa.Array.from_buffers(type_, len(lengths), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
