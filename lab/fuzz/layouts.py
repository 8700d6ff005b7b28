"""The same values in other Arrow layouts: sliced, dictionary-encoded, views, at odd addresses, others below NULLs.

A result must not depend on the layout of its arguments. Each function of LAYOUTS gives an array with the same values,
or the array itself where its type has no such layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Layout = Callable[[pa.Array], pa.Array]


def sliced(array: pa.Array) -> pa.Array:
    """A part of a longer array that begins at an odd place."""
    before = pa.concat_arrays([array.slice(0, 3), pa.nulls(3, array.type)]).slice(0, 3)
    return pa.concat_arrays([before, array, array.slice(0, 2)]).slice(3, len(array))


def unaligned(array: pa.Array) -> pa.Array:
    """Buffers that begin at odd addresses."""
    return _with_buffers(array, [None if b is None else _moved(b) for b in array.buffers()])


def below_nulls(array: pa.Array) -> pa.Array:
    """Other values of the array below its NULLs."""
    known = array.drop_null()
    if pa.types.is_nested(array.type) or not array.null_count or not len(known):
        return array
    places = np.cumsum(np.asarray(array.is_valid())) - 1
    filled = known.take(pa.array(np.where(np.asarray(array.is_valid()), places, len(known) - 1)))
    return _with_buffers(filled, [array.is_valid().buffers()[1], *filled.buffers()[1:]])


def dictionary(array: pa.Array) -> pa.Array:
    """Codes of a dictionary that has a NULL, a value twice and one that no row has."""
    if pa.types.is_nested(array.type):
        return array
    coded = array.dictionary_encode(null_encoding="encode")
    known = coded.dictionary
    extra = pa.concat_arrays([known, known.slice(0, 1), pa.nulls(1, array.type)])
    codes = np.asarray(coded.indices).astype(np.int32)
    codes[len(codes) // 2 :][codes[len(codes) // 2 :] == 0] = len(known)
    return pa.DictionaryArray.from_arrays(pa.array(codes), extra)


def small_dictionary(array: pa.Array) -> pa.Array:
    """Codes of one byte, NULL where the value is."""
    if pa.types.is_nested(array.type) or pc.count_distinct(array).as_py() > 100:
        return array
    coded = array.dictionary_encode()
    return pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int8()), coded.dictionary)


def large(array: pa.Array) -> pa.Array:
    """Offsets of 64 bits."""
    return array.cast(
        _replaced(array.type, {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}, pa.large_list)
    )


def view(array: pa.Array) -> pa.Array:
    """Views of strings and lists."""
    type = _replaced(array.type, {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}, pa.list_view)
    return pa.array(array.to_pylist(), type) if pa.types.is_nested(type) else array.cast(type)


def width(array: pa.Array) -> pa.Array:
    """Decimals of 32 or 64 bits, dates of 64, durations in nanoseconds."""
    if pa.types.is_duration(array.type):
        return array.cast(pa.duration("ns"))
    if pa.types.is_date32(array.type):
        return array.cast(pa.date64())
    if not pa.types.is_decimal128(array.type) or array.type.precision > 18:
        return array
    make = pa.decimal32 if array.type.precision <= 9 else pa.decimal64
    return array.cast(make(array.type.precision, array.type.scale))


LAYOUTS: Mapping[str, Layout] = {
    "sliced": sliced,
    "unaligned": unaligned,
    "values below NULLs": below_nulls,
    "dictionary": dictionary,
    "small dictionary": small_dictionary,
    "large": large,
    "view": view,
    "another width": width,
}


def _replaced(
    type: pa.DataType, plain: Mapping[pa.DataType, pa.DataType], list_of: Callable[[pa.Field], pa.DataType]
) -> pa.DataType:
    """A type with strings, bytes and lists, also those inside, replaced by other layouts of them."""
    if pa.types.is_struct(type):
        return pa.struct([f.with_type(_replaced(f.type, plain, list_of)) for f in type])
    if pa.types.is_list(type):
        return list_of(type.value_field.with_type(_replaced(type.value_type, plain, list_of)))
    return plain.get(type, type)


def _moved(buffer: pa.Buffer) -> pa.Buffer:
    return pa.py_buffer(b"\0" + buffer.to_pybytes()).slice(1)


def _with_buffers(array: pa.Array, buffers: list[pa.Buffer | None]) -> pa.Array:
    if pa.types.is_nested(array.type) or pa.types.is_dictionary(array.type):
        return array
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)
