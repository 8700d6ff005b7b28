"""Values of a client as columns of the declared types. A value that does not fit refuses its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.as_text import as_text
from eddyline.bound.types import sql_type
from eddyline.errors import said
from eddyline.runtime.access.client import KeysRefused, TableRefused
from eddyline.runtime.values.arrow import convert
from eddyline.runtime.values.json import from_json_values
from eddyline.runtime.values.python import Leaf, from_python, plain

_FEW = 32
"""Python compares fewer rows and keys than these faster than Arrow does."""
_NAN = float("nan")
"""The one NaN, so that keys that are NaN are found in sets and dictionaries, which compare objects first."""


def fitted(raw: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Arrays in types of their own as a record batch of this schema; KeysRefused if a value does not fit."""
    return pa.RecordBatch.from_arrays([_fit(field, raw[field.name]) for field in schema], schema=schema)


def fitted_batch(rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of this schema; TableRefused if one is missing, KeysRefused if a value does not fit."""
    names = rows.schema.names
    for field in schema:
        if names.count(field.name) != 1:
            raise TableRefused(
                f"the rows have {'no' if field.name not in names else 'more than one'} column {field.name}"
            )
    return fitted({name: _whole(rows.column(name)) for name in schema.names}, schema)


def fitted_values(columns: Mapping[str, Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Lists of Python values as a record batch of this schema; KeysRefused if a value does not fit."""
    return pa.RecordBatch.from_arrays([_array(field, columns[field.name], plain) for field in schema], schema=schema)


def fitted_json(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, keys: pa.RecordBatch) -> pa.RecordBatch:
    """Objects of JSON, taken apart by `value_of`, as a record batch of this schema; KeysRefused if a value does not
    fit. In a column of the key an object without a value has that of the only key."""
    arrays = []
    for field in schema:
        array = _array(field, [row.get(field.name) for row in rows], from_json_values)
        if keys.num_rows == 1 and field.name in keys.schema.names:
            lacks = pa.array([field.name not in row for row in rows], pa.bool_())
            array = pc.if_else(lacks, keys.column(field.name)[0].cast(field.type), array)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def only(rows: pa.RecordBatch, keys: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that have one of these keys. A database may find more: its comparison may ignore case, or spaces.
    No key has a NULL; NumPy would turn the other integers of a column with NULLs into floats."""
    for name in keys.schema.names:
        if rows.column(name).null_count:
            rows = rows.filter(rows.column(name).is_valid())
    found = having(rows, keys)
    return rows if found.true_count == rows.num_rows else rows.filter(found)


def having(rows: pa.RecordBatch, keys: pa.RecordBatch) -> pa.BooleanArray:
    """Which rows have one of these keys. No value of a key is NULL."""
    names = keys.schema.names
    if len(names) == 1 and keys.num_rows + rows.num_rows > _FEW:
        return pc.is_in(_plain(rows.column(names[0])), value_set=_plain(keys.column(0)))
    asked = set(zip(*values_of(keys), strict=True))
    mine = zip(*values_of(rows.select(names)), strict=True)
    return pa.array([key in asked for key in mine], pa.bool_())


def values_of(keys: pa.RecordBatch) -> list[list[Any]]:
    """The columns as lists of values that can be hashed; equal keys have equal values."""
    return [_values(_plain(column).to_numpy(zero_copy_only=False)) for column in keys.columns]


def _values(keys: NDArray[Any]) -> list[Any]:
    values: list[Any] = keys.tolist()
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        return [_NAN if value != value else value for value in values]
    return values


def _plain(keys: pa.Array) -> pa.Array:
    """-0.0 as 0.0, which is the same key."""
    return pc.add(keys, pa.scalar(0, keys.type)) if pa.types.is_floating(keys.type) else keys


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _fit(field: pa.Field, values: pa.Array) -> pa.Array:
    try:
        array, bad = convert(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise TableRefused(f"column {field.name} is not of type {sql_type(field.type)} ({said(error)})") from None
    if bad is not None:
        first = values.slice(int(np.argmax(bad)), 1)
        raise misfit(field, as_text(first)[0].as_py())
    return array


def _array(field: pa.Field, values: Sequence[Any], leaf: Leaf) -> pa.Array:
    array, bad = from_python(values, field.type, leaf)
    if bad is not None:
        wrong = values[int(np.argmax(bad))]
        text = wrong.decode(errors="replace") if isinstance(wrong, bytes) else str(wrong)
        raise misfit(field, None if pa.types.is_nested(field.type) else text.encode(errors="replace").decode())
    return array


def misfit(field: pa.Field, text: str | None) -> KeysRefused:
    """A value that does not fit its column."""
    value = "a value" if text is None else f"'{text}'" if len(text) <= 60 else f"'{text[:60]}...'"
    return KeysRefused(f"column {field.name}: {value} is not a value of type {sql_type(field.type)}")
