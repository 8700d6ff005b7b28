"""Values of variable length: where each one starts, and a heap of bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.kernels import values as kernels
from eddyline.state.arena import Arena
from eddyline.state.column import Column, RowNumbers
from eddyline.state.stores.snapshots import BytesSnapshot, StoreSnapshot
from eddyline.state.stores.store import TooMuchText, Validity, bitmap


class Starts:
    """Where the value of each row begins in a heap or child; `values[rows]` is always the end of the last one."""

    def __init__(self, arena: Arena) -> None:
        self.column = Column(arena, "i8")
        self.column.reserve(1)
        self.column.rows = 1  # the first start is 0, as in every new page; not written: the page may hold values

    def append(self, lengths: NDArray[np.int64]) -> None:
        self.column.append(np.cumsum(lengths) + self.end)

    @property
    def end(self) -> int:
        return int(self.column.values[self.column.rows - 1])

    @property
    def values(self) -> NDArray[np.int64]:
        values: NDArray[np.int64] = self.column.values
        return values


class BytesStore:
    """Strings and binary: a heap of bytes and where each value starts."""

    def __init__(self, arena: Arena, type: pa.DataType) -> None:
        self.type, self._most = type, arena.tuning.text_bytes
        self._offset_type = np.int64 if type in (pa.large_string(), pa.large_binary()) else np.int32
        self._starts = Starts(arena)
        self._heap = Column(arena, "u1")
        self._validity = Validity(arena)

    def append(self, array: pa.Array) -> None:
        if not len(array):
            return
        self._validity.append(array)
        offsets = np.frombuffer(array.buffers()[1], self._offset_type, array.offset + len(array) + 1)[array.offset :]
        self._starts.append(np.diff(offsets).astype(np.int64))
        data = array.buffers()[2]
        if data is not None:
            self._heap.append(np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]])

    def gather(self, rows: RowNumbers) -> pa.Array:
        offsets = np.empty(len(rows) + 1, np.int64)
        kernels.lengths(self._starts.values, rows, offsets)
        if self._offset_type is np.int32 and offsets[-1] > self._most:
            raise TooMuchText(f"the texts of {len(rows)} rows take {offsets[-1]} bytes, too many for one column")
        data = np.empty(int(offsets[-1]), np.uint8)
        kernels.copy_bytes(self.heap, self._starts.values, rows, data)
        buffers = [
            bitmap(self._validity.gather(rows)),
            pa.py_buffer(offsets.astype(self._offset_type)),
            pa.py_buffer(data),
        ]
        return pa.Array.from_buffers(self.type, len(rows), buffers)

    def truncate(self, rows: int) -> None:
        self._starts.column.truncate(rows + 1)
        self._heap.truncate(self._starts.end)
        self._validity.truncate(rows)

    def release(self, row: int) -> None:
        self._heap.release(int(self._starts.values[row]))
        self._starts.column.release(row)
        self._validity.release(row)

    def free(self) -> None:
        """Free the memory; the store cannot be used afterwards."""
        self._starts.column.free()
        self._heap.free()
        self._validity.free()

    def saved(self) -> BytesSnapshot:
        return BytesSnapshot(self._starts.column.saved(), self._heap.saved(), self._validity.saved())

    def restore(self, saved: StoreSnapshot) -> None:
        assert isinstance(saved, BytesSnapshot)
        self._starts.column.restore(saved.starts)
        self._heap.restore(saved.heap)
        self._validity.restore(saved.validity)

    @property
    def nbytes(self) -> int:
        return self._starts.column.nbytes + self._heap.nbytes + self._validity.nbytes

    @property
    def heap(self) -> NDArray[np.uint8]:
        """All bytes; value r is heap[starts[r] : starts[r + 1]]."""
        heap: NDArray[np.uint8] = self._heap.values
        return heap

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each value begins."""
        return self._starts.values
