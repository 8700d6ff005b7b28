"""Record batches as lines of JSON, column by column: Python handles single rows only for bytes and rare characters.

Numbers and booleans are written as such, everything else as strings: bytes in base64, and NaN, Infinity and -Infinity,
since JSON has no such numbers. A map is an object. NULL is null.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound.as_text import as_text
from eddyline.bound.nested import entries, joined, valid_rows
from eddyline.runtime.values.json import is_bytes

_ODD = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"', "-0": "-0.0"}
"""How floats are written that are no numbers in JSON, or that a reader would take for a whole number without a sign."""


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
        for written, odd in _ODD.items():
            text = pc.if_else(pc.equal(text, written), odd, text)
        return text
    if pa.types.is_nested(type_):
        return _nested(column)
    if is_bytes(type_):
        coded = (None if v is None else base64.b64encode(v).decode("ascii") for v in column.to_pylist())
        return pa.array([None if v is None else f'"{v}"' for v in coded], pa.string())
    return _quoted(as_text(column))


def _nested(column: pa.Array) -> pa.Array:
    """Lists as arrays, structs and maps as objects."""
    valid = valid_rows(column)
    if pa.types.is_struct(column.type):
        parts: list[Any] = []
        for name, values in zip(column.type.names, column.flatten(), strict=True):
            parts += [(", " if parts else "{") + json.dumps(name, ensure_ascii=False) + ": "]
            parts += [pc.coalesce(json_values(values), "null")]
        made = pc.binary_join_element_wise(*parts, "}", "") if parts else pa.array(["{}"] * len(column))
    else:
        lengths, inner = entries(column)
        texts = [pc.coalesce(json_values(part), "null") for part in inner]
        if pa.types.is_map(column.type):
            made = _between("{", joined(pc.binary_join_element_wise(*texts, ": "), lengths), "}")
        else:
            made = _between("[", joined(texts[0], lengths), "]")
    return made if valid is None else pc.if_else(pa.array(valid), made, pa.scalar(None, pa.string()))


def _between(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(before, texts, after, "")


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
