"""Lists, maps and structs: stores of their children."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from eddyline.kernels import values as kernels
from eddyline.state.arena import Arena
from eddyline.state.column import RowNumbers
from eddyline.state.stores.heap import Starts
from eddyline.state.stores.snapshots import ListSnapshot, StoreSnapshot, StructSnapshot
from eddyline.state.stores.store import Validity, ValueStore, bitmap

Make = Callable[[Arena, pa.DataType], ValueStore]
"""How to make the store of a child."""


class ListStore:
    """Lists and maps: child values and where each list starts."""

    def __init__(self, arena: Arena, type: pa.DataType, make: Make) -> None:
        self.type = type
        child = pa.struct([type.key_field, type.item_field]) if pa.types.is_map(type) else type.value_type
        self._wide = pa.types.is_large_list(type)
        self._starts, self._child, self._validity = Starts(arena), make(arena, child), Validity(arena)

    def append(self, array: pa.Array) -> None:
        self._validity.append(array)
        offsets = np.asarray(array.offsets).astype(np.int64)
        self._starts.append(np.diff(offsets))
        child = (
            pa.StructArray.from_arrays([array.keys, array.items], fields=list(self._child.type))
            if pa.types.is_map(self.type)
            else array.values
        )
        self._child.append(child.slice(int(offsets[0]), int(offsets[-1] - offsets[0])))

    def gather(self, rows: RowNumbers) -> pa.Array:
        offsets = np.empty(len(rows) + 1, np.int64)
        kernels.lengths(self._starts.values, rows, offsets)
        places = np.empty(int(offsets[-1]), np.int64)
        kernels.positions(self._starts.values, rows, places)
        wide = offsets if self._wide else offsets.astype(np.int32)
        buffers = [bitmap(self._validity.gather(rows)), pa.py_buffer(wide)]
        return pa.Array.from_buffers(self.type, len(rows), buffers, children=[self._child.gather(places)])

    def truncate(self, rows: int) -> None:
        self._starts.column.truncate(rows + 1)
        self._child.truncate(self._starts.end)
        self._validity.truncate(rows)

    def release(self, row: int) -> None:
        self._child.release(int(self._starts.values[row]))
        self._starts.column.release(row)
        self._validity.release(row)

    def saved(self) -> ListSnapshot:
        return ListSnapshot(self._starts.column.saved(), self._child.saved(), self._validity.saved())

    def restore(self, saved: StoreSnapshot) -> None:
        assert isinstance(saved, ListSnapshot)
        self._starts.column.restore(saved.starts)
        self._child.restore(saved.child)
        self._validity.restore(saved.validity)

    @property
    def nbytes(self) -> int:
        return self._starts.column.nbytes + self._child.nbytes + self._validity.nbytes


class StructStore:
    """Structs: a store per field."""

    def __init__(self, arena: Arena, type: pa.DataType, make: Make) -> None:
        self.type = type
        self._fields = [make(arena, field.type) for field in type]
        self._validity = Validity(arena)

    def append(self, array: pa.Array) -> None:
        self._validity.append(array)
        for i, field in enumerate(self._fields):
            field.append(array.field(i))

    def gather(self, rows: RowNumbers) -> pa.Array:
        children = [field.gather(rows) for field in self._fields]
        buffers = [bitmap(self._validity.gather(rows))]
        return pa.Array.from_buffers(self.type, len(rows), buffers, children=children)

    def truncate(self, rows: int) -> None:
        for field in self._fields:
            field.truncate(rows)
        self._validity.truncate(rows)

    def release(self, row: int) -> None:
        for field in self._fields:
            field.release(row)
        self._validity.release(row)

    def saved(self) -> StructSnapshot:
        return StructSnapshot(tuple(field.saved() for field in self._fields), self._validity.saved())

    def restore(self, saved: StoreSnapshot) -> None:
        assert isinstance(saved, StructSnapshot)
        for field, of_field in zip(self._fields, saved.fields, strict=True):
            field.restore(of_field)
        self._validity.restore(saved.validity)

    @property
    def nbytes(self) -> int:
        return sum(field.nbytes for field in self._fields) + self._validity.nbytes
