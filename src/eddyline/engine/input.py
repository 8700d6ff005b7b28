"""The input of a slot: stores rows in its SteMs.

Rows are filtered, unless the split has filtered them, and stored in the SteM of their source. In a query with a ROWS
window, the rows of all streams first wait until the watermark has passed them, because they are counted and joined in
the order of their times (in_order.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.model import BoundQuery
from eddyline.engine.executor import Executor
from eddyline.engine.in_order import InOrder, InOrderSnapshot
from eddyline.engine.intake import event_times
from eddyline.engine.split import Shipment, Which, groups_along, kept_values, wanted
from eddyline.errors import InternalError
from eddyline.state.arena import Arena
from eddyline.state.layout import aliases_of
from eddyline.state.part import Cut, Part

_OWN = "\0own"
"""A column of waiting rows that were filtered before: it marks the rows that this slot builds. No stream can have this
name."""

Ints = NDArray[np.int64]

NONE: Mapping[str, int] = {}


class Input(Part):
    """Stores the rows of a slot in its SteMs as soon as they may be joined."""

    name, snapshot = "input", tuple[InOrderSnapshot, ...]

    def __init__(self, query: BoundQuery, executor: Executor, errors: ErrorCount, arena: Arena) -> None:
        self._arena = arena
        self._query, self._executor, self._rows_windows, self._errors = query, executor, executor.rows_windows, errors
        streams = [i for i, s in enumerate(query.sources) if not s.stream.is_table]
        self.waiting = {i: InOrder(query, i) for i in streams} if self._rows_windows else {}
        """The rows of each source that wait for the watermark."""

    def feed(self, stream: str, batch: pa.RecordBatch) -> None:
        """Take rows that are not filtered, for all sources that read the stream. Errors count for each alias, also
        where aliases share a SteM."""
        plan = self._executor.plan
        for source, item in enumerate(self._query.sources):
            if item.stream.name != stream or plan.owners[source] != source:
                continue
            if source in self.waiting:
                self.waiting[source].add(batch)
            else:
                before = self._errors.count
                self._store(source, batch, self._times(source, batch), None)
                self._errors.count += (len(aliases_of(source, plan.owners)) - 1) * (self._errors.count - before)

    def receive(self, shipment: Shipment) -> None:
        """Take rows from the split."""
        if shipment.build is None:
            self.feed(shipment.stream, shipment.batch)
            return
        owners = self._executor.plan.owners
        for source, build in shipment.build.items():
            if owners[source] == source:
                self._receive(source, shipment.batch, build)
            elif not _same(build, shipment.build[owners[source]]):
                raise InternalError(f"sources {owners[source]} and {source} share a SteM and got different rows")

    def take_over(self, source: int, batch: pa.RecordBatch) -> None:
        """Store rows that passed all filters, were built by another slot, and do not wait for a watermark. Those of a
        shared SteM are taken for its owner."""
        if self._executor.plan.owners[source] != source:
            return
        values = kept_values(self._executor.plan, source, batch)
        self._executor.store(source, values, self._times(source, batch), None, self._groups(source, batch))

    def _receive(self, source: int, batch: pa.RecordBatch, build: Which) -> None:
        """Take filtered rows, of which this slot builds some. All rows of a ROWS window are counted, so a column marks
        the rows to build while they wait."""
        if source in self._rows_windows:
            own = np.ones(batch.num_rows, np.bool_) if build is None else build
            self.waiting[source].add(batch.append_column(_OWN, pa.array(own)))
            return
        batch = batch if build is None else batch.take(pa.array(np.flatnonzero(build)))
        if source in self.waiting:
            self.waiting[source].add(batch.append_column(_OWN, pa.repeat(True, batch.num_rows)))
        elif batch.num_rows:
            self.take_over(source, batch)

    def release(self, watermark: int | None) -> None:
        """Store the rows that waited for this watermark. All ROWS windows count the new rows before any of them
        probes."""
        released = [
            (source, batch, times, self._rows_windows[source].append(times) if source in self._rows_windows else None)
            for source, batch, times in self._below(watermark)
        ]
        for of_source in released:
            self._store(*of_source)

    def release_counted(
        self, watermark: int | None, later: Mapping[str, int] = NONE, at: Sequence[int] = ()
    ) -> dict[int, list[int]]:
        """The same for rows that ROWS windows have already counted: they get the last ordinals that were counted, but
        for those of rows that come in later calls, whose numbers by stream are `later`. Older rows may be missing if
        they are in no window any more (`RowsWindow.horizon`). The old rows that are present then get ordinals that are
        too large, but still in no window, because no newer row is missing. Returns by source, for each of the times
        `at`, in order, how many rows are stored that are older."""
        found = {source: [0] * len(at) for source in self.waiting}
        for source, batch, times in self._below(watermark):
            window = self._rows_windows.get(source)
            if window is not None:
                window.recount(times)
            end = 0 if window is None else window.rows - later.get(self._query.sources[source].stream.name, 0)
            ordinals = None if window is None else np.arange(end - batch.num_rows, end)
            cuts = [0, *times.searchsorted(at).tolist(), times.size]
            for number, (first, last) in enumerate(pairwise(cuts)):
                some = slice(first, last)
                rows = batch.slice(first, last - first)
                self._store(source, rows, times[some], None if ordinals is None else ordinals[some])
                if number < len(at):
                    found[source][number] = self._executor.stems[source].rows.stored
        return found

    def _below(self, watermark: int | None) -> Iterator[tuple[int, pa.RecordBatch, Ints]]:
        for source, waiting in self.waiting.items():
            batch = None if watermark is None else waiting.release(watermark)
            if batch is not None:
                yield source, batch, self._times(source, batch)

    def _groups(self, source: int, batch: pa.RecordBatch) -> Ints | None:
        """The partition groups of rows, if the executor needs them."""
        axis, plan = self._executor.spill_axis, self._executor.plan
        return groups_along(axis, plan, source, batch) if axis and self._executor.wants_groups(source) else None

    def _times(self, source: int, batch: pa.RecordBatch) -> Ints:
        time = self._query.sources[source].stream.time
        return np.zeros(batch.num_rows, np.int64) if time is None else event_times(batch.column(time))

    def _store(self, source: int, batch: pa.RecordBatch, times: Ints, ordinals: Ints | None) -> None:
        """Filter; rows that were filtered before say whether they are built here."""
        plan = self._executor.plan
        if _OWN in batch.schema.names:
            keep: Which = batch.column(_OWN).to_numpy(zero_copy_only=False)
            batch = batch.filter(batch.column(_OWN)).drop_columns([_OWN])
            values, groups = kept_values(plan, source, batch), self._groups(source, batch)
        else:
            (values, keep), groups = wanted(plan, source, batch, self._errors), self._groups(source, batch)
            if keep is not None:
                kept = pa.array(keep)
                values = {expr: array.filter(kept) for expr, array in values.items()}
                groups = None if groups is None else groups[keep]
        if keep is not None:
            times, ordinals = times[keep], None if ordinals is None else ordinals[keep]
        self._executor.store(source, values, times, ordinals, groups)

    def commit(self, cut: Cut) -> None:
        for waiting in self.waiting.values():
            waiting.commit()

    def wind_back(self) -> None:
        for waiting in self.waiting.values():
            waiting.wind_back()

    def saved(self) -> tuple[InOrderSnapshot, ...]:
        return tuple(waiting.saved(self._arena.shelf) for waiting in self.waiting.values())

    def restore(self, saved: tuple[InOrderSnapshot, ...]) -> None:
        for waiting, of_waiting in zip(self.waiting.values(), saved, strict=True):
            waiting.restore(of_waiting, self._arena.shelf)

    @property
    def state_rows(self) -> int:
        """The number of waiting rows."""
        return sum(waiting.rows for waiting in self.waiting.values())

    @property
    def state_bytes(self) -> int:
        """Bytes of the waiting rows."""
        return sum(waiting.nbytes for waiting in self.waiting.values())


def _same(one: Which, other: Which) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
