"""Lists, structs and maps taken apart and put together again, whole columns at a time.

`rebuilt` applies a function to the plain columns inside a nested one. A value that the function refuses makes NULL of
its own row only, however deep it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.types import is_list

Bad: TypeAlias = NDArray[np.bool_]
"""The rows whose value was refused."""
Result: TypeAlias = tuple[pa.Array, Bad | None]
"""The values, NULL where one was refused, and the mask of those rows (None: none was refused)."""
Leaf: TypeAlias = Callable[[pa.Array, pa.DataType], Result]


def rebuilt(values: pa.Array, type_: pa.DataType, leaf: Leaf) -> Result:
    """The values as `type_`, with `leaf` applied to the columns inside that are not nested alike. Fields of a struct
    are found by name; a field that the values lack is NULL."""
    here = values.type
    t = pa.types
    if t.is_map(here) and t.is_map(type_):
        lengths, (keys, items) = entries(values)
        key, bad_key = leaf(keys, type_.key_type)
        item, bad_item = leaf(items, type_.item_type)
        bad_key = either(bad_key, key.is_null().to_numpy(zero_copy_only=False) if key.null_count else None)
        return in_maps(lengths, valid_rows(values), (key, bad_key), (item, bad_item), type_)
    if is_list(here) and is_list(type_):
        lengths, (inner,) = entries(values)
        return in_lists(lengths, valid_rows(values), leaf(inner, type_.value_type), type_)
    if t.is_struct(here) and t.is_struct(type_):
        columns = dict(zip(here.names, values.flatten(), strict=True))
        if type_.num_fields and not set(columns) & set(type_.names):
            raise pa.ArrowNotImplementedError("the structs have no field of the same name")
        fields = [
            leaf(columns[f.name], f.type) if f.name in columns else (pa.nulls(len(values), f.type), None) for f in type_
        ]
        return in_structs(len(values), valid_rows(values), fields, type_)
    return leaf(values, type_)


def is_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are lists, both structs, or both maps."""
    t = pa.types
    return any(kind(one) and kind(other) for kind in (is_list, t.is_struct, t.is_map))


def in_lists(lengths: NDArray[np.int64], valid: Bad | None, inner: Result, type_: pa.DataType) -> Result:
    """Lists of these lengths over the values of `inner`."""
    values, wrong = inner
    bad = _rows_of(wrong, lengths)
    if pa.types.is_fixed_size_list(type_):
        other = lengths != type_.list_size
        bad = either(bad, other if valid is None else other & valid)
        plain = in_lists(lengths, valid, (values, None), pa.list_(type_.value_field))[0]
        kept = pc.if_else(pa.array(~bad), plain, pa.scalar(None, plain.type)) if bad is not None else plain
        return kept.cast(type_), bad
    maker = pa.LargeListArray if pa.types.is_large_list(type_) else pa.ListArray
    ends = np.concatenate([[0], np.cumsum(lengths)])
    width = pa.int64() if maker is pa.LargeListArray else pa.int32()
    return maker.from_arrays(pa.array(ends, width), values, type=type_, mask=_missing(valid, bad)), bad


def in_maps(lengths: NDArray[np.int64], valid: Bad | None, keys: Result, items: Result, type_: pa.DataType) -> Result:
    """Maps of these lengths. A key that is NULL must be among the refused ones."""
    bad = _rows_of(either(keys[1], items[1]), lengths)
    key = keys[0]
    if key.null_count:  # a map cannot hold it, and its row is NULL anyway
        kept = np.repeat(np.ones(len(lengths), np.bool_) if bad is None else ~bad, lengths)
        lengths = lengths if bad is None else np.where(bad, 0, lengths)
        key, item = (part.filter(pa.array(kept)) for part in (key, items[0]))
    else:
        item = items[0]
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.MapArray.from_arrays(ends, key, item, type=type_, mask=_missing(valid, bad)), bad


def in_structs(rows: int, valid: Bad | None, fields: list[Result], type_: pa.DataType) -> Result:
    """Structs of these fields."""
    bad: Bad | None = None
    for _, wrong in fields:
        bad = either(bad, wrong)
    if not fields:
        made = pa.array([{}] * rows, type_)
        missing = _missing(valid, bad)
        return (made if missing is None else pc.if_else(missing, pa.scalar(None, type_), made)), bad
    arrays = [array for array, _ in fields]
    return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=_missing(valid, bad)), bad


def valid_rows(values: pa.Array) -> Bad | None:
    """The rows that are not NULL; None if no row is."""
    return values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None


def entries(values: pa.Array) -> tuple[NDArray[np.int64], list[pa.Array]]:
    """Of lists and maps: the number of entries of each row, and all entries row after row, of maps the keys and the
    items. NULL has none."""
    t = pa.types
    inner = [values.keys, values.items] if t.is_map(values.type) else [values.values]
    rows = np.arange(len(values), dtype=np.int64)
    if t.is_fixed_size_list(values.type):
        size = values.type.list_size
        starts, lengths = (values.offset + rows) * size, np.full(len(values), size, np.int64)
    elif t.is_list_view(values.type) or t.is_large_list_view(values.type):
        starts, lengths = (np.asarray(part).astype(np.int64) for part in (values.offsets, values.sizes))
    else:
        offsets = np.asarray(values.offsets).astype(np.int64)
        starts, lengths = offsets[:-1], np.diff(offsets)
    if (valid := valid_rows(values)) is not None:
        lengths = np.where(valid, lengths, 0)
    some = lengths > 0
    begins, ends = starts[some], (starts + lengths)[some]
    if not begins.size:
        return lengths, [part.slice(0, 0) for part in inner]
    if (begins[1:] == ends[:-1]).all():
        return lengths, [part.slice(begins[0], ends[-1] - begins[0]) for part in inner]
    # Lists that are views may lie in any order. Arrow does not take from all types, but joins slices of all.
    cuts = list(zip(begins.tolist(), lengths[some].tolist(), strict=True))
    return lengths, [pa.concat_arrays([part.slice(start, length) for start, length in cuts]) for part in inner]


def _rows_of(wrong: Bad | None, lengths: NDArray[np.int64]) -> Bad | None:
    """The rows that have a refused entry."""
    if wrong is None:
        return None
    bad = np.zeros(len(lengths), np.bool_)
    bad[np.repeat(np.arange(len(lengths)), lengths)[wrong]] = True
    return bad


def joined(texts: pa.Array, lengths: NDArray[np.int64]) -> pa.Array:
    """The texts of each row's entries as one text, with commas between them. No text is NULL."""
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(ends, texts), ", ")


def either(one: Bad | None, other: Bad | None) -> Bad | None:
    return other if one is None else one if other is None else one | other


def _missing(valid: Bad | None, bad: Bad | None) -> pa.Array | None:
    missing = either(None if valid is None else ~valid, bad)
    return None if missing is None else pa.array(missing)
