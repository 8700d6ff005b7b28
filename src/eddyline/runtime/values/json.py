"""Values of JSON as the declared types: a number, a string or a boolean is read as its text would be, also inside
lists, structs and maps. Whatever else stands where text is declared keeps its text: `{"a": 1.50}` is that VARCHAR.

Bytes are in base64, as the json sink writes them. NaN, Infinity and -Infinity are numbers, with and without quotes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed lacks it
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.bound.nested import Result
from eddyline.bound.types import is_list
from eddyline.runtime.values.arrow import convert
from eddyline.runtime.values.python import from_python
from eddyline.runtime.values.text import cast_text

_SKIP = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).scan_once  # type: ignore[attr-defined]
_SPACE = re.compile(r"[ \t\n\r]*")


def from_json(values: pa.Array, type_: pa.DataType) -> Result:
    """A column that Arrow has read from JSON as `type_`, NULL where a value does not fit, and the mask of those rows
    (None: all fit)."""
    return convert(values, type_, _of_text)


def from_json_values(values: Sequence[Any], type_: pa.DataType) -> Result:
    """The same for values as `value_of` gives them."""
    return from_python(values, type_, _leaf)


def is_bytes(type_: pa.DataType) -> bool:
    """Whether values are bytes, and so written in base64."""
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(matches(type_) for matches in kinds)


def value_of(text: str, type_: pa.DataType) -> Any:
    """A text of JSON taken apart as far as the type goes: lists, dictionaries with the fields of a struct or the keys
    of a map, and texts. ValueError if it is no JSON.

    >>> value_of('{"a": {"x": 1.50}, "b": [1, "2"], "c": 3}', pa.struct({"a": pa.string(), "b": pa.list_(pa.int8())}))
    {'a': '{"x": 1.50}', 'b': ['1', '2']}
    """
    value, end = _value(text, _after_space(text, 0), type_)
    if _after_space(text, end) != len(text):
        raise ValueError(f"extra data at character {end + 1}")
    return value


def _value(text: str, at: int, type_: pa.DataType) -> tuple[Any, int]:
    """The value that begins at a place, and the place behind it."""
    first = text[at : at + 1]
    if first == '"':
        value, end = scanstring(text, at + 1, True)
        return value, end
    if first == "[" and is_list(type_):
        return _list(text, at + 1, type_.value_type)
    if first == "{" and pa.types.is_struct(type_):
        return _object(text, at + 1, {field.name: field.type for field in type_}, None)
    if first == "{" and pa.types.is_map(type_):
        return _object(text, at + 1, {}, type_.item_type)
    try:
        value, end = _SKIP(text, at)
    except StopIteration:
        raise ValueError(f"no value at character {at + 1}") from None
    return None if value is None else text[at:end], end


def _list(text: str, at: int, type_: pa.DataType) -> tuple[list[Any], int]:
    values: list[Any] = []
    at = _after_space(text, at)
    while text[at : at + 1] != "]" or values:
        value, at = _value(text, at, type_)
        values.append(value)
        at = _after_space(text, at)
        if text[at : at + 1] == "]":
            break
        at = _after_space(text, _past(text, at, ","))
    return values, at + 1


def _object(text: str, at: int, types: dict[str, pa.DataType], others: pa.DataType | None) -> tuple[Any, int]:
    """The members with one of these types, or with the type of all others, and the place behind the object. Of members
    of one name the last counts."""
    values: dict[str, Any] = {}
    at, first = _after_space(text, at), True
    while text[at : at + 1] != "}" or not first:
        name, at = scanstring(text, _past(text, at, '"'), True)
        at = _after_space(text, _past(text, _after_space(text, at), ":"))
        type_ = types.get(name, others)
        value, at = _value(text, at, pa.null() if type_ is None else type_)
        if type_ is not None:
            values[name] = value
        at, first = _after_space(text, at), False
        if text[at : at + 1] == "}":
            break
        at = _after_space(text, _past(text, at, ","))
    return values, at + 1


def _past(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign} at character {at + 1}")
    return at + 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _leaf(values: Sequence[Any], type_: pa.DataType) -> Result:
    texts, odd = texts_of(values)
    array, bad = _of_text(texts, type_)
    return array, bad if odd is None else odd if bad is None else bad | odd


def texts_of(values: Sequence[Any]) -> Result:
    """Texts as a column, NULL where one is no Unicode, and the mask of those rows."""
    try:
        return pa.array(values, pa.string()), None
    except UnicodeEncodeError:  # half of a surrogate pair, which \\ud800 may write
        odd = np.array([value is not None and not _is_unicode(value) for value in values])
        return pa.array([None if wrong else v for v, wrong in zip(values, odd, strict=True)], pa.string()), odd


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_text(values: pa.Array, type_: pa.DataType) -> Result:
    if not is_bytes(type_):
        return cast_text(values, type_)
    found = [_decoded(value) for value in values.to_pylist()]
    bad = np.array([value is False for value in found], dtype=np.bool_)
    array = pa.array([None if value is False else value for value in found], type_)
    return array, bad if bad.any() else None


def _decoded(text: str | None) -> bytes | bool | None:
    """The bytes of a text, None for None, False if the text is not base64."""
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
