"""The types in which the engine keeps and ships values of columns."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc


@lru_cache(maxsize=4096)
def kept(type: pa.DataType) -> pa.DataType:
    """The type in which the engine keeps and ships values of a column: layouts that Arrow cannot filter or sort become
    plain ones, and dictionary codes get room to grow; inside nested types dictionaries are decoded."""
    t = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return kept(type.storage_type)
    if t.is_dictionary(type):
        return pa.dictionary(pa.int32(), _kept_inside(type.value_type), type.ordered)
    return _kept_inside(type)


def _kept_inside(type: pa.DataType) -> pa.DataType:
    t = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return _kept_inside(type.storage_type)
    if t.is_dictionary(type) or t.is_run_end_encoded(type):
        return _kept_inside(type.value_type)
    if t.is_string_view(type):
        return pa.string()
    if t.is_binary_view(type):
        return pa.binary()
    if t.is_struct(type):
        return pa.struct([f.with_type(_kept_inside(f.type)) for f in type])
    if t.is_map(type):
        return pa.map_(_kept_inside(type.key_type), type.item_field.with_type(_kept_inside(type.item_type)))
    if t.is_list(type) or t.is_list_view(type):
        return pa.list_(type.value_field.with_type(_kept_inside(type.value_type)))
    if t.is_large_list(type) or t.is_large_list_view(type):
        return pa.large_list(type.value_field.with_type(_kept_inside(type.value_type)))
    if t.is_fixed_size_list(type):
        return pa.list_(type.value_field.with_type(_kept_inside(type.value_type)), type.list_size)
    return type


def as_kept(array: pa.Array) -> pa.Array:
    """The values of a column in the type of `kept`."""
    wanted = kept(array.type)
    if array.type == wanted:
        return array
    if isinstance(array, pa.ExtensionArray):
        return as_kept(array.storage)
    if pa.types.is_dictionary(array.type):
        indices, dictionary = array.indices.cast(pa.int32()), as_kept(array.dictionary)
        if pa.types.is_dictionary(dictionary.type):
            dictionary = dictionary.dictionary_decode()
        return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=wanted.ordered)
    if pa.types.is_run_end_encoded(array.type):
        return as_kept(pc.run_end_decode(array))
    try:
        return array.cast(wanted)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.array(array.to_pylist(), wanted)
