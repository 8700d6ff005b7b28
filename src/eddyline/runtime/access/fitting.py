"""Values of a client as columns of the declared types. A row with a value that does not fit is dead, and no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.as_text import as_text
from eddyline.bound.kept_types import as_kept
from eddyline.bound.nested import either
from eddyline.bound.types import sql_type
from eddyline.engine.lookups.look_up import DeadRows
from eddyline.errors import said
from eddyline.runtime.access.client import FoundRows, TableRefused
from eddyline.runtime.sources.columns import Converted, bad_rows, told
from eddyline.runtime.values.arrow import convert
from eddyline.runtime.values.json import from_json_values
from eddyline.runtime.values.python import Leaf, from_python, plain
from eddyline.runtime.values.text import is_utf8

_FEW = 32
"""Python compares fewer rows and keys than these faster than Arrow does."""
_NAN = float("nan")
"""The one NaN, so that keys that are NaN are found in sets and dictionaries, which compare objects first."""


@dataclass(frozen=True)
class Marked:
    """A column with values that Arrow does not have, such as an infinite time. They are NULL, and `odd` has their
    texts; it is NULL elsewhere."""

    values: pa.Array
    odd: pa.Array


def fitted(raw: Mapping[str, pa.Array | Marked], schema: pa.Schema) -> FoundRows:
    """Arrays in types of their own as rows of this schema; TableRefused if no value of a type can fit."""
    return _found({field.name: _fit(field, raw[field.name]) for field in schema}, schema)


def decoded(values: pa.Array) -> pa.Array | Marked:
    """Bytes as text in UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        raw = values.to_pylist()
        good = [value is None or is_utf8(value) for value in raw]
        texts = pa.array([v if g else None for v, g in zip(raw, good, strict=True)], pa.binary()).cast(pa.string())
        odd = [None if g else v.decode(errors="replace") for v, g in zip(raw, good, strict=True)]
        return Marked(texts, pa.array(odd, pa.string()))


def fitted_batch(rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> FoundRows:
    """The columns of this schema; TableRefused if one is missing."""
    return fitted(columns_of(rows, schema.names), schema)


def columns_of(rows: pa.RecordBatch | pa.Table, names: Sequence[str]) -> dict[str, pa.Array]:
    """The columns with these names; TableRefused if one is missing."""
    for name in names:
        if rows.schema.names.count(name) != 1:
            raise TableRefused(
                f"the rows have {'no' if name not in rows.schema.names else 'more than one'} column {name}"
            )
    return {name: _whole(rows.column(name)) for name in names}


def fitted_values(columns: Mapping[str, Sequence[Any]], schema: pa.Schema) -> FoundRows:
    """Lists of Python values as rows of this schema."""
    return _found({field.name: _read(field, columns[field.name], plain) for field in schema}, schema)


def fitted_json(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, keys: pa.RecordBatch) -> FoundRows:
    """Objects of JSON, taken apart by `value_of`, as rows of this schema. In a column of the key an object without a
    value has that of the only key."""
    columns = {}
    for field in schema:
        column = _read(field, [row.get(field.name) for row in rows], from_json_values)
        if keys.num_rows == 1 and field.name in keys.schema.names:
            lacks = pa.array([field.name not in row for row in rows], pa.bool_())
            array = pc.if_else(lacks, keys.column(field.name)[0].cast(field.type), column.values)
            column = replace(column, values=array)
        columns[field.name] = column
    return _found(columns, schema)


def _found(columns: Mapping[str, Converted], schema: pa.Schema) -> FoundRows:
    rows = pa.RecordBatch.from_arrays([columns[field.name].values for field in schema], schema=schema)
    bad = bad_rows(columns, schema.names, rows.num_rows)
    if bad is None:
        return FoundRows(rows)
    texts, reasons = told(columns, schema, schema.names, bad)
    return FoundRows(rows.filter(pa.array(~bad)), DeadRows(rows.filter(pa.array(bad)), texts, reasons))


def only(rows: pa.RecordBatch, keys: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that have one of these keys. A database may find more: its comparison may ignore case, or spaces.
    No key has a NULL; NumPy would turn the other integers of a column with NULLs into floats."""
    for name in keys.schema.names:
        if rows.column(name).null_count:
            rows = rows.filter(rows.column(name).is_valid())
    found = having(rows, keys)
    return rows if found.true_count == rows.num_rows else rows.filter(found)


def only_dead(dead: DeadRows | None, keys: pa.RecordBatch) -> DeadRows | None:
    """The same of rows that cannot be read. One whose key cannot be read stays: it was the answer to some key."""
    if dead is None:
        return None
    unknown = np.zeros(dead.rows.num_rows, np.bool_)
    for name in keys.schema.names:
        unknown |= np.asarray(dead.rows.column(name).is_null())
    keep = unknown.copy()
    keep[~unknown] = np.asarray(having(dead.rows.filter(pa.array(~unknown)), keys))
    return dead.having(keep)


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


def _fit(field: pa.Field, values: pa.Array | Marked) -> Converted:
    given, odd = (values.values, values.odd) if isinstance(values, Marked) else (values, None)
    try:
        array, bad = convert(given, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise TableRefused(f"column {field.name} is not of type {sql_type(field.type)} ({said(error)})") from None
    if odd is not None:
        bad = either(bad, np.asarray(odd.is_valid()))

    def texts(rows: NDArray[np.int64]) -> pa.Array:
        found = as_text(as_kept(given).take(pa.array(rows)))
        return found if odd is None else pc.coalesce(odd.take(pa.array(rows)), found)

    return Converted(array, bad, texts)


def _read(field: pa.Field, values: Sequence[Any], leaf: Leaf) -> Converted:
    array, bad = from_python(values, field.type, leaf)
    return Converted(array, bad, lambda rows: pa.array([_shown(values[row]) for row in rows.tolist()], pa.string()))


def _shown(value: Any) -> str | None:
    """A value as text that any reader takes."""
    if value is None:
        return None
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text.encode(errors="replace").decode()
