"""Values of a fixed number of bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.state.arena import Arena
from eddyline.state.column import Column, RowNumbers
from eddyline.state.stores.snapshots import FixedSnapshot, StoreSnapshot
from eddyline.state.stores.store import Validity, bitmap


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
        """Whether a time or key column with the same bytes owns the values."""
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
        words = np.frombuffer(data, f"u{self._word}", (array.offset + len(array)) * self._per_row)
        words = words[array.offset * self._per_row :]
        return words.reshape(self._shape(len(array)))

    def _shape(self, rows: int) -> tuple[int, ...]:
        return (rows,) if self._per_row == 1 else (rows, self._per_row)

    def gather(self, rows: RowNumbers) -> pa.Array:
        valid = bitmap(self._validity.gather(rows))
        words = self._column.values.take(rows, axis=0, mode="clip")
        data = np.packbits(words, bitorder="little") if self._boolean else words
        return pa.Array.from_buffers(self.type, len(rows), [valid, pa.py_buffer(data)])

    def retain(self, rows: RowNumbers) -> None:
        """Keep only these rows, under the next numbers."""
        if not self.shares:
            self._validity.retain(rows)
            self._column.retain(rows)

    def truncate(self, rows: int) -> None:
        if not self.shares:
            self._column.truncate(rows)
            self._validity.truncate(rows)

    def release(self, row: int) -> None:
        if not self.shares:
            self._column.release(row)
            self._validity.release(row)

    def free(self) -> None:
        """Free the memory; the store cannot be used afterwards."""
        if not self.shares:
            self._column.free()
        self._validity.free()

    def saved(self) -> FixedSnapshot:
        return FixedSnapshot(None if self.shares else self._column.saved(), self._validity.saved())

    def restore(self, saved: StoreSnapshot) -> None:
        assert isinstance(saved, FixedSnapshot) and (saved.column is None) == self.shares
        if saved.column is not None:
            self._column.restore(saved.column)
        self._validity.restore(saved.validity)

    @property
    def nbytes(self) -> int:
        return 0 if self.shares else self._column.nbytes + self._validity.nbytes

    @property
    def words(self) -> NDArray[np.generic]:
        """The raw values, by row number."""
        return self._column.values
