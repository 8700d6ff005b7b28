"""The newest times of the rows of a SteM, by block of rows: so a probe finds the rows that are too old without reading
their times.

Rows need not be in the order of their times. Invariant: the time of a block is the newest of all rows up to the end of
the block, so it never falls.
"""

from __future__ import annotations

import numpy as np

from eddyline.state.arena import Arena
from eddyline.state.column import Column, ColumnSnapshot, RowNumbers


class NewestTimes:
    """The newest times of rows, by block. Only full blocks count."""

    def __init__(self, arena: Arena) -> None:
        self.block = arena.tuning.block
        """The number of rows of a block."""
        self._column = Column(arena, "i8")

    def note(self, times: Column, stored: int, floor: int) -> None:
        """Take the times of blocks that are new and full. `stored` is the number of rows; those below `floor` are
        released."""
        known = self._column.rows
        blocks = stored // self.block - known
        if blocks:
            first = max(known * self.block, floor)
            starts = np.arange(known, known + blocks) * self.block - first
            newest = np.maximum.reduceat(times.values[first : (known + blocks) * self.block], np.maximum(starts, 0))
            if known > floor // self.block:
                newest[0] = max(newest[0], self._column.values[known - 1])
            self._column.append(np.maximum.accumulate(newest))

    @property
    def times(self) -> RowNumbers:
        """By block, the newest time of all rows up to its end."""
        times: RowNumbers = self._column.values[: self._column.rows]
        return times

    def first_at(self, time: int, min_live: int) -> int:
        """A row such that every row before it is older than `time` or below `min_live`."""
        first = min_live // self.block
        return max(min_live, self.block * (first + int(self.times[first:].searchsorted(time))))

    def release(self, row: int) -> None:
        """Release the times of rows below this one."""
        self._column.release(row // self.block)

    def truncate(self, rows: int) -> None:
        """Drop the times of rows from number `rows` on."""
        self._column.truncate(rows // self.block)

    def free(self) -> None:
        """Release everything."""
        self._column.free()

    def saved(self) -> ColumnSnapshot:
        """A snapshot for another process."""
        return self._column.saved()

    def restore(self, block: int, saved: ColumnSnapshot) -> None:
        """Restore from a snapshot of times by blocks of this size."""
        self.block = block
        self._column.restore(saved)
