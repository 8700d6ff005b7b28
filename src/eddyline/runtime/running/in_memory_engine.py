"""The engine of a job without a checkpoint: its state is in this process, and results go to the sinks at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from eddyline.engine.batch import BatchEngine, BatchResult
from eddyline.engine.online import RunningEstimate
from eddyline.engine.standing import Standing
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.routing.report import Report
from eddyline.runtime.access.job_lookups import lookups_of
from eddyline.runtime.running.engine import Pulse, Read, WatchSweep, check_memory
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.least_memory import fitting
from eddyline.runtime.running.reading import StreamReader
from eddyline.runtime.sources.source import dead_rows
from eddyline.settings import Settings


class InMemoryEngine:
    """A `BatchEngine` between the sources and the sinks of a job."""

    def __init__(self, job: Job, settings: Settings) -> None:
        self._job, self._memory = job, settings.memory
        lookups = lookups_of(job.query, [table.declaration for table in job.asked])
        self._engine = BatchEngine(job.query, settings, lookups=lookups)
        self._asked = {table.stream.name: table for table in job.asked}
        self._inputs = {i.name: i for i in job.inputs}
        self._finished, self._estimates = False, settings.estimates == "on"
        self._totals: dict[str, int] = {}
        self._most_rows: int | None = None

    def open(self, readers: Sequence[StreamReader]) -> bool:
        """Opens the sinks. For estimates, counts the rows of the streams that can be counted."""
        if self._estimates:
            counted = {reader.stream.name: reader.feed.count() for reader in readers}
            self._totals = {name: rows for name, rows in counted.items() if rows is not None}
        for sink in self._job.sinks:
            sink.open()
        return True

    def load(self, tables: Iterable[Read]) -> None:
        """Takes all rows of all tables."""
        for read in tables:
            if read.readable:
                self._engine.load_table(read.name, read.rows)
            else:
                self._unreadable(read)

    def watch(self, pulse: Pulse) -> None:
        """During batches, `pulse` gets the share of their rows that are taken in."""
        self._engine.watch(pulse)

    def batch(
        self, rows: Sequence[Read], ended: Collection[str], unread: Collection[str], pressure: Pressure = NO_PRESSURE
    ) -> None:
        """Processes a batch, and writes its results."""
        for read in rows:
            if not read.readable:
                self._unreadable(read)
        readable = [(r.name, r.rows) for r in rows if r.readable]
        before = self._engine.held.bytes
        result = self._engine.batch(readable, ended, unread=unread, pressure=pressure)
        self._write(result)
        if self._memory is not None and (taken := sum(batch.num_rows for _, batch in readable)):
            added = sum(slot.peak_bytes for slot in self._engine.slots) - before
            self._most_rows = fitting(taken, added / len(self._engine.slots), self._memory)

    def end(self, watch: WatchSweep) -> None:
        """Writes the results that wait for a watermark: all streams have ended."""
        self._write(self._engine.end())
        self._finished = True

    def stop(self, watch: WatchSweep) -> None:
        """Does nothing: no result is missing."""

    def prefer(self, text: str | None) -> None:
        """From the next batch on, rows that satisfy this condition come first."""
        self._engine.preferences.change(text)

    def check_memory(self) -> None:
        """Raises JobError if the state of a slot takes more than the setting `memory`."""
        if self._memory is not None:
            slots = self._engine.slots
            used = max(slot.state_bytes for slot in slots)
            check_memory(self._memory, used, self._engine.counts.rows_in, of_slot=len(slots) > 1)

    @property
    def waits(self) -> bool:
        """Whether rows wait for the answer of a table."""
        return self._engine.waits

    @property
    def most_rows(self) -> int | None:
        """About how many rows a batch may have so that they fit in memory; None: any number, or not known yet."""
        return self._most_rows

    def close(self) -> None:
        """Closes the sinks."""
        self._engine.close()
        for sink in self._job.sinks:
            sink.close()

    def abandon(self) -> None:
        """Abandons the sinks."""
        self._engine.close()
        for sink in self._job.sinks:
            sink.abandon()

    @property
    def standing(self) -> Standing:
        """The counts and the state of the run after the last batch."""
        return replace(self._engine.standing, finished=self._finished)

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return self._engine.decisions

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of the aggregates of open groups, at most of so many."""
        return self._engine.estimates(self._totals, groups)

    def report(self, seconds: float) -> Report:
        """The work of the eddy so far."""
        return self._engine.report(seconds)

    def explain(self) -> str:
        """The plan, and the measurements on it so far."""
        return self._engine.explain()

    def _unreadable(self, read: Read) -> None:
        self._engine.unreadable(read.name, read.rows.num_rows, read.rows.column(-1)[0].as_py())
        sink = self._inputs[read.name].dead
        if sink is not None:
            sink.write(read.rows)

    def _write(self, result: BatchResult) -> None:
        for batch in result.results:
            if batch.num_rows:
                self._job.sink.write(batch)
        for name, batch in result.late:
            sink = self._inputs[name].late
            if sink is not None and batch.num_rows:
                sink.write(batch.select(self._inputs[name].source.schema.names))
        for failure in result.failed:
            table = self._asked[failure.table]
            if table.dead is not None:
                table.dead.write(dead_rows(table.schema, failure.keys, failure.reasons))
        for one in result.unreadable:
            table = self._asked[one.table]
            if table.dead is not None:
                table.dead.write(dead_rows(table.schema, one.dead.texts, one.dead.reasons))
        for name, batch, reasons in result.dead:
            stream = self._inputs[name]
            if stream.dead is not None and batch.num_rows:
                stream.dead.write(dead_rows(stream.source.schema, batch, reasons))
