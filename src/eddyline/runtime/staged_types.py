"""Types of rows in parquet files that only we read: rows that wait for a sink, and rows that a program hands over.

Parquet has no intervals with months; they are stored as 16 bytes each, as Arrow has them in memory.
"""

from __future__ import annotations

import pyarrow as pa

from eddyline.bound.types import MONTHS

_BYTES = pa.binary(16)


def storable(table: pa.Table) -> pa.Table:
    """The rows in types that parquet has."""
    for at, field in enumerate(table.schema):
        if field.type == MONTHS:
            chunks = [_seen_as(chunk, _BYTES) for chunk in table.column(at).chunks]
            table = table.set_column(at, field.with_type(_BYTES), pa.chunked_array(chunks, _BYTES))
    return table


def restored(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows of a stored table in the types that they had: parquet has no timestamps in seconds, for example.

    >>> rows = pa.table({"m": pa.array([(1, 2, 3), None], MONTHS)}).slice(1)
    >>> restored(storable(rows), rows.schema) == rows
    True
    """
    columns = [_restored(column, field.type) for column, field in zip(table.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _restored(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    if type_ == MONTHS and column.type == _BYTES:
        return pa.chunked_array([months(chunk) for chunk in column.chunks], MONTHS)
    if pa.types.is_dictionary(type_) and not pa.types.is_dictionary(column.type):
        column = column.cast(type_.value_type).dictionary_encode()
    return column.cast(type_)


def months(stored: pa.Array) -> pa.Array:
    """Intervals with months, of 16 bytes each."""
    return _seen_as(stored, MONTHS)


def _seen_as(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same bytes as values of another type."""
    return pa.Array.from_buffers(type_, len(values), values.buffers(), offset=values.offset)
