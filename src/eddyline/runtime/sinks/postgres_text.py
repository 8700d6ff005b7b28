"""Rows as the text that PostgreSQL's COPY reads (csv), column by column."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from eddyline.bound.as_text import as_text
from eddyline.bound.types import is_moment
from eddyline.runtime.sinks.json_lines import json_values
from eddyline.runtime.sinks.table_types import TableTypes, fitted
from eddyline.runtime.values.json import is_bytes

TYPES = TableTypes("postgres", times=True, intervals=True, smallest=pa.int16())
"""PostgreSQL has no integer of one byte."""

_T = pa.types
_NAMES = {
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}


def database_type(type_: pa.DataType) -> str:
    """The type of a column in PostgreSQL.

    >>> database_type(pa.int64()), database_type(pa.decimal128(10, 2)), database_type(pa.list_(pa.int64()))
    ('bigint', 'numeric(10,2)', 'jsonb')
    """
    if _T.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    if _T.is_duration(type_) or _T.is_interval(type_):
        return "interval"
    return "jsonb" if _T.is_nested(type_) else _NAMES[type_]


def copy_text(batch: pa.RecordBatch, schema: pa.Schema) -> bytes:
    r"""Rows as lines. A NULL is nothing, an empty text is in quotes.

    >>> rows = pa.record_batch({"a": [1, None], "b": ["", 'x"y']})
    >>> copy_text(rows, rows.schema)
    b'1,""\n,"x""y"\n'
    """
    rows = fitted(batch, schema)
    columns = [_column(column) for column in rows.columns]
    out = io.BytesIO()
    options = pcsv.WriteOptions(include_header=False)
    pcsv.write_csv(pa.RecordBatch.from_arrays(columns, names=rows.schema.names), out, options)
    return out.getvalue()


def _column(column: pa.Array) -> pa.Array:
    """A column of a type that Arrow writes as PostgreSQL reads it."""
    type_ = column.type
    if _T.is_nested(type_):
        return json_values(column)
    if (_T.is_date(type_) or is_moment(type_)) and pc.any(pc.less(pc.year(column), 1)).as_py():
        return pc.replace_substring_regex(as_text(column), r"^(.*) \(BC\)(.*)$", r"\1\2 BC")
    if is_bytes(type_):
        return pa.array([None if v is None else f"\\x{v.hex()}" for v in column.to_pylist()], pa.string())
    if _T.is_duration(type_):
        micros = pc.cast(pc.cast(column, pa.duration("us"), safe=False), pa.int64())
        return pc.binary_join_element_wise(pc.cast(micros, pa.string()), " microseconds", "")
    if _T.is_interval(type_):
        return pa.array([None if v is None else _interval(v) for v in column.to_pylist()], pa.string())
    return column


def _interval(value: Any) -> str:
    """Months, days and nanoseconds as text."""
    return f"{value.months} months {value.days} days {value.nanoseconds // 1000} microseconds"
