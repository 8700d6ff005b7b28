"""The places of logged rows in their stream, for sweeps of a query with a ROWS window.

While a query runs, rows are counted when the watermark passes them, and a SteM keeps the place of each. A logged row
has no place. A sweep counts again: the log has all rows of the stream from some time on, and the number of rows below
the watermark is known, so the last of them has the last place. The place of a row is that of the first row of its time,
plus its rank among the rows of the same time: by the columns that the query uses, as in in_order.py.

The rank is computed only where it matters. A row at place p is in a window of n rows at time t exactly if the row at
place p + n is newer than t, or is not there. If the first and the last row of one time leave the window at the same
time, all rows between them do, and each may have the place of the first. Where slide boundaries to come will ask again,
ranks are computed for all rows that are still in the window.

Rows that are equal in all columns are interchangeable: they have the same group and came in the same epoch, so either
all their results with other rows are missing or none is. But each of them must have a place of its own for the whole
sweep. So ranks are kept by where a row is in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.model import BoundQuery
from eddyline.engine.in_order import order_of, sort_keys
from eddyline.engine.intake import event_times
from eddyline.plan.bounds import FOREVER

Ints = NDArray[np.int64]

Pieces = Callable[[], Iterable[tuple[Hashable, pa.RecordBatch]]]
"""All logged rows of a stream, in pieces with names; the same at each call."""

AT_A_TIME = 1 << 18
"""Rows of equal times that are put in order together; more only if they have one time."""


@dataclass(frozen=True)
class CountedSpan:
    """Which rows of a stream the log has, and how many there were."""

    least: int
    """The log has all rows from this time on."""
    until: int
    """Rows from this time on are left out."""
    watermark: int
    """Rows below it were counted."""
    rows: int
    """The number of rows that were counted, since the stream began."""
    held: int = -FOREVER
    """No one asks for the window at an earlier time."""


@dataclass
class _Ranked:
    """Rows of one piece, in the order of their numbers in it, and their places."""

    at: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    places: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, at: Ints, places: Ints) -> None:
        at, places = np.concatenate([self.at, at]), np.concatenate([self.places, places])
        order = np.argsort(at)
        self.at, self.places = at[order], places[order]


class LoggedPlaces:
    """The places of the rows of one source with a ROWS window."""

    def __init__(
        self, query: BoundQuery, source: int, pieces: Pieces, span: CountedSpan, at_a_time: int = AT_A_TIME
    ) -> None:
        stream, group = query.sources[source].stream, query.group
        assert stream.time is not None
        self._time, self._used = stream.time, query.columns_of_source(source)
        self._size, self._pieces, self._span = query.sources[source].window.size, pieces, span
        self._times = self._all_times()
        self._first = span.rows - int(self._times.searchsorted(span.watermark))
        """The place of the first of these times."""
        self._ranked: dict[Hashable, _Ranked] = {}
        later = group is not None and group.slide is not None
        for times in self._tied(later, at_a_time):
            self._rank(times)

    def _all_times(self) -> Ints:
        found = [np.empty(0, np.int64)]
        for _, batch in self._pieces():
            times = event_times(batch.column(self._time))
            found.append(times[(times >= self._span.least) & (times < self._span.until)])
        times = np.concatenate(found)
        times.sort()  # in place: there may be many
        return times

    def least(self, at: Ints) -> Ints:
        """The place from which on rows are in the window at each of these times."""
        found: Ints = self._times.searchsorted(at, side="right") + (self._first - self._size)
        return found

    def of(self, piece: Hashable, first: int, times: Ints) -> Ints:
        """The places of rows of a piece, from number `first` on, which have these times."""
        found: Ints = self._times.searchsorted(times) + self._first
        if (ranked := self._ranked.get(piece)) is not None:
            begin, end = ranked.at.searchsorted([first, first + times.size]).tolist()
            found[ranked.at[begin:end] - first] = ranked.places[begin:end]
        return found

    def _tied(self, later: bool, at_a_time: int) -> Iterator[Ints]:
        """The times whose rows have to be told apart, in order, some at a time."""
        times = self._times
        firsts = np.flatnonzero(np.append(True, times[1:] != times[:-1])[: times.size])
        counts = np.diff(np.append(firsts, times.size))
        firsts, counts = firsts[counts > 1], counts[counts > 1]
        leave = self._leave_at(firsts + counts - 1)
        which = leave >= self._span.held
        if not later:
            which &= self._leave_at(firsts) != leave
        tied, rows = times[firsts[which]], np.cumsum(counts[which])
        if tied.size:
            yield from np.split(tied, np.flatnonzero(np.diff(rows // at_a_time)) + 1)

    def _leave_at(self, at: Ints) -> Ints:
        """The times at which rows leave the window, given their numbers among these times."""
        after = at + self._size
        known = after < self._times.size
        found = np.full(at.size, FOREVER)
        found[known] = self._times[after[known]]
        return found

    def _rank(self, tied: Ints) -> None:
        """Tell the rows of these times apart."""
        pieces, numbers, keys = list[Hashable](), list[Ints](), list[list[pa.Array]]()
        for piece, batch in self._pieces():
            times = event_times(batch.column(self._time))
            at = tied[np.minimum(tied.searchsorted(times), tied.size - 1)]
            found = np.flatnonzero(at == times)
            if found.size:
                pieces.append(piece)
                numbers.append(found)
                keys.append(sort_keys(batch.take(pa.array(found)), self._time, self._used))
        order = order_of([pa.concat_arrays(parts) for parts in zip(*keys, strict=True)]).to_numpy()
        times = np.concatenate([part[0].to_numpy() for part in keys])[order]
        firsts = self._times.searchsorted(times)
        places = np.empty(order.size, np.int64)
        places[order] = self._first + firsts + _ranks(firsts)
        ends = np.cumsum([found.size for found in numbers])
        for piece, found, some in zip(pieces, numbers, np.split(places, ends[:-1]), strict=True):
            self._ranked.setdefault(piece, _Ranked()).add(found, some)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._times.nbytes + sum(r.at.nbytes + r.places.nbytes for r in self._ranked.values())


def _ranks(groups: Ints) -> Ints:
    """By row its number within its group; rows of a group are neighbours.

    >>> _ranks(np.array([4, 4, 7, 7, 7])).tolist()
    [0, 1, 0, 1, 2]
    """
    begins = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    lengths = np.diff(np.append(begins, groups.size))
    return np.arange(groups.size) - np.repeat(begins, lengths)
