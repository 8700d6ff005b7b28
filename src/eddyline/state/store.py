"""A column of any Arrow type, laid out as plain columns: append arrays, gather rows, forget both ends.

A type is taken apart as Arrow does it: fixed-width words; a heap with start offsets (strings, binary); child values with
start offsets (lists, maps); one store per field (structs); codes and a shared dictionary (dictionary-encoded values stay
encoded). Validity is a byte per row that exists only once a NULL has been seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.errors import JobError
from eddyline.kernels import values as kernels
from eddyline.state.arena import Arena
from eddyline.state.column import Column

Rows = NDArray[np.int64]


class Store(Protocol):
    """Append-only values of one Arrow type."""

    type: pa.DataType

    def append(self, array: pa.Array) -> None:
        """Add values at the end."""

    def gather(self, rows: Rows) -> pa.Array:
        """The values of these rows."""

    def truncate(self, rows: int) -> None:
        """Forget the rows from number `rows` on."""

    def release(self, row: int) -> None:
        """Rows below `row` will not be read again."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""


class Validity:
    """Which rows are not NULL; nothing is stored until a NULL comes."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._column: Column | None = None
        self._rows = self._base = 0

    def append(self, array: pa.Array) -> None:
        """Note the validity of new values."""
        rows = self._rows + len(array)
        if array.null_count and self._column is None:
            self._column = Column(self._arena, "u1")
            self._column.release(self._base)
            self._column.rows = self._base
            self._column.append(np.ones(self._rows - self._base, np.uint8))
        if self._column is not None:
            valid = pc.is_valid(array).to_numpy(zero_copy_only=False) if array.null_count else np.ones(len(array), bool)
            self._column.append(valid.view(np.uint8))
        self._rows = rows

    def gather(self, rows: Rows) -> NDArray[np.bool_] | None:
        """The validity of these rows, None if all are valid."""
        if self._column is None:
            return None
        valid = self._column.values[rows].view(np.bool_)
        return None if valid.all() else valid

    def truncate(self, rows: int) -> None:
        """Forget the rows from number `rows` on."""
        self._rows = rows
        if self._column is not None:
            self._column.truncate(rows)

    def release(self, row: int) -> None:
        """Rows below `row` will not be read again."""
        self._base = row
        if self._column is not None:
            self._column.release(row)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return 0 if self._column is None else self._column.nbytes


def _bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


class FixedStore:
    """Values of 1, 2, 4, 8 or any other fixed number of bytes; booleans take a byte."""

    def __init__(self, arena: Arena, type: pa.DataType, column: Column | None = None) -> None:
        self.type = type
        bits = type.bit_width
        self._boolean = bits == 1
        size = max(bits // 8, 1)
        self._word = size if size in (1, 2, 4, 8) else 8 if size % 8 == 0 else 1
        self._per_row = size // self._word
        self.shares = column is not None
        """The values are kept by somebody else (a time or key column with the same bytes)."""
        self._column = column or Column(arena, f"u{self._word}", self._per_row)
        self._validity = Validity(arena)

    def append(self, array: pa.Array) -> None:
        if self.shares:
            return
        self._validity.append(array)
        self._column.append(self._words(array))

    def _words(self, array: pa.Array) -> NDArray[np.generic]:
        if self._boolean:
            array = array.cast(pa.uint8())
        data = array.buffers()[1]
        if data is None:
            return np.zeros(len(array) * self._per_row, f"u{self._word}").reshape(self._shape(len(array)))
        words = np.frombuffer(data, f"u{self._word}")
        words = words[array.offset * self._per_row : (array.offset + len(array)) * self._per_row]
        return words.reshape(self._shape(len(array)))

    def _shape(self, rows: int) -> tuple[int, ...]:
        return (rows,) if self._per_row == 1 else (rows, self._per_row)

    def gather(self, rows: Rows) -> pa.Array:
        valid = _bitmap(self._validity.gather(rows))
        words = self._column.values.take(rows, axis=0, mode="clip")
        data = np.packbits(words, bitorder="little") if self._boolean else words
        return pa.Array.from_buffers(self.type, len(rows), [valid, pa.py_buffer(data)])

    def truncate(self, rows: int) -> None:
        if not self.shares:
            self._column.truncate(rows)
            self._validity.truncate(rows)

    def release(self, row: int) -> None:
        if not self.shares:
            self._column.release(row)
            self._validity.release(row)

    @property
    def nbytes(self) -> int:
        return 0 if self.shares else self._column.nbytes + self._validity.nbytes

    @property
    def words(self) -> NDArray[np.generic]:
        """The raw values, by row number."""
        return self._column.values


class _Starts:
    """Where the value of each row begins in a heap or child; `values[rows]` is always the end of the last one."""

    def __init__(self, arena: Arena) -> None:
        self.column = Column(arena, "i8")
        self.column.append(np.zeros(1, np.int64))

    def append(self, lengths: NDArray[np.int64]) -> None:
        self.column.append(np.cumsum(lengths) + self.end)

    @property
    def end(self) -> int:
        return int(self.column.values[self.column.rows - 1])

    @property
    def values(self) -> NDArray[np.int64]:
        values: NDArray[np.int64] = self.column.values  # type: ignore[assignment]
        return values


class BytesStore:
    """Strings and binary: a heap of bytes and where each value starts."""

    def __init__(self, arena: Arena, type: pa.DataType) -> None:
        self.type = type
        self._offset_type = np.int64 if type in (pa.large_string(), pa.large_binary()) else np.int32
        self._starts = _Starts(arena)
        self._heap = Column(arena, "u1")
        self._validity = Validity(arena)

    def append(self, array: pa.Array) -> None:
        self._validity.append(array)
        offsets = np.frombuffer(array.buffers()[1], self._offset_type) if len(array) else np.zeros(1, np.int32)
        offsets = offsets[array.offset : array.offset + len(array) + 1]
        self._starts.append(np.diff(offsets).astype(np.int64))
        data = array.buffers()[2]
        if data is not None:
            self._heap.append(np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]])

    def gather(self, rows: Rows) -> pa.Array:
        offsets = np.empty(len(rows) + 1, np.int64)
        kernels.lengths(self._starts.values, rows, offsets)
        data = np.empty(int(offsets[-1]), np.uint8)
        kernels.copy_bytes(self.heap, self._starts.values, rows, data)
        if self._offset_type is np.int32 and offsets[-1] >= 1 << 31:
            raise JobError("the strings of one result packet exceed 2 GiB: set a smaller packet")
        buffers = [_bitmap(self._validity.gather(rows)), pa.py_buffer(offsets.astype(self._offset_type)), pa.py_buffer(data)]
        return pa.Array.from_buffers(self.type, len(rows), buffers)

    def truncate(self, rows: int) -> None:
        self._starts.column.truncate(rows + 1)
        self._heap.truncate(self._starts.end)
        self._validity.truncate(rows)

    def release(self, row: int) -> None:
        self._heap.release(int(self._starts.values[row]))
        self._starts.column.release(row)
        self._validity.release(row)

    @property
    def nbytes(self) -> int:
        return self._starts.column.nbytes + self._heap.nbytes + self._validity.nbytes

    @property
    def heap(self) -> NDArray[np.uint8]:
        """All bytes; value r is heap[starts[r] : starts[r + 1]]."""
        heap: NDArray[np.uint8] = self._heap.values  # type: ignore[assignment]
        return heap

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each value begins."""
        return self._starts.values


