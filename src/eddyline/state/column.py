"""An append-only column of fixed-width values, indexed by absolute row number.

Growing maps more of the file (nothing is copied, and views handed out before stay good: they look at the same pages);
releasing punches holes behind the first row that is still needed. Invariant: `values[r]` may be read for
`base <= r < rows`, where base is the row of the last release, and its value never changes until `truncate`.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.state.arena import Arena, punch
from eddyline.state.shelf import Saved

FIRST_ROWS = 1024
"""Rows mapped at first; each further mapping doubles the live part."""


class Column:
    """`width` values of `dtype` a row."""

    def __init__(self, arena: Arena, dtype: np.dtype[np.generic] | str, width: int = 1) -> None:
        self._arena, self._region = arena, arena.region()
        self._dtype, self._width = np.dtype(dtype), width
        self._row_bytes = self._dtype.itemsize * width
        self._mapping: mmap.mmap | None = None
        self._mapped_from = self._mapped_to = 0
        self._base = 0
        self.rows = 0
        self.values: NDArray[Any] = np.empty(0 if width == 1 else (0, width), self._dtype)

    def reserve(self, rows: int) -> None:
        """Make room up to row number `rows`."""
        if rows * self._row_bytes <= self._mapped_to:
            return
        page = mmap.PAGESIZE
        first = self._base * self._row_bytes // page * page
        want = max(2 * (rows - self._base), FIRST_ROWS) + self._base
        last = -(-want * self._row_bytes // page) * page
        window, self._mapping = self._arena.map(self._region, first, last)
        self._mapped_from, self._mapped_to = first, last
        whole = window[: last // self._row_bytes * self._row_bytes].view(self._dtype)
        self.values = whole if self._width == 1 else whole.reshape(-1, self._width)

    def append(self, values: NDArray[Any]) -> None:
        """Add rows at the end."""
        last = self.rows + len(values)
        self.reserve(last)
        self.values[self.rows : last] = values
        self.rows = last

    def truncate(self, rows: int) -> None:
        """Forget the rows from number `rows` on."""
        self.rows = rows

    def release(self, row: int) -> None:
        """Rows below `row` will not be read again."""
        if self._mapping is not None and row > self._base:
            first = max(self._base * self._row_bytes - mmap.PAGESIZE, self._mapped_from)
            punch(self._mapping, first - self._mapped_from, row * self._row_bytes - self._mapped_from)
        self._base = max(self._base, row)

    def trim(self) -> None:
        """Give back what lies behind the last row, where rows were that are truncated."""
        if self._mapping is not None:
            punch(self._mapping, self.rows * self._row_bytes - self._mapped_from, self._mapped_to - self._mapped_from)

    def free(self) -> None:
        """Give everything back; it cannot be used any more."""
        if self._mapping is not None:
            punch(self._mapping, 0, self._mapped_to - self._mapped_from)
        self._arena.free(self._region)

    def saved(self) -> Saved:
        """What another process must know of it."""
        return {"rows": self.rows, "base": self._base, "region": self._region}

    def restore(self, saved: Saved) -> None:
        """See the same rows in the same region, whatever was looked at before."""
        self.rows, self._base, self._region = saved["rows"], saved["base"], saved["region"]
        self._mapping, self._mapped_from, self._mapped_to = None, 0, 0
        self.reserve(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes held by rows that are not released."""
        return (self.rows - self._base) * self._row_bytes
