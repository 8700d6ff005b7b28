"""ROWS windows: the last n rows of a stream at a point in event time.

A query with a ROWS window takes its input in event-time order, and all rows of the same time together. So the times of
a stream arrive sorted, and the place of a row in its stream is the number of rows before it. `RowsWindow` holds the
times of all rows of one source, filtered or not; the number of rows with ts <= t is then a binary search. A component
is in the window of a tuple whose newest time is t if its place is at least count(t) - n. As t grows, the count grows,
so a tuple that fails while it is partial would also fail when complete: the early check only saves work, and the check
of the complete tuple is the definition.

Times that no later check needs are released. For a few rows, spread over the window, place and time are kept as
*marks*. They tell how old the rows may be that are still in a window (`horizon`); the log uses this.

While groups are on disk, slide boundaries wait for them although the watermark has passed. For these boundaries the
number of rows up to each is kept (`passed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.slide import Slide
from eddyline.codec import Snapshot
from eddyline.plan.bounds import FOREVER
from eddyline.state.arena import Arena
from eddyline.state.column import Column, ColumnSnapshot
from eddyline.state.part import Cut, Named, Part, named, number_of, of_number

Times = NDArray[np.int64]

MARKS = 16
"""The most marks in a window: a log keeps at most 1 / MARKS of a window in vain."""


Marks = tuple[tuple[int, int], ...]
"""(place, time) of some rows, in order."""


@dataclass(frozen=True)
class RowsCounted:
    """How many rows a ROWS window has counted, and marks of their places in time."""

    rows: int
    marks: Marks
    passed: Marks = ()
    """(time, rows up to it), for slide boundaries below the watermark that are not emitted yet."""
    base: int | None = None
    """The number of rows whose times no later check needs; None if it needs none."""


class RowsWindowSnapshot(Snapshot, frozen=True):
    """The counts of a window, at present and at the last commit; the times are in their column."""

    times: ColumnSnapshot
    base: int
    committed_rows: int
    marks: Marks
    committed_marks: Marks
    passed: Marks


class PlacesInWindow(Protocol):
    """Tells which places in its stream a ROWS window has."""

    def least(self, at: Times) -> NDArray[np.int64]:
        """The place from which on rows are in the window at each of these times."""


class RowsWindow(Part):
    """The times of every row of a source with a ROWS window of `size` rows. With `slide` it is also asked for slide
    boundaries that the watermark has passed."""

    snapshot = RowsWindowSnapshot

    def __init__(self, arena: Arena, size: int, slide: Slide | None = None, source: int = 0) -> None:
        self.name = f"window {source}"
        self.size, self._slide = size, slide
        self._times = Column(arena, "i8")
        self._base = self._committed_rows = self._to_recount = 0
        self._marks: Marks = ()
        self._committed_marks: Marks = ()
        self._passed: Marks = ()
        """As of the last commit; the last number is `_base`."""

    def append(self, times: Times) -> NDArray[np.int64]:
        """Count rows, which are in event-time order; returns their places in the stream."""
        first = self._times.rows
        self._times.append(times)
        if times.size and (not self._marks or first - self._marks[-1][0] >= -(-self.size // MARKS)):
            self._marks = (*self._marks, (first, int(times[0])))
            gone = [place for place, _ in self._marks if place <= self._base - self.size]
            self._marks = self._marks[max(len(gone) - 1, 0) :]
        return np.arange(first, first + times.size)

    def least(self, at: Times) -> NDArray[np.int64]:
        """The place from which on rows are in the window at each of these times."""
        known = self._times.values[self._base : self._times.rows]
        counts: NDArray[np.int64] = np.searchsorted(known, at, side="right") + (self._base - self.size)
        if self._passed and (early := at < self._passed[-1][0]).any():
            times, rows = np.array(self._passed, np.int64).T
            counts[early] = rows[np.maximum(times.searchsorted(at[early], side="right") - 1, 0)] - self.size
        return counts

    @property
    def rows(self) -> int:
        """The number of rows counted so far."""
        return self._times.rows

    def horizon(self, held: int | None) -> int | None:
        """The time before which rows are in no window any more, at the time `held`, if rows of that time wait for an
        answer, or later; None: unknown. A mark is the first row of its time, so older rows have smaller places; and at
        least `size` rows are not older."""
        rows = self.rows if held is None else self._rows_before(held)
        found = [time for place, time in self._marks if place <= rows - self.size]
        return found[-1] if found else None

    def _rows_before(self, time: int) -> int:
        """The number of rows that are older, if the time is not below the watermark of the last commit."""
        return self._base + int(np.searchsorted(self._times.values[self._base : self._times.rows], time))

    def _passed_at(self, watermark: int, next: int | None) -> Marks:
        """How many rows there are up to each slide boundary from `next` on that is below the watermark, and up to the
        watermark. Boundaries without a new row are left out: their count is that of the one before."""
        if self._slide is None or next is None or next >= watermark:
            return ()
        known = self._times.values[self._base : self._times.rows]
        known = known[: int(np.searchsorted(known, watermark))]
        times, rows = np.array(self._passed or ((-FOREVER, self._base),), np.int64).T
        times, rows = np.append(times, known), np.append(rows, self._base + 1 + np.arange(known.size))
        times = np.minimum(self._slide.first_from(times), watermark - 1)
        last = np.append(times[1:] != times[:-1], True) & np.append(times[1:] >= next, True)
        return tuple(zip(times[last].tolist(), rows[last].tolist(), strict=True))

    def commit(self, cut: Cut) -> None:
        """Release the times that are final, which no later check needs; their count stays."""
        self._passed = self._passed_at(cut.final, cut.next)
        self._base = self._rows_before(cut.final)
        self._times.release(self._base)
        self._committed_rows, self._committed_marks = self._times.rows, self._marks

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self._times.truncate(self._committed_rows)
        self._marks = self._committed_marks

    def saved(self) -> RowsWindowSnapshot:
        """A snapshot for another process."""
        marks = self._marks, self._committed_marks
        return RowsWindowSnapshot(self._times.saved(), self._base, self._committed_rows, *marks, self._passed)

    def restore(self, saved: RowsWindowSnapshot) -> None:
        """Restore from a snapshot."""
        self._times.restore(saved.times)
        self._base, self._committed_rows = saved.base, saved.committed_rows
        self._marks, self._committed_marks = saved.marks, saved.committed_marks
        self._passed = saved.passed

    def durable(self, cut: Cut) -> Named:
        """The counts, which live rows do not tell."""
        return [(self.name, of_number(self.counted(cut.final, cut.next)))]

    def counted(self, final: int, next: int | None) -> RowsCounted:
        """The counts when everything below a time is final and slide boundaries from `next` on are not emitted yet."""
        return RowsCounted(self.rows, self._marks, self._passed_at(final, next), self._rows_before(final))

    def restore_durable(self, own: Named, any_slot: Named) -> None:
        self.start_at(number_of(named(any_slot, self.name), RowsCounted))

    def start_at(self, counted: RowsCounted) -> None:
        """Start a new window after rows that were counted before. The times of the last of them may still be needed:
        `recount` takes these."""
        base = counted.rows if counted.base is None else counted.base
        self._times.release(base)
        self._times.rows = self._base = self._committed_rows = base
        self._to_recount = counted.rows - base
        self._marks = self._committed_marks = counted.marks
        self._passed = counted.passed

    def recount(self, times: Times) -> None:
        """The times, in order, of rows that were counted before: up to the last one."""
        if self._to_recount:
            self._times.append(times[times.size - self._to_recount :])
            self._committed_rows, self._to_recount = self._times.rows, 0

    @property
    def state_bytes(self) -> int:
        return self._times.nbytes
