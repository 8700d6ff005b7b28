"""ROWS windows: the last n rows of a stream at a point in event time.

A query with a ROWS window takes its input in event-time order, whole instants at a time, so the times of a stream
arrive sorted and the place of a row in its stream is how many came before it. `Clock` holds the times of all rows of
one source, filtered or not; the number of rows with ts <= t is then a binary search. A component is in the window of
a tuple whose newest time is t if its place is at least count(t) - n. As t grows the count grows, so a tuple that
fails while it is partial would fail when complete: checking early is only saving work, checking the complete tuple is
the definition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.state.arena import Arena
from eddyline.state.column import Column
from eddyline.state.shelf import Saved

Times = NDArray[np.int64]


class Clock:
    """The times of every row of a source with a ROWS window of `size` rows."""

    def __init__(self, arena: Arena, size: int) -> None:
        self.size = size
        self._times = Column(arena, "i8")
        self._base = self._committed_rows = 0

    def append(self, times: Times) -> NDArray[np.int64]:
        """Rows in event-time order; returns their places in the stream."""
        first = self._times.rows
        self._times.append(times)
        return np.arange(first, first + times.size)

    def least(self, at: Times) -> NDArray[np.int64]:
        """The place from which on rows are in the window at each of these times."""
        known = self._times.values[self._base : self._times.rows]
        counts: NDArray[np.int64] = np.searchsorted(known, at, side="right") + (self._base - self.size)
        return counts

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return self._times.rows

    def commit(self, watermark: int) -> None:
        """Times below the watermark will not be asked about again; the count of them stays."""
        known = self._times.values[self._base : self._times.rows]
        self._base += int(np.searchsorted(known, watermark))
        self._times.release(self._base)
        self._committed_rows = self._times.rows

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self._times.truncate(self._committed_rows)

    def saved(self) -> Saved:
        """What another process must know of it."""
        return {"times": self._times.saved(), "base": self._base, "committed": self._committed_rows}

    def restore(self, saved: Saved) -> None:
        """Tell the same."""
        self._times.restore(saved["times"])
        self._base, self._committed_rows = saved["base"], saved["committed"]

    def start_at(self, rows: int) -> None:
        """So many rows there were, all of them below the watermark: a new clock goes on from there."""
        self._times.release(rows)
        self._times.rows = self._base = self._committed_rows = rows

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._times.nbytes
