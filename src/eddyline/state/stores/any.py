"""The store for any Arrow type that Eddyline can keep."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.state.arena import Arena
from eddyline.state.stores.dictionary import DictionaryStore
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.heap import BytesStore
from eddyline.state.stores.nested import ListStore, StructStore
from eddyline.state.stores.store import Rows, Store


class NullStore:
    """The type that has only NULL."""

    type = pa.null()
    nbytes = 0

    def append(self, array: pa.Array) -> None:
        pass

    def gather(self, rows: Rows) -> pa.Array:
        return pa.nulls(len(rows))

    def truncate(self, rows: int) -> None:
        pass

    def release(self, row: int) -> None:
        pass


class ConvertedStore:
    """A type kept as another one with the same meaning, and given back as itself (views, fixed-size lists, ...)."""

    def __init__(self, arena: Arena, type: pa.DataType, kept_as: pa.DataType) -> None:
        self.type, self._inner = type, store(arena, kept_as)

    def append(self, array: pa.Array) -> None:
        self._inner.append(array.cast(self._inner.type))

    def gather(self, rows: Rows) -> pa.Array:
        return self._inner.gather(rows).cast(self.type)

    def truncate(self, rows: int) -> None:
        self._inner.truncate(rows)

    def release(self, row: int) -> None:
        self._inner.release(row)

    @property
    def nbytes(self) -> int:
        return self._inner.nbytes


_CONVERTED: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]]] = [
    (lambda t: t == pa.string_view(), lambda t: pa.large_string()),
    (lambda t: t == pa.binary_view(), lambda t: pa.large_binary()),
    (pa.types.is_fixed_size_list, lambda t: pa.list_(t.value_field)),
    (pa.types.is_run_end_encoded, lambda t: t.value_type),
]


def store(arena: Arena, type: pa.DataType) -> Store:
    """A store for any Arrow type that Eddyline can keep."""
    for applies, kept_as in _CONVERTED:
        if applies(type):
            return ConvertedStore(arena, type, kept_as(type))
    t = pa.types
    if t.is_null(type):
        return NullStore()
    if t.is_dictionary(type):
        return DictionaryStore(arena, type)
    if t.is_list(type) or t.is_large_list(type) or t.is_map(type):
        return ListStore(arena, type, store)
    if t.is_struct(type):
        return StructStore(arena, type, store)
    if t.is_string(type) or t.is_large_string(type) or t.is_binary(type) or t.is_large_binary(type):
        return BytesStore(arena, type)
    try:
        return FixedStore(arena, type)
    except ValueError as error:
        raise JobError(f"columns of type {type} cannot be kept in a window") from error
