"""The interface of all stores, and the validity that most of them keep."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.errors import JobError
from eddyline.state.arena import Arena
from eddyline.state.column import Column, RowNumbers
from eddyline.state.stores.snapshots import StoreSnapshot, ValiditySnapshot


class TooMuchText(JobError):
    """The values of these rows are too large for one Arrow array; fewer rows may fit."""


class ValueStore(Protocol):
    """Append-only values of one Arrow type."""

    type: pa.DataType

    def append(self, array: pa.Array) -> None:
        """Add values at the end."""

    def gather(self, rows: RowNumbers) -> pa.Array:
        """The values of these rows."""

    def truncate(self, rows: int) -> None:
        """Forget the rows from number `rows` on."""

    def release(self, row: int) -> None:
        """Rows below `row` will not be read again."""

    def saved(self) -> StoreSnapshot:
        """A snapshot for another process."""

    def restore(self, saved: StoreSnapshot) -> None:
        """See the same values as a store of the same type."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""


class Validity:
    """Which rows are not NULL; nothing is stored until a NULL comes."""

    def __init__(self, arena: Arena) -> None:
        self._column = Column(arena, "u1")
        self._noted = False
        """Whether a NULL has come."""
        self._rows = self._base = 0

    def append(self, array: pa.Array) -> None:
        """Note the validity of new values."""
        rows = self._rows + len(array)
        if array.null_count and not self._noted:
            self._column.release(self._base)
            self._column.rows = self._base
            self._column.append(np.ones(self._rows - self._base, np.uint8))
            self._noted = True
        if self._noted:
            valid = pc.is_valid(array).to_numpy(zero_copy_only=False) if array.null_count else np.ones(len(array), bool)
            self._column.append(valid.view(np.uint8))
        self._rows = rows

    def gather(self, rows: RowNumbers) -> NDArray[np.bool_] | None:
        """The validity of these rows, None if all are valid."""
        if not self._noted:
            return None
        valid = self._column.values[rows].view(np.bool_)
        return None if valid.all() else valid

    def retain(self, rows: RowNumbers) -> None:
        """Keep only these rows, under the next numbers."""
        if self._noted:
            self._column.retain(rows)
        self._base, self._rows = self._rows, self._rows + rows.size

    def truncate(self, rows: int) -> None:
        """Forget the rows from number `rows` on."""
        self._rows = rows
        if self._noted:
            self._column.truncate(rows)

    def release(self, row: int) -> None:
        """Rows below `row` will not be read again."""
        self._base = row
        if self._noted:
            self._column.release(row)

    def free(self) -> None:
        """Give everything back; it cannot be used any more."""
        self._column.free()

    def saved(self) -> ValiditySnapshot:
        """A snapshot for another process."""
        return ValiditySnapshot(self._rows, self._base, self._noted, self._column.saved())

    def restore(self, saved: ValiditySnapshot) -> None:
        """Know the same."""
        self._rows, self._base, self._noted = saved.rows, saved.base, saved.noted
        self._column.restore(saved.column)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._column.nbytes if self._noted else 0


def bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Validity as Arrow wants it."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
