"""Converts columns from the types of a file to those that the stream declares, and finds the rows that are dead.

Shared by csv, json and parquet: each passes arrays in the types of its format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.as_text import as_text
from eddyline.bound.types import MONTHS, sql_type
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.source import Chunk, Wanted, dead_rows
from eddyline.runtime.sources.text import Bad, cast_or_null, cast_text
from eddyline.runtime.staged_types import months


def convert(values: pa.Array, type_: pa.DataType) -> tuple[pa.Array, Bad | None]:
    """An array as `type_`, NULL where a value does not fit, and the mask of those rows (None: all fit)."""
    if values.type == type_:
        return values, None
    if pa.types.is_dictionary(values.type):
        return convert(values.dictionary_decode(), type_)
    if pa.types.is_dictionary(type_):
        plain, bad = convert(values, type_.value_type)
        return pc.cast(plain.dictionary_encode(), type_), bad
    if type_ == MONTHS and pa.types.is_fixed_size_binary(values.type):
        return months(values), None
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return cast_text(values, type_)
    return cast_or_null(lambda part: pc.cast(part, type_), values, type_)


def chunk_of(
    schema: pa.Schema,
    wanted: Wanted,
    raw: Mapping[str, pa.Array],
    rows: int,
    convert: Callable[[pa.Array, pa.DataType], tuple[pa.Array, Bad | None]] = convert,
    beside: Beside | None = None,
) -> Chunk:
    """The chunk of `raw` arrays, one for each wanted column, in the format's own types. Columns in `beside` have their
    declared types already."""
    if beside is not None:
        raw = {**raw, **beside.columns}
    arrays: list[pa.Array] = []
    bad: Bad = np.zeros(rows, dtype=np.bool_)
    reasons = pa.nulls(rows, pa.string())
    for name in wanted.columns:
        type_ = schema.field(name).type
        array, unreadable = (raw[name], None) if raw[name].type == type_ else convert(raw[name], type_)
        arrays.append(array)
        if unreadable is not None and name in wanted.needed:
            reasons = _explain(reasons, name, raw[name], type_, unreadable)
            bad |= unreadable
    fields = [pa.field(name, schema.field(name).type) for name in wanted.columns]
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    if not bad.any():
        return Chunk(batch)
    picked = np.flatnonzero(bad)
    text = pa.RecordBatch.from_arrays(
        [as_text(raw[n].take(picked)) for n in wanted.columns], names=list(wanted.columns)
    )
    why = reasons.take(picked)
    why = why if beside is None else beside.take(picked).told(why)
    return Chunk(batch.filter(pa.array(~bad)), dead_rows(schema, text, why))


def _explain(reasons: pa.Array, name: str, raw: pa.Array, type_: pa.DataType, bad: Bad) -> pa.Array:
    """The reasons with one added for each bad row that has none yet."""
    before, after = f"column {name}: '", f"' is not a value of type {sql_type(type_)}"
    text = pc.binary_join_element_wise(before, as_text(raw), after, "")
    return pc.coalesce(reasons, pc.if_else(pa.array(bad), text, pa.scalar(None, pa.string())))