class ListStore:
    """Lists and maps: child values and where each list starts."""

    def __init__(self, arena: Arena, type: pa.DataType) -> None:
        self.type = type
        child = pa.struct([type.key_field, type.item_field]) if pa.types.is_map(type) else type.value_type
        self._wide = pa.types.is_large_list(type)
        self._starts, self._child, self._validity = _Starts(arena), store(arena, child), Validity(arena)

    def append(self, array: pa.Array) -> None:
        self._validity.append(array)
        offsets = np.asarray(array.offsets).astype(np.int64)
        self._starts.append(np.diff(offsets))
        child = pa.StructArray.from_arrays([array.keys, array.items], fields=list(self._child.type)) if pa.types.is_map(
            self.type
        ) else array.values
        self._child.append(child.slice(int(offsets[0]), int(offsets[-1] - offsets[0])))

    def gather(self, rows: Rows) -> pa.Array:
        offsets = np.empty(len(rows) + 1, np.int64)
        kernels.lengths(self._starts.values, rows, offsets)
        places = np.empty(int(offsets[-1]), np.int64)
        kernels.positions(self._starts.values, rows, places)
        wide = offsets if self._wide else offsets.astype(np.int32)
        buffers = [_bitmap(self._validity.gather(rows)), pa.py_buffer(wide)]
        return pa.Array.from_buffers(self.type, len(rows), buffers, children=[self._child.gather(places)])

    def truncate(self, rows: int) -> None:
        self._starts.column.truncate(rows + 1)
        self._child.truncate(self._starts.end)
        self._validity.truncate(rows)

    def release(self, row: int) -> None:
        self._child.release(int(self._starts.values[row]))
        self._starts.column.release(row)
        self._validity.release(row)

    @property
    def nbytes(self) -> int:
        return self._starts.column.nbytes + self._child.nbytes + self._validity.nbytes


