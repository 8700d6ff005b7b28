"""Record batches as lines of JSON, column by column: no Python step per row but for nested values and odd characters.

Numbers and booleans are written as such, everything else as strings; NaN and infinities too, since JSON has none.
NULL is null.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.runtime.sources.source import as_text


def lines(batch: pa.RecordBatch) -> pa.Array:
    """One string for each row.

    >>> lines(pa.record_batch({"a": [1, None], "b": ["x", 'say "y"']})).to_pylist()
    ['{"a":1,"b":"x"}', '{"a":null,"b":"say \\\\"y\\\\""}']
    """
    parts: list[Any] = []
    for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts += [
            ("," if place else "{") + json.dumps(name, ensure_ascii=False) + ":",
            pc.coalesce(_values(column), "null"),
        ]
    if not parts:
        return pa.array(["{}"] * batch.num_rows, pa.string())
    return pc.binary_join_element_wise(*parts, "}", "")


def _values(column: pa.Array) -> pa.Array:
    """Each value as JSON text, NULL as NULL."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _values(column.dictionary_decode())
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return pc.cast(column, pa.string())
    if pa.types.is_floating(type_):
        finite = pc.is_finite(column)
        text = pc.cast(column, pa.string())
        return pc.if_else(finite, text, pc.binary_join_element_wise('"', text, '"', ""))
    if pa.types.is_nested(type_):
        return pa.array([None if v is None else json.dumps(_plain(v)) for v in column.to_pylist()], pa.string())
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return pa.array([None if v is None else json.dumps(_plain(v)) for v in column.to_pylist()], pa.string())
    return _quoted(as_text(column))


def _quoted(text: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(text, r"[\x00-\x1f]")
    if pc.any(odd).as_py():
        return pa.array(
            [None if v is None else json.dumps(v, ensure_ascii=False) for v in text.to_pylist()], pa.string()
        )
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")


def _plain(value: Any) -> Any:
    """A nested value in terms of JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
