"""An append-only column of fixed-width values, indexed by absolute row number.

Growing maps more of the file: nothing is copied, and earlier views stay valid because they show the same pages.
Releasing punches holes before the first row that is still needed. If nearly all rows are released at once, as after a
batch longer than the windows, the remaining few move to the beginning of the file instead, and its pages are reused:
new pages cost several times as much. `retain` moves rows within the file for the same reason. Invariant: `values[r]`
may be read for `base <= r < rows`, where base is the row of the last release, and its value does not change until
`truncate`; views are valid until the next release.

Pages are reserved (`Arena.reserve`) before they are touched. Invariant: the pages from that of the row `base` up to the
byte `_reserved` are allocated. Holes are punched only below the former, and above the latter after it was lowered.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.state.arena import Arena, punch, seen, touch

FIRST_ROWS = 1024
"""Rows mapped at first; each further mapping doubles the live part."""

TURNOVER = 2
"""The remaining rows move if at least this many times as many rows are released."""

AHEAD = 1 << 16, 1 << 20
"""The least and the most bytes that are reserved beyond the needed ones. Between these bounds it is a share of the live
bytes (1 / AHEAD_PART). Each call has a fixed cost, about that of touching four new pages."""
AHEAD_PART = 16


RETAINED = 1 << 16
"""How many rows `Column.retain` moves at a time."""


RowNumbers = NDArray[np.int64]
"""The numbers of rows of a SteM."""


class ColumnSnapshot(Snapshot, frozen=True):
    """The place of a column's rows; the rows themselves are in the region."""

    rows: int
    region: int
    base: int
    origin: int
    used: int
    reserved: int


