"""Record batches as lines of JSON, column by column: Python handles single rows only for nested values and rare
characters.

Numbers and booleans are written as such, everything else as strings: bytes in base64, and NaN, Infinity and -Infinity,
since JSON has no such numbers. A map is an object. NULL is null.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.as_text import as_text
from eddyline.runtime.sources.json_values import is_bytes

_NO_NUMBERS = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def lines(batch: pa.RecordBatch) -> pa.Array:
    """One string for each row.

    >>> lines(pa.record_batch({"a": [1, None], "b": ["x", 'say "y"']})).to_pylist()
    ['{"a":1,"b":"x"}', '{"a":null,"b":"say \\\\"y\\\\""}']
    """
    parts: list[Any] = []
    for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts += [
            ("," if place else "{") + json.dumps(name, ensure_ascii=False) + ":",
            pc.coalesce(json_values(column), "null"),
        ]
    if not parts:
        return pa.array(["{}"] * batch.num_rows, pa.string())
    return pc.binary_join_element_wise(*parts, "}", "")


def json_values(column: pa.Array) -> pa.Array:
    """Each value as JSON text, NULL as NULL."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return json_values(column.dictionary_decode())
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return pc.cast(column, pa.string())
    if pa.types.is_floating(type_):
        text = pc.cast(column, pa.string())
        for written, name in _NO_NUMBERS.items():
            text = pc.if_else(pc.equal(text, written), f'"{name}"', text)
        return text
    if pa.types.is_nested(type_) or is_bytes(type_):
        plain = (_plain(value, type_) for value in column.to_pylist())
        return pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in plain], pa.string())
    return _quoted(as_text(column))


def _quoted(text: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(text, r"[\x00-\x1f]")
    if pc.any(odd).as_py():
        return pa.array(
            [None if v is None else json.dumps(v, ensure_ascii=False) for v in text.to_pylist()], pa.string()
        )
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")


def writable(type_: pa.DataType) -> bool:
    """Whether JSON can hold values of this type: keys of objects must be text."""
    if pa.types.is_map(type_) and not pa.types.is_string(type_.key_type):
        return False
    return not pa.types.is_nested(type_) or all(writable(type_.field(i).type) for i in range(type_.num_fields))


def _plain(value: Any, type_: pa.DataType) -> Any:
    """A value as JSON has it: numbers, texts, lists and dictionaries."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {str(key): _plain(item, type_.item_type) for key, item in value}
    if pa.types.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    if pa.types.is_nested(type_):
        return [_plain(item, type_.field(0).type) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float):
        return value if math.isfinite(value) else _NO_NUMBERS[str(value)]
    if pa.types.is_duration(type_) or pa.types.is_interval(type_):
        return as_text(pa.array([value], type_))[0].as_py()
    return value if isinstance(value, bool | int) else str(value)
