"""Values for which JSON has no notation, as the json sink writes them: bytes in base64, NaN and infinities by name,
maps as objects.

Columns of text are converted whole; values inside lists, structs and maps one by one.
"""

from __future__ import annotations

import base64
import binascii
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.runtime.sources.columns import convert
from eddyline.runtime.sources.text import Bad


def from_json(values: pa.Array, type_: pa.DataType) -> tuple[pa.Array, Bad | None]:
    """An array as `type_`, NULL where a value does not fit, and the mask of those rows (None: all fit)."""
    if not is_bytes(type_):
        return convert(values, type_)
    found = [_decoded(value) for value in values.to_pylist()]
    bad = np.array([value is False for value in found], dtype=np.bool_)
    array = pa.array([None if value is False else value for value in found], type_)
    return array, bad if bad.any() else None


def is_bytes(type_: pa.DataType) -> bool:
    """Whether values are bytes, and so written in base64."""
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(matches(type_) for matches in kinds)


def needs_care(type_: pa.DataType) -> bool:
    """Whether a nested type has inner values that Arrow does not read, or reads differently from how they are
    written."""
    if pa.types.is_map(type_):
        return True
    parts = [type_.field(i).type for i in range(type_.num_fields)] if pa.types.is_nested(type_) else []
    return any(needs_care(part) or is_bytes(part) or pa.types.is_date(part) for part in parts)


def inner(value: Any, type_: pa.DataType) -> Any:
    """A value of a nested type as pyarrow takes it; ValueError or TypeError if it does not fit."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return [(inner(key, type_.key_type), inner(item, type_.item_type)) for key, item in dict(value).items()]
    if pa.types.is_struct(type_):
        return {field.name: inner(dict(value).get(field.name), field.type) for field in type_}
    if pa.types.is_nested(type_):
        return [inner(item, type_.field(0).type) for item in value]
    if is_bytes(type_):
        return base64.b64decode(value, validate=True)
    if pa.types.is_floating(type_):
        return float(value)
    if pa.types.is_decimal(type_):
        return Decimal(str(value))
    if isinstance(value, str) and pa.types.is_date(type_):
        return date.fromisoformat(value)
    if isinstance(value, str) and pa.types.is_timestamp(type_):
        return datetime.fromisoformat(value)
    return value


def _decoded(text: str | None) -> bytes | bool | None:
    """The bytes of a text, None for None, False if the text is not base64."""
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