class Column:
    """A column with `width` values of `dtype` per row."""

    def __init__(self, arena: Arena, dtype: np.dtype[np.generic] | str, width: int = 1) -> None:
        self._arena, self._region = arena, arena.region()
        self._dtype, self._width = np.dtype(dtype), width
        self._row_bytes = self._dtype.itemsize * width
        self._mapping: mmap.mmap | None = None
        self._mapped_from = self._mapped_to = 0
        self._base = 0
        self._origin = 0
        """The row at the beginning of the file."""
        self._used = 0
        """Bytes from the beginning of the file whose pages are allocated although rows have moved away from them."""
        self._reserved = 0
        """The byte of the file up to which pages are allocated."""
        self.rows = 0
        self.values: NDArray[Any] = np.empty(0 if width == 1 else (0, width), self._dtype)

    def reserve(self, rows: int) -> None:
        """Make room up to row number `rows`."""
        needed = self._at(rows)
        if needed > self._mapped_to:
            self._map(max(2 * (rows - self._base), FIRST_ROWS) + self._base)
        if needed > self._reserved:
            first = _page(self._at(self._base))
            ahead = min(max(AHEAD[0], (needed - first) // AHEAD_PART), AHEAD[1])
            self._reserve(max(first, self._reserved), min(-_page(-(needed + ahead)), self._mapped_to))

    def _reserve(self, first: int, last: int) -> None:
        assert self._mapping is not None
        self._arena.reserve(self._region, first, last, self._mapping, self._mapped_from)
        self._reserved = last

    def _at(self, row: int) -> int:
        """The byte of the file at which a row begins."""
        return (row - self._origin) * self._row_bytes

    def _map(self, rows: int) -> None:
        first, last = _page(self._at(self._base)), max(-_page(-self._at(rows)), self._used)
        shift = self._origin * self._row_bytes
        window, self._mapping = self._arena.map(self._region, first, last, shift)
        self._mapped_from, self._mapped_to = first, last
        self._see(window)

    def _see(self, window: NDArray[np.uint8]) -> None:
        """Take a window as the values, by row number."""
        whole = window[: window.size // self._row_bytes * self._row_bytes].view(self._dtype)
        self.values = whole if self._width == 1 else whole.reshape(-1, self._width)

    def append(self, values: NDArray[Any]) -> None:
        """Add rows at the end."""
        last = self.rows + len(values)
        self.reserve(last)
        self.values[self.rows : last] = values
        self.rows = last

    def truncate(self, rows: int) -> None:
        """Drop the rows from number `rows` on."""
        self.rows = rows

    def release(self, row: int) -> None:
        """Release the rows below `row`: they will not be read again."""
        if self._mapping is not None and row > self._base:
            goes, stays = row - self._base, self.rows - row
            if goes >= TURNOVER * stays and goes * self._row_bytes >= self._arena.tuning.moved_bytes:
                self._move(row)
            else:
                first = max(self._at(self._base) - mmap.PAGESIZE, self._mapped_from)
                punch(self._mapping, first - self._mapped_from, self._at(row) - self._mapped_from)
                if self._used:
                    self.trim()
        self._base = max(self._base, row)

    def _move(self, row: int) -> None:
        """Move the rows from `row` on, which are all that remain, to the beginning of the file. The pages after them
        are reused, unless most of the file was released before: then only few pages are left, and they are released."""
        before, hole, whole = (
            self.values,
            -_page(-self._at(self._base)),
            2 * self._at(self._base) <= self._at(self.rows),
        )
        self._used = max(self._used, self._reserved)
        self._base = self._origin = row
        self._map(self.rows)
        assert self._mapping is not None
        self._reserve(0, hole if whole else -_page(-self._at(self.rows)))
        if whole:
            self._reserved = self._used
            touch(self._mapping)
        self.values[row : self.rows] = before[row : self.rows]
        if not whole:
            self.trim()

    def retain(self, rows: RowNumbers, renumber: Callable[[NDArray[Any]], NDArray[Any]] | None = None) -> None:
        """Keep only these rows, which are in order, under the next numbers, in the place of the old ones: no page is
        new. `renumber` changes their values."""
        first = self.rows
        before = self.make_room(rows.size)
        for at in range(0, rows.size, RETAINED):
            values = before.take(rows[at : at + RETAINED], axis=0)
            self.values[first + at : first + at + len(values)] = values if renumber is None else renumber(values)
        self.trim()

    def make_room(self, rows: int) -> NDArray[Any]:
        """The next `rows` numbers are those of rows in the place of the present ones, of which there are at least as
        many; no other row remains. The caller writes their values in the order of rows, and may read the old ones, by
        their old numbers, from the array that is returned: row n may be written once n of the old rows are read."""
        before, first = self.values, self.rows
        self._origin += first - self._base
        self._base, self.rows = first, first + rows
        if self._mapping is not None:
            places = self._mapped_from, self._mapped_to, self._origin * self._row_bytes
            self._see(seen(self._mapping, *places))
        return before

    def trim(self) -> None:
        """Release the pages after the last row, whose rows were truncated or have moved."""
        if self._mapping is not None:
            punch(self._mapping, self._at(self.rows) - self._mapped_from, self._mapped_to - self._mapped_from)
            self._used, self._reserved = 0, min(self._reserved, -_page(-self._at(self.rows)))

    def free(self) -> None:
        """Release everything; the column cannot be used any more."""
        if self._mapping is not None:
            punch(self._mapping, 0, self._mapped_to - self._mapped_from)
        self._arena.free(self._region)

    def saved(self) -> ColumnSnapshot:
        """A snapshot for another process."""
        return ColumnSnapshot(self.rows, self._region, self._base, self._origin, self._used, self._reserved)

    def restore(self, saved: ColumnSnapshot) -> None:
        """Restore from a snapshot: map the same rows in the same region."""
        self.rows, self._region, self._base = saved.rows, saved.region, saved.base
        self._origin, self._used, self._reserved = saved.origin, saved.used, saved.reserved
        self._mapping, self._mapped_from, self._mapped_to = None, 0, 0
        self.reserve(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes held by rows that are not released."""
        return (self.rows - self._base) * self._row_bytes


def _page(at: int) -> int:
    """The beginning of the page that a byte is in."""
    return at // mmap.PAGESIZE * mmap.PAGESIZE
