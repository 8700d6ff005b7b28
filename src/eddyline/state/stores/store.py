"""What every store can do, and the validity that most of them keep."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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


def bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Validity as Arrow wants it."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
