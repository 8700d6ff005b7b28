"""The types in which the engine keeps and ships values of columns."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from eddyline.bound.nested import is_alike, rebuilt
from eddyline.bound.types import is_list, is_number


@lru_cache(maxsize=4096)
def kept(type: pa.DataType) -> pa.DataType:
    """The type in which the engine keeps and ships values of a column: layouts that Arrow cannot filter or sort become
    plain ones. Dictionaries of text, bytes and numbers stay, and their codes get room to grow; all others are decoded,
    and so are those inside nested types."""
    if isinstance(type, pa.BaseExtensionType):
        return kept(type.storage_type)
    if pa.types.is_run_end_encoded(type):
        return kept(type.value_type)
    if pa.types.is_dictionary(type):
        values = _inside(type.value_type)
        return pa.dictionary(pa.int32(), values, type.ordered) if _stays_coded(values) else values
    return _inside(type)


def _inside(type: pa.DataType) -> pa.DataType:
    t = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return _inside(type.storage_type)
    if t.is_dictionary(type) or t.is_run_end_encoded(type):
        return _inside(type.value_type)
    if t.is_string_view(type):
        return pa.string()
    if t.is_binary_view(type):
        return pa.binary()
    if t.is_struct(type):
        return pa.struct([f.with_type(_inside(f.type)) for f in type])
    if t.is_map(type):
        return pa.map_(_inside(type.key_type), type.item_field.with_type(_inside(type.item_type)))
    if t.is_fixed_size_list(type):
        return pa.list_(type.value_field.with_type(_inside(type.value_type)), type.list_size)
    if is_list(type):
        large = t.is_large_list(type) or t.is_large_list_view(type)
        return (pa.large_list if large else pa.list_)(type.value_field.with_type(_inside(type.value_type)))
    return type


def _stays_coded(values: pa.DataType) -> bool:
    t = pa.types
    texts = (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary, t.is_fixed_size_binary)
    return is_number(values) or any(matches(values) for matches in texts)


def as_kept(array: pa.Array) -> pa.Array:
    """The values of a column in the type of `kept`."""
    return _as(array, kept(array.type))[0]


def _as(array: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, None]:
    if array.type == wanted:
        return array, None
    if isinstance(array, pa.ExtensionArray):
        return _as(array.storage, wanted)
    if pa.types.is_run_end_encoded(array.type):
        rows = np.searchsorted(np.asarray(array.run_ends), array.offset + np.arange(len(array)), side="right")
        return _as(array.values, wanted)[0].take(pa.array(rows)), None
    if pa.types.is_dictionary(array.type):
        if pa.types.is_dictionary(wanted):
            codes, words = array.indices.cast(pa.int32()), _as(array.dictionary, wanted.value_type)[0]
            return pa.DictionaryArray.from_arrays(codes, words, ordered=wanted.ordered), None
        return _as(array.dictionary, wanted)[0].take(array.indices), None
    if is_alike(array.type, wanted):
        return rebuilt(array, wanted, _as)[0], None
    return array.cast(wanted), None
