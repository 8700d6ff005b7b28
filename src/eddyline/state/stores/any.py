"""The store for any Arrow type that Eddyline can keep."""

from __future__ import annotations

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.state.arena import Arena
from eddyline.state.column import RowNumbers
from eddyline.state.stores.dictionary import DictionaryStore
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.heap import BytesStore
from eddyline.state.stores.nested import ListStore, StructStore
from eddyline.state.stores.snapshots import ListSnapshot, NullSnapshot, StoreSnapshot
from eddyline.state.stores.store import ValueStore


class NullStore:
    """The type that has only NULL."""

    type = pa.null()
    nbytes = 0

    def append(self, array: pa.Array) -> None:
        pass

    def gather(self, rows: RowNumbers) -> pa.Array:
        return pa.nulls(len(rows))

    def truncate(self, rows: int) -> None:
        pass

    def release(self, row: int) -> None:
        pass

    def saved(self) -> NullSnapshot:
        return NullSnapshot()

    def restore(self, saved: StoreSnapshot) -> None:
        assert isinstance(saved, NullSnapshot)


class FixedListStore:
    """Lists of a fixed size, kept as lists."""

    def __init__(self, arena: Arena, type: pa.DataType) -> None:
        self.type, self._lists = type, ListStore(arena, pa.list_(type.value_field), store)

    def append(self, array: pa.Array) -> None:
        self._lists.append(array.cast(self._lists.type))

    def gather(self, rows: RowNumbers) -> pa.Array:
        return self._lists.gather(rows).cast(self.type)

    def truncate(self, rows: int) -> None:
        self._lists.truncate(rows)

    def release(self, row: int) -> None:
        self._lists.release(row)

    def saved(self) -> ListSnapshot:
        return self._lists.saved()

    def restore(self, saved: StoreSnapshot) -> None:
        self._lists.restore(saved)

    @property
    def nbytes(self) -> int:
        return self._lists.nbytes


def store(arena: Arena, type: pa.DataType) -> ValueStore:
    """A store for any Arrow type that Eddyline can keep."""
    t = pa.types
    if t.is_null(type):
        return NullStore()
    if t.is_dictionary(type):
        return DictionaryStore(arena, type, store)
    if t.is_list(type) or t.is_large_list(type) or t.is_map(type):
        return ListStore(arena, type, store)
    if t.is_fixed_size_list(type):
        return FixedListStore(arena, type)
    if t.is_struct(type):
        return StructStore(arena, type, store)
    if t.is_string(type) or t.is_large_string(type) or t.is_binary(type) or t.is_large_binary(type):
        return BytesStore(arena, type)
    try:
        return FixedStore(arena, type)
    except ValueError as error:
        raise JobError(f"columns of type {type} cannot be kept in a window") from error
