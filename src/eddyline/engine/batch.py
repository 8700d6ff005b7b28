"""A micro-batch in one process: intake, watermarks, one slot, commit.

    dead and late rows out -> feed -> watermarks move -> advance -> results -> commit

What is counted is counted when the batch is finished, so a batch that is wound back was never there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.engine.intake import as_it_travels, columns_for, take_in
from eddyline.engine.slot import Slot
from eddyline.engine.watermarks import Watermarks
from eddyline.errors import InternalError
from eddyline.plan.bounds import FOREVER
from eddyline.plan.explain import explain
from eddyline.query.model import Query
from eddyline.routing.report import Report, look, measured
from eddyline.settings import Settings

NO_TIME = "the event time is NULL or out of range"


@dataclass
class RunStats:
    """Counts since the start of a run."""

    rows_in: int = 0
    rows_used: int = 0
    rows_late: int = 0
    rows_dead: int = 0
    rows_out: int = 0
    expression_errors: int = 0
    first_error: str = ""
    state_rows: int = 0
    peak_state_rows: int = 0
    memory_bytes: int = 0
    peak_memory_bytes: int = 0
    decisions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchResult:
    """What a batch gave: result rows, late rows by stream, dead rows by stream with the reason."""

    results: list[pa.RecordBatch]
    late: list[tuple[str, pa.RecordBatch]]
    dead: list[tuple[str, pa.RecordBatch, str]]


class LocalEngine:
    """A query on one slot, batch by batch."""

    def __init__(self, query: Query, settings: Settings, clock: Callable[[], float] = time.perf_counter) -> None:
        self.query = query
        self.slot = Slot(query, settings, clock=clock)
        self._streams = {s.stream.name: s.stream for s in query.sources}
        self._needed = {name: self._needed_columns(name) for name in self._streams}
        self._watermarks = Watermarks([s for s in self._streams.values() if not s.is_table])
        self.stats = RunStats()
        self._committed = (copy(self._watermarks), copy(self.stats), 0)

    def _needed_columns(self, stream: str) -> tuple[str, ...]:
        used = {
            n
            for i, s in enumerate(self.query.sources)
            if s.stream.name == stream
            for n in self.query.columns_of_source(i)
        }
        names, time = self._streams[stream].schema.names, self._streams[stream].time
        needed = tuple(n for n in names if n in used or n == time)
        return needed or tuple(names[:1])  # a batch without columns would have no rows

    def explain(self) -> str:
        """The plan, and what was measured on it so far."""
        parts = [explain(self.query), measured(self.query, self.slot.eddy)]
        return "\n\n".join(part for part in parts if part)

    def report(self, seconds: float = 0.0) -> Report:
        """What the eddy did so far, `seconds` after the start."""
        rows = [stem.rows for stem in self.slot.stems]
        return look(self.query, self.slot.eddy, rows, seconds, self.slot.input_batch.rows)

    def load_table(self, stream: str, batch: pa.RecordBatch) -> None:
        """Rows of a static table, before the first batch."""
        table = self._streams[stream]
        if self.slot.version:
            raise InternalError("a table came after the first batch")
        self.slot.feed(stream, columns_for(table, as_it_travels(batch), self._needed[stream]))
        self.slot.take_in()
        self.slot.commit(self.slot.version)
        self._committed = (copy(self._watermarks), copy(self.stats), self.slot.errors.count)

    def batch(
        self, rows: Sequence[tuple[str, pa.RecordBatch]], ended: Collection[str] = (), commit: bool = True
    ) -> BatchResult:
        """Process a batch. `ended` are the streams this is the last batch of. With commit=False the batch can still be
        wound back; `commit` or `wind_back` must follow."""
        stats, newest = self.stats, dict[str, int]()
        late: list[tuple[str, pa.RecordBatch]] = []
        dead: list[tuple[str, pa.RecordBatch, str]] = []
        for name, raw in rows:
            stream, batch = self._streams[name], as_it_travels(raw)
            if self._watermarks.by_stream[name] == FOREVER:
                raise InternalError(f"stream {name} has ended, and a batch of it came")
            intake = take_in(stream, batch, self._watermarks.late_before(name))
            stats.rows_in += batch.num_rows
            stats.rows_used += intake.used.num_rows
            stats.rows_late += intake.late.num_rows
            stats.rows_dead += intake.dead.num_rows
            if intake.late.num_rows:
                late.append((name, intake.late))
            if intake.dead.num_rows:
                dead.append((name, intake.dead, NO_TIME))
            if intake.newest is not None:
                newest[name] = max(intake.newest, newest.get(name, intake.newest))
            if intake.used.num_rows:
                self.slot.feed(name, columns_for(stream, intake.used, self._needed[name]))
        self._watermarks.finish_batch(newest, ended)
        self.slot.advance(self._watermarks.by_stream, self._watermarks.query)
        return self._finish(late, dead, commit)

    def end(self) -> BatchResult:
        """All streams have ended: flush what waits, in a batch of its own."""
        self.slot.end(self._watermarks.newest)
        return self._finish([], [], commit=True)

    def _finish(
        self,
        late: list[tuple[str, pa.RecordBatch]],
        dead: list[tuple[str, pa.RecordBatch, str]],
        commit: bool,
    ) -> BatchResult:
        results = [batch for batch in self.slot.drain() if batch.num_rows]
        stats = self.stats
        stats.rows_out += sum(batch.num_rows for batch in results)
        stats.expression_errors, stats.first_error = self.slot.errors.count, self.slot.errors.first
        stats.decisions = dict(self.slot.eddy.decisions.counts)  # routes stay as decided when a batch is wound back
        stats.state_rows, stats.memory_bytes = self.slot.state_rows, self.slot.state_bytes
        stats.peak_state_rows = max(stats.peak_state_rows, self.slot.peak_rows)
        stats.peak_memory_bytes = max(stats.peak_memory_bytes, self.slot.peak_bytes)
        if commit:
            self.commit()
        return BatchResult(results, late, dead)

    def commit(self) -> None:
        """The batch is done and cannot be undone."""
        self.slot.commit(self.slot.version + 1)
        self.stats.memory_bytes = self.slot.state_bytes
        self._committed = (copy(self._watermarks), copy(self.stats), self.slot.errors.count)

    def wind_back(self) -> None:
        """Undo everything since the last commit."""
        self.slot.wind_back()
        watermarks, stats, errors = self._committed
        self._watermarks, self.stats, self.slot.errors.count = copy(watermarks), copy(stats), errors