class StructStore:
    """Structs: a store per field."""

    def __init__(self, arena: Arena, type: pa.DataType) -> None:
        self.type = type
        self._fields = [store(arena, field.type) for field in type]
        self._validity = Validity(arena)

    def append(self, array: pa.Array) -> None:
        self._validity.append(array)
        for i, field in enumerate(self._fields):
            field.append(array.field(i))

    def gather(self, rows: Rows) -> pa.Array:
        children = [field.gather(rows) for field in self._fields]
        buffers = [_bitmap(self._validity.gather(rows))]
        return pa.Array.from_buffers(self.type, len(rows), buffers, children=children)

    def truncate(self, rows: int) -> None:
        for field in self._fields:
            field.truncate(rows)
        self._validity.truncate(rows)

    def release(self, row: int) -> None:
        for field in self._fields:
            field.release(row)
        self._validity.release(row)

    @property
    def nbytes(self) -> int:
        return sum(field.nbytes for field in self._fields) + self._validity.nbytes


class DictionaryStore:
    """Dictionary-encoded values stay encoded: codes into one dictionary that all batches share, in order of appearance."""

    def __init__(self, arena: Arena, type: pa.DataType) -> None:
        self.type = pa.dictionary(pa.int32(), type.value_type, type.ordered)
        self._codes = FixedStore(arena, pa.int32())
        self._dictionary = pa.array([], type.value_type)

    def append(self, array: pa.Array) -> None:
        known = pc.index_in(array.dictionary, value_set=self._dictionary) if len(self._dictionary) else None
        if known is None or known.null_count:
            new = array.dictionary if known is None else array.dictionary.filter(pc.is_null(known))
            new = pc.unique(new.drop_null())
            self._dictionary = pa.concat_arrays([self._dictionary, new])
            known = pc.index_in(array.dictionary, value_set=self._dictionary)
        self._codes.append(known.cast(pa.int32()).take(array.indices))

    def gather(self, rows: Rows) -> pa.Array:
        return pa.DictionaryArray.from_arrays(self._codes.gather(rows), self._dictionary)

    def truncate(self, rows: int) -> None:
        self._codes.truncate(rows)

    def release(self, row: int) -> None:
        self._codes.release(row)

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + int(self._dictionary.nbytes)


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
        return ListStore(arena, type)
    if t.is_struct(type):
        return StructStore(arena, type)
    if t.is_string(type) or t.is_large_string(type) or t.is_binary(type) or t.is_large_binary(type):
        return BytesStore(arena, type)
    try:
        return FixedStore(arena, type)
    except ValueError as error:
        raise JobError(f"columns of type {type} cannot be kept in a window") from error
