"""One slot: the state of a query and the eddy over it.

    feed(stream, rows)* -> advance(watermarks) -> drain() -> commit(version)

is a batch; `wind_back` in place of `commit` undoes it. The slot knows nothing of where rows come from or go to, nor of
other slots: what it is given to build decides which results it makes (see plan/partition.py). Rows fed are readable and
not late (see intake.py). Between `feed` and `advance` watermarks stand still; `advance` takes in
what was fed, slice by slice, each when the eddy has nothing else to do, and flushes the eddy: the results of a batch
leave with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.engine.in_order import InOrder
from eddyline.engine.input_batch import InputBatch
from eddyline.engine.intake import event_times
from eddyline.engine.planned import Planned
from eddyline.engine.results import Groups, Named, Results, Rows
from eddyline.engine.split import Shipment, Which, kept_values, wanted
from eddyline.plan.bounds import FOREVER
from eddyline.plan.tree import Tree
from eddyline.query.model import Query
from eddyline.routing.packet import Packet, alike, in_parts, merged
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.shelf import Saved

RESULT_ROWS = 65536
"""Complete tuples are gathered when so many have come together."""

_OWN = "\0own"
"""The column that says of waiting rows, filtered before, which are built here; no name that a stream could have."""


class _Part(Protocol):
    """What can be undone and weighed."""

    def wind_back(self) -> None: ...

    @property
    def nbytes(self) -> int: ...


class Slot(Planned):
    """Build, route, expire, commit."""

    def __init__(
        self,
        query: Query,
        settings: Settings,
        arena: Arena | None = None,
        clock: Callable[[], float] = time.perf_counter,
        partial: bool = False,
        tree: Tree | None = None,
    ) -> None:
        """With `partial` aggregates are given as cells, for `partial.combine`. `tree` is the shape to begin with, if it
        is not what the settings say."""
        super().__init__(query, settings, arena or Arena(), clock, tree)
        streams = [i for i, s in enumerate(query.sources) if not s.stream.is_table]
        self._waiting = {i: InOrder(query, i) for i in streams} if self._clocks else {}
        self._results: Results = (
            Rows(query, self.errors)
            if query.group is None
            else Groups(query, query.group, self.stems, self._clocks, self.errors, partial)
        )
        self.input_batch = InputBatch(settings.input_batch or settings.packet)
        self._in_order = settings.execution == "total"
        self._ready: list[Packet] = []
        self._ready_rows = 0
        self._committed_number = 0
        self._watermark: int | None = None
        self._committed_watermark: int | None = None
        self._committed_errors = 0
        self.version = 0
        self.batch_done: Sequence[str] | None = None
        """The histories (turn.py) before and after a batch that is neither committed nor wound back, for the next."""
        self.peak_rows = self.peak_bytes = 0
        """State at the end of the last batch, before anything expired."""

    # Input

    def feed(self, stream: str, batch: pa.RecordBatch) -> None:
        """Rows of a stream or, before the first batch, of a table."""
        begin = self._cpu()
        for source, item in enumerate(self.query.sources):
            if item.stream.name != stream:
                continue
            if source in self._waiting:
                self._waiting[source].add(batch)
            else:
                self._arrive(source, batch, self._times(source, batch), None)
        self._spent += self._cpu() - begin

    def feed_source(self, source: int, batch: pa.RecordBatch, build: Which = None) -> None:
        """Rows of one source that were filtered before (split.py), of which this slot builds some. Those of a ROWS
        window are all counted, so which are built is kept with them while they wait."""
        begin = self._cpu()
        self._feed_source(source, batch, build)
        self._spent += self._cpu() - begin

    def _feed_source(self, source: int, batch: pa.RecordBatch, build: Which) -> None:
        if source in self._clocks:
            own = np.ones(batch.num_rows, np.bool_) if build is None else build
            self._waiting[source].add(batch.append_column(_OWN, pa.array(own)))
            return
        batch = batch if build is None else batch.take(pa.array(np.flatnonzero(build)))
        if source in self._waiting:
            self._waiting[source].add(batch.append_column(_OWN, pa.repeat(True, batch.num_rows)))
        elif batch.num_rows:
            values = kept_values(self.plan, source, batch)
            self.stems[source].rows.append(values, self._times(source, batch), None)

    def receive(self, shipment: Shipment) -> None:
        """What the split has for this slot."""
        if shipment.build is None:
            self.feed(shipment.stream, shipment.batch)
            return
        for source, build in shipment.build.items():
            self.feed_source(source, shipment.batch, build)

    def _times(self, source: int, batch: pa.RecordBatch) -> NDArray[np.int64]:
        time = self.query.sources[source].stream.time
        return np.zeros(batch.num_rows, np.int64) if time is None else event_times(batch.column(time))

    def _arrive(
        self, source: int, batch: pa.RecordBatch, times: NDArray[np.int64], ordinals: NDArray[np.int64] | None
    ) -> None:
        """Filter, and store for `take_in`; rows that were filtered before say whether they are built here."""
        if _OWN in batch.schema.names:
            keep: Which = batch.column(_OWN).to_numpy(zero_copy_only=False)
            batch = batch.filter(batch.column(_OWN)).drop_columns([_OWN])
            values = kept_values(self.plan, source, batch)
        else:
            values, keep = wanted(self.plan, source, batch, self.errors)
            if keep is not None:
                kept = pa.array(keep)
                values = {expr: array.filter(kept) for expr, array in values.items()}
        if keep is not None:
            times, ordinals = times[keep], None if ordinals is None else ordinals[keep]
        if times.size:
            self.stems[source].rows.append(values, times, ordinals)

    def take_in(self) -> None:
        """Build what was fed and send it round the eddy, a slice whenever nothing else is to be done there, until all
        of it and all that came of it has gone through. A slice has the same share of every source, because sources that
        are read side by side cover the same stretch of time; the rows of one probe before those of the next are built,
        which would only be too new for them."""
        work, stems = self.eddy.work, self._base_stems
        while left := sum(stem.waiting for stem in stems):
            calls, passed, built = work.calls, int(work.passed[0]), 0
            begin = self.eddy.clock()
            for source, rows in self._next_rows(left):
                self.eddy.build(source, rows)
                built += rows
                (self.eddy.flush if self._in_order else self.eddy.run)()
            calls = work.calls - calls + len(stems)
            self.input_batch.observe(built, calls, int(work.passed[0]) - passed)
            self._move_some(self.eddy.clock() - begin, built)
        self.eddy.flush()
        while self._track_has_more():
            self.eddy.flush()

    def _next_rows(self, left: int) -> list[tuple[int, int]]:
        """How many rows of which sources come next. In the totally synchronised model that is one, the oldest of those
        that are next in their sources, and it goes all its way before another comes."""
        waiting = [(source, stem) for source, stem in enumerate(self._base_stems) if stem.waiting]
        if self._in_order:
            return [(min(waiting, key=lambda item: item[1].rows.times.values[item[1].built])[0], 1)]
        slices = -(-left // self.input_batch.rows)
        return [(source, -(-stem.waiting // slices)) for source, stem in waiting]

    # Output

    def _complete(self, packet: Packet) -> None:
        self._ready.append(packet)
        self._ready_rows += packet.size
        if self._ready_rows >= RESULT_ROWS:
            self._gather()

    def _gather(self) -> None:
        ready, self._ready, self._ready_rows = self._ready, [], 0
        for packet in map(merged, alike(ready)):
            for part, values in in_parts(packet, lambda some: (some, self.eddy.gather(some, self.plan.gathered))):
                self._results.add(part, values)

    def drain(self) -> list[pa.RecordBatch]:
        """The results since the last call."""
        return self._results.drain()

    # Time

    def advance(self, watermarks: Mapping[str, int | None], query_watermark: int | None) -> None:
        """The batch is complete, and no row below these times will come any more."""
        begin = self._cpu()
        if self._waiting and query_watermark is not None:
            self._release(query_watermark)
        self.take_in()
        self._gather()
        if query_watermark is not None:
            self._results.advance(query_watermark)
        self._watermark = query_watermark
        self.peak_rows, self.peak_bytes = self.state_rows, self.state_bytes
        self._expire(watermarks)
        if self.planner is not None and not self.plan.grouped:
            took = self._spent + self._cpu() - begin
            self.planner.watch(watermarks, self._base_stems, self.eddy, self.peak_bytes, took)
        self._spent = 0.0

    def loaded(self, watermarks: Mapping[str, int | None], query_watermark: int | None, version: int) -> None:
        """What was received is the state of a version, from before: it is built, and nothing probes. Rows that ROWS
        windows have counted already (the clocks know how many) get the last places there are. Older ones may be
        missing, if they are in no window any more (`counted`): those that came along then get places that are too
        large, but still in no window, since all rows that are not older are there."""
        if self._waiting and query_watermark is not None:
            for source, waiting in self._waiting.items():
                batch = waiting.release(query_watermark)
                if batch is not None:
                    clock = self._clocks.get(source)
                    places = None if clock is None else np.arange(clock.rows - batch.num_rows, clock.rows)
                    self._arrive(source, batch, self._times(source, batch), places)
        for stem in self._base_stems:
            stem.build(0, stem.waiting)
        self._watermark = query_watermark
        self._expire(watermarks)
        self.errors.count, self.errors.first = 0, ""
        self.commit(version)
        if self.plan.materialised:
            self._make_states()
        if self.planner is not None:
            self.planner.go_on(self._base_stems, self.eddy)

    def _release(self, watermark: int) -> None:
        """Feed what waited for the watermark. All clocks tell the new rows before any of them probes."""
        released = {}
        for source, waiting in self._waiting.items():
            batch = waiting.release(watermark)
            if batch is not None:
                times = self._times(source, batch)
                clock = self._clocks.get(source)
                released[source] = (batch, times, None if clock is None else clock.append(times))
        for source, (batch, times, ordinals) in released.items():
            self._arrive(source, batch, times, ordinals)

    def _expire(self, watermarks: Mapping[str, int | None]) -> None:
        by_source = [FOREVER if s.stream.is_table else watermarks[s.stream.name] for s in self.query.sources]
        if self._waiting:
            by_source = [FOREVER if s.stream.is_table else self._watermark for s in self.query.sources]
        for source, stem in enumerate(self.stems):
            if stem.layout.components:  # after those of the sources
                stem.expire_tuples(self.stems)
                continue
            if stem.layout.timed:
                stem.expire(self.plan.graph.bounds.horizon(source, by_source))
            if source in self._clocks:
                stem.expire_ordinals(self._clocks[source].rows - self._clocks[source].size)
        if self.migration is not None:
            self.migration.expire()

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
        if self.migration is not None:
            self.migration.commit()
        for waiting in self._waiting.values():
            waiting.commit()
        for clock in self._clocks.values():
            clock.commit(-FOREVER if self._watermark is None else self._watermark)
        self._results.commit(self._watermark)
        self._committed_number, self._committed_watermark, self.version = self.eddy.number, self._watermark, version
        self._committed_errors = self.errors.count

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        for part in self._parts:
            part.wind_back()
        self.eddy.clear()
        self._ready, self._ready_rows = [], 0
        self.eddy.number, self._watermark = self._committed_number, self._committed_watermark
        self.errors.count = self._committed_errors

    def saved(self) -> Saved:
        """What another process must know beside what is in the arena (see attach.py), when a batch is done and drained:
        the state of now, and what it takes to wind back to the last commit."""
        shelf = self.arena.shelf
        return {
            "plan": self.plan.text,
            "numbers": [self.version, self.eddy.number, self._watermark, self.errors.count, self.errors.first],
            "done": self.batch_done,
            "committed": [self._committed_number, self._committed_watermark, self._committed_errors],
            "stems": [stem.saved() for stem in self.stems],
            "clocks": [clock.saved() for clock in self._clocks.values()],
            "waiting": [waiting.saved(shelf) for waiting in self._waiting.values()],
            "results": self._results.saved(shelf),
            "input_batch": self.input_batch.saved(),
            "eddy": self.eddy.saved(),
            "planner": None if self.planner is None else self.planner.saved(),
            "migration": None if self.migration is None else self.migration.saved(),
        }

    def restore(self, saved: Saved) -> None:
        """Go on where another process was, in the same arena."""
        shelf = self.arena.shelf
        self.version, self.eddy.number, self._watermark, self.errors.count, self.errors.first = saved["numbers"]
        self.batch_done = saved["done"]
        self._committed_number, self._committed_watermark, self._committed_errors = saved["committed"]
        for stem, of_stem in zip(self.stems, saved["stems"], strict=True):
            stem.restore(of_stem)
        if self.migration is not None:
            self.migration.restore(saved["migration"])
        for clock, of_clock in zip(self._clocks.values(), saved["clocks"], strict=True):
            clock.restore(of_clock)
        for waiting, of_waiting in zip(self._waiting.values(), saved["waiting"], strict=True):
            waiting.restore(of_waiting, shelf)
        self._results.restore(saved["results"], shelf)
        self.input_batch.restore(saved["input_batch"])
        self.eddy.restore(saved["eddy"])
        if self.planner is not None and saved["planner"] is not None:
            self.planner.restore(saved["planner"])

    def close(self) -> None:
        """Let go of the arena and, at once, of all that looks into it; the slot cannot be used any more."""
        self.stems.clear()
        self.eddy.close()
        self._clocks.clear()
        self.arena.close()

    def small_state(self) -> tuple[dict[str, Saved], Named]:
        """What of the state of now cannot be made again from the live rows alone: cells, complete tuples that wait for
        ROWS windows, how many rows these have counted."""
        results, batches = self._results.small_state()
        return {"results": results, "clocks": {str(s): c.small_state() for s, c in self._clocks.items()}}, batches

    def restore_small_state(self, numbers: dict[str, Saved], batches: Named) -> None:
        """Begin with the small state of one slot; or with the batches of several and the numbers, which are the same in
        all of them, of any."""
        self._results.restore_small_state(numbers["results"], batches)
        for source, of_clock in numbers["clocks"].items():
            self._clocks[int(source)].start_at(of_clock)

    def counted(self) -> dict[str, int | None]:
        """By source with a ROWS window the time before which rows are in no window any more; None: not known."""
        return {str(source): clock.horizon for source, clock in self._clocks.items()}

    # Statistics

    @property
    def state_rows(self) -> int:
        """Rows held in SteMs, waiting rows and panes."""
        held = sum(stem.held for stem in self.stems)
        held += 0 if self.migration is None else self.migration.rows
        return held + sum(w.rows for w in self._waiting.values()) + self._results.rows

    @property
    def waiting(self) -> int:
        """Rows, and cells of groups, that wait for the watermark."""
        return sum(w.rows for w in self._waiting.values()) + self._results.rows

    @property
    def state_bytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self._parts)

    @property
    def _parts(self) -> list[_Part]:
        moving: list[_Part] = [] if self.migration is None else [self.migration]
        return [*moving, *self.stems, *self._waiting.values(), *self._clocks.values(), self._results]
