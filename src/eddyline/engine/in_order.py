"""Puts input into event-time order, up to the query's watermark: a query with a ROWS window needs this.

Rows wait here until the watermark has passed them. They leave sorted by event time, and by the columns that the query
uses where times are equal. More rows *at* the watermark may still arrive, so only rows below it leave: rows of the same
time leave together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.model import BoundQuery
from eddyline.bound.types import decode, is_opaque
from eddyline.codec import Snapshot
from eddyline.engine.intake import event_times
from eddyline.state.shelf import Shelf


@dataclass(frozen=True)
class _WaitingRows:
    batch: pa.RecordBatch
    times: NDArray[np.int64]
    oldest: int


class Shelved(Snapshot, frozen=True):
    """Waiting rows on the shelf: their name there, and the time of the oldest."""

    name: str
    oldest: int


class InOrderSnapshot(Snapshot, frozen=True):
    """The rows that wait at present, and those that waited at the last commit."""

    waiting: tuple[Shelved, ...]
    committed: tuple[Shelved, ...]


class InOrder:
    """The rows of one source that wait for the watermark."""

    def __init__(self, query: BoundQuery, source: int) -> None:
        stream = query.sources[source].stream
        assert stream.time is not None
        self._time, self._used = stream.time, query.columns_of_source(source)
        self._waiting: tuple[_WaitingRows, ...] = ()
        self._committed: tuple[_WaitingRows, ...] = ()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows that wait."""
        times = event_times(batch.column(self._time))
        if times.size:
            self._waiting = (*self._waiting, _WaitingRows(batch, times, int(times.min())))

    def release(self, watermark: int) -> pa.RecordBatch | None:
        """The rows below the watermark, in order; None if there are none."""
        touched = [w for w in self._waiting if w.oldest < watermark]
        if not touched:
            return None
        self._waiting = tuple(w for w in self._waiting if w.oldest >= watermark)
        for w in touched:
            self.add(w.batch.filter(pa.array(w.times >= watermark)))
        return self._sorted(pa.concat_batches([w.batch.filter(pa.array(w.times < watermark)) for w in touched]))

    def _sorted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.take(order_of(sort_keys(batch, self._time, self._used)))

    def commit(self) -> None:
        """Commit: events before it cannot be undone any more."""
        self._committed = self._waiting

    def wind_back(self) -> None:
        """Undo everything since the last commit. Batches are immutable, so the rows that waited then are unchanged."""
        self._waiting = self._committed

    def saved(self, shelf: Shelf) -> InOrderSnapshot:
        """A snapshot for another process; the rows are put on the shelf."""

        def shelved(waiting: tuple[_WaitingRows, ...]) -> tuple[Shelved, ...]:
            return tuple(Shelved(shelf.put(w, lambda w: [w.batch]), w.oldest) for w in waiting)

        return InOrderSnapshot(shelved(self._waiting), shelved(self._committed))

    def restore(self, saved: InOrderSnapshot, shelf: Shelf) -> None:
        """Restore from a snapshot."""

        def held(rows: Shelved) -> _WaitingRows:
            return shelf.get(rows.name, lambda b: _WaitingRows(b[0], event_times(b[0].column(self._time)), rows.oldest))

        self._waiting, self._committed = tuple(map(held, saved.waiting)), tuple(map(held, saved.committed))

    @property
    def rows(self) -> int:
        """The number of waiting rows."""
        return sum(w.batch.num_rows for w in self._waiting)

    @property
    def nbytes(self) -> int:
        """Bytes of the waiting rows."""
        return sum(w.batch.nbytes + w.times.nbytes for w in self._waiting)


def sort_keys(batch: pa.RecordBatch, time: str, used: Sequence[str]) -> list[pa.Array]:
    """The columns by which rows are put in order: their times, then those that the query uses."""
    return [pa.array(event_times(batch.column(time))), *(_sortable(batch.column(name)) for name in used)]


def order_of(keys: Sequence[pa.Array]) -> pa.Array:
    """The order of rows by their sort keys, as row numbers."""
    names = [str(n) for n in range(len(keys))]
    order: pa.Array = pc.sort_indices(pa.table(list(keys), names), sort_keys=[(name, "ascending") for name in names])
    return order


def _sortable(column: pa.Array) -> pa.Array:
    """A column that sorts like the values; types without an order are sorted by their printed form."""
    if is_opaque(column.type) or pa.types.is_interval(column.type):
        return pa.array([repr(value) for value in column.to_pylist()])
    return decode(column)
