"""One slot: the state of a query and the eddy over it.

    feed(stream, rows)* -> advance(watermarks) -> drain() -> commit(version)

is a batch; `wind_back` in place of `commit` undoes it. The slot knows nothing of where rows come from or go to. Rows
fed are readable and not late (see intake.py). Between `feed` and `advance` watermarks stand still; `advance` takes in
what was fed, slice by slice, each when the eddy has nothing else to do, and flushes the eddy: the results of a batch
leave with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.engine.in_order import InOrder
from eddyline.engine.input_batch import InputBatch
from eddyline.engine.intake import event_times
from eddyline.engine.results import Groups, Results, Rows
from eddyline.plan.bounds import FOREVER
from eddyline.plan.plan import Plan
from eddyline.query.evaluate import ErrorCount, evaluate, mask
from eddyline.query.expr import Column, Expr
from eddyline.query.model import Query, WindowKind
from eddyline.query.types import decode
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet, merged, started
from eddyline.routing.rows_windows import Clock
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.keys import without_null
from eddyline.state.stem import SteM

RESULT_ROWS = 65536
"""Complete tuples are gathered when so many have come together."""


class _Part(Protocol):
    """What can be undone and weighed."""

    def wind_back(self) -> None: ...

    @property
    def nbytes(self) -> int: ...


class Slot:
    """Build, route, expire, commit."""

    def __init__(
        self,
        query: Query,
        settings: Settings,
        arena: Arena | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        arena = arena or Arena()
        self.query, self.plan, self.errors = query, Plan(query), ErrorCount()
        sources = query.sources
        self.stems = [SteM(arena, layout) for layout in self.plan.layouts]
        self._clocks = {
            i: Clock(arena, s.window.size) for i, s in enumerate(sources) if s.window.kind is WindowKind.ROWS
        }
        streams = [i for i, s in enumerate(sources) if not s.stream.is_table]
        self._waiting = {i: InOrder(query, i) for i in streams} if self._clocks else {}
        self._results: Results = (
            Rows(query, self.errors)
            if query.group is None
            else Groups(query, query.group, self.stems, self._clocks, self.errors)
        )
        self.eddy = Eddy(self.plan, self.stems, self._clocks, settings, self.errors, self._complete, clock)
        self.input_batch = InputBatch(settings.input_batch or settings.packet)
        self._ready: list[Packet] = []
        self._ready_rows = 0
        self._number = self._committed_number = 0
        self._watermark: int | None = None
        self._committed_watermark: int | None = None
        self.version = 0
        self.peak_rows = self.peak_bytes = 0
        """State at the end of the last batch, before anything expired."""

    # Input

    def feed(self, stream: str, batch: pa.RecordBatch) -> None:
        """Rows of a stream or, before the first batch, of a table."""
        for source, item in enumerate(self.query.sources):
            if item.stream.name != stream:
                continue
            if source in self._waiting:
                self._waiting[source].add(batch)
            else:
                times = np.zeros(batch.num_rows, np.int64)
                if item.stream.time is not None:
                    times = event_times(batch.column(item.stream.time))
                self._arrive(source, batch, times, None)

    def _arrive(
        self, source: int, batch: pa.RecordBatch, times: NDArray[np.int64], ordinals: NDArray[np.int64] | None
    ) -> None:
        """Filter, and store for `take_in`."""
        values = self._values(source, batch)
        keep = self._wanted(source, values, batch.num_rows)
        if keep is not None:
            if not keep.any():
                return
            kept = pa.array(keep)
            values = {expr: array.filter(kept) for expr, array in values.items()}
            times, ordinals = times[keep], None if ordinals is None else ordinals[keep]
        if times.size:
            self.stems[source].store(values, times, ordinals)

    def take_in(self) -> None:
        """Build what was fed and send it round the eddy, a slice whenever nothing else is to be done there, until all
        of it and all that came of it has gone through. A slice has the same share of every source, because sources that
        are read side by side cover the same stretch of time."""
        work = self.eddy.work
        while left := sum(stem.stored - stem.rows for stem in self.stems):
            calls, passed, before = work.calls, int(work.passed[0]), self._number
            slices = -(-left // self.input_batch.rows)
            for source, stem in enumerate(self.stems):
                rows = -(-(stem.stored - stem.rows) // slices)
                if rows:
                    first, last = stem.build(self._number, rows)
                    packet = started(source, first, last, self._number)
                    self._number += rows
                    self.eddy.start(packet)
            self.eddy.run()
            calls = work.calls - calls + len(self.stems)
            self.input_batch.observe(self._number - before, calls, int(work.passed[0]) - passed)
        self.eddy.flush()

    def _values(self, source: int, batch: pa.RecordBatch) -> dict[Expr, pa.Array]:
        names = batch.schema.names
        fields = self.query.sources[source].stream.schema
        return {Column(source, n, fields.field(n).type): batch.column(i) for i, n in enumerate(names)}

    def _wanted(self, source: int, values: dict[Expr, pa.Array], rows: int) -> NDArray[np.bool_] | None:
        """The rows that pass the filters and have no NULL in a key, None if all do. Leaves in `values` what the SteM
        keeps."""
        graph, layout = self.plan.graph, self.plan.layouts[source]
        keep: NDArray[np.bool_] | None = np.zeros(rows, np.bool_) if graph.never else None
        for predicate in graph.filters[source]:
            passed = mask(predicate, values, rows, self.errors)
            keep = passed if keep is None else keep & passed
        for expr in layout.needed:
            if expr not in values:
                values[expr] = evaluate(expr, values, rows, self.errors)
        valid = without_null([self._comparable(values[expr]) for expr in (*layout.keys, *layout.order_keys)])
        if valid is not None:
            keep = valid if keep is None else keep & valid
        for expr in [e for e in values if e not in layout.needed]:
            del values[expr]
        return None if keep is None or keep.all() else keep

    def _comparable(self, array: pa.Array) -> pa.Array:
        """A key as it will be encoded: a value that cannot be is NULL, and counted."""
        known = array if pa.types.is_dictionary(array.type) else decode(array)
        self.errors.count += known.null_count - array.null_count
        return known

    # Output

    def _complete(self, packet: Packet) -> None:
        self._ready.append(packet)
        self._ready_rows += packet.size
        if self._ready_rows >= RESULT_ROWS:
            self._gather()

    def _gather(self) -> None:
        if not self._ready:
            return
        packet = merged(self._ready)
        self._ready, self._ready_rows = [], 0
        self._results.add(packet, self.eddy.gather(packet, self.plan.gathered))

    def drain(self) -> list[pa.RecordBatch]:
        """The results since the last call."""
        return self._results.drain()

    # Time

    def advance(self, watermarks: Mapping[str, int | None], query_watermark: int | None) -> None:
        """The batch is complete, and no row below these times will come any more."""
        if self._waiting and query_watermark is not None:
            self._release(query_watermark)
        self.take_in()
        self._gather()
        if query_watermark is not None:
            self._results.advance(query_watermark)
        self._watermark = query_watermark
        self.peak_rows, self.peak_bytes = self.state_rows, self.state_bytes
        self._expire(watermarks)

    def _release(self, watermark: int) -> None:
        """Feed what waited for the watermark. All clocks tell the new rows before any of them probes."""
        released = {}
        for source, waiting in self._waiting.items():
            batch = waiting.release(watermark)
            if batch is not None:
                times = event_times(batch.column(self.query.sources[source].stream.time))
                clock = self._clocks.get(source)
                released[source] = (batch, times, None if clock is None else clock.append(times))
        for source, (batch, times, ordinals) in released.items():
            self._arrive(source, batch, times, ordinals)

    def _expire(self, watermarks: Mapping[str, int | None]) -> None:
        by_source = [FOREVER if s.stream.is_table else watermarks[s.stream.name] for s in self.query.sources]
        if self._waiting:
            by_source = [FOREVER if s.stream.is_table else self._watermark for s in self.query.sources]
        for source, stem in enumerate(self.stems):
            if stem.layout.timed:
                stem.expire(self.plan.graph.bounds.horizon(source, by_source))
            if source in self._clocks:
                stem.expire_ordinals(self._clocks[source].rows - self._clocks[source].size)

    def end(self, newest: int | None) -> None:
        """Every stream has ended; `newest` is the newest time of any readable row: flush what waits."""
        if self._waiting:
            self._release(FOREVER)
        self.take_in()
        self._gather()
        self._results.end(newest)

    # Commit and wind-back

    def commit(self, version: int) -> None:
        """What happened since the last commit cannot be undone from here on; what expired is given back."""
        for stem in self.stems:
            stem.commit()
        for waiting in self._waiting.values():
            waiting.commit()
        for clock in self._clocks.values():
            clock.commit(-FOREVER if self._watermark is None else self._watermark)
        self._results.commit(self._watermark)
        self._committed_number, self._committed_watermark, self.version = self._number, self._watermark, version

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        parts: tuple[_Part, ...] = (*self.stems, *self._waiting.values(), *self._clocks.values(), self._results)
        for part in parts:
            part.wind_back()
        self.eddy.clear()
        self._ready, self._ready_rows = [], 0
        self._number, self._watermark = self._committed_number, self._committed_watermark

    # Statistics

    @property
    def state_rows(self) -> int:
        """Rows held in SteMs, waiting rows and panes."""
        held = sum(stem.rows - stem.min_live for stem in self.stems)
        return held + sum(w.rows for w in self._waiting.values()) + self._results.rows

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        parts: tuple[_Part, ...] = (*self.stems, *self._waiting.values(), *self._clocks.values(), self._results)
        return sum(part.nbytes for part in parts)
