"""The loop of a job on the local engine: tables, then batches of streams read side by side, then the end.

Every row read is counted once: by the engine if it was readable, here if its source could not read it. Results reach
the sinks in the batch that made them. A stop asked for from outside takes effect between two batches, and ends every
wait for rows: what was written is right and complete up to there, and what waits for a watermark is not flushed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from eddyline.engine.batch import BatchResult, LocalEngine
from eddyline.engine.seen import Seen
from eddyline.errors import JobError
from eddyline.plan.explain import warnings
from eddyline.routing.report import Report
from eddyline.runtime.reporting.advice import of_streams, summed_up
from eddyline.runtime.reporting.metrics import Metrics
from eddyline.runtime.reporting.summary import Course, Progress, Summary
from eddyline.runtime.running.batch_size import BatchSize
from eddyline.runtime.running.check import flushes
from eddyline.runtime.running.failures import told
from eddyline.runtime.running.feed import Feed
from eddyline.runtime.running.job import Input, Job
from eddyline.runtime.running.reading import StreamReader, gather
from eddyline.runtime.running.waiting import Waiting
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.sources.source import Chunk, dead_rows
from eddyline.settings import Settings, size_text


class Runner(Protocol):
    """Runs one job once, on whichever engine."""

    warnings: list[str]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""

    def run(self, stop: Callable[[], bool], watch: Callable[[Progress], None]) -> Summary:
        """Runs to the end of the streams, or until `stop()` says so; `watch` is told after every batch."""

    def progress(self) -> Progress:
        """Where the run is now; may be called from another thread."""

    def summary(self, stopped: bool) -> Summary:
        """What was done up to now."""

    def explain(self) -> str:
        """The plan, and what was measured on it so far."""

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""


class _Stopped(Exception):
    """A stop was asked for while tables were read: half a table is none."""


class LocalRunner:
    """Runs one job once. `clock` counts seconds; `began` is its reading when the job's start-up began."""

    keeps = False
    """Whether a later run can go on with what was not flushed."""

    def __init__(
        self,
        job: Job,
        settings: Settings,
        clock: Callable[[], float] = time.perf_counter,
        began: float | None = None,
        follow: bool = False,
    ) -> None:
        """With `follow` it waits for more files, for ever."""
        self._job, self._settings, self._follow = job, settings, follow
        self._course = Course(clock, began)
        self._engine = LocalEngine(job.query, settings)
        self._inputs = {i.name: i for i in job.inputs}
        self._readers = [StreamReader(i, follow) for i in job.inputs if i.time is not None]
        self._tables = [(i, Feed(i)) for i in job.inputs if i.time is None]
        self._unread: dict[str, Seen] = {}
        """By stream or table, what its source could not read; of tables also what it could."""
        self.warnings = warnings(job.query)
        """Sources whose state can never expire."""

    def run(
        self, stop: Callable[[], bool] = lambda: False, watch: Callable[[Progress], None] = lambda progress: None
    ) -> Summary:
        """Runs to the end of the streams, or until `stop()` says so; `watch` is told after every batch."""
        try:
            with Metrics(self._settings.metrics_port, self.progress):
                stopped = self._run(stop, watch)
            for sink in self._sinks:
                sink.close()
        except BaseException as error:
            for sink in self._sinks:
                sink.abandon()
            if self._course.batches:
                self._course.look()
            if not isinstance(error, Exception) or isinstance(error, BrokenPipeError) or told(error) is error:
                raise
            raise told(error) from error
        finally:
            for feed in self._feeds:
                feed.close()
        self._course.look()
        return self.summary(stopped)

    @property
    def _sinks(self) -> Sequence[Sink]:
        """Sinks that rows are given to as they come."""
        return self._job.sinks

    def _open(self) -> bool:
        """Everything is ready for rows; whether any are wanted."""
        flushes(self._settings, self.keeps)
        for sink in self._sinks:
            sink.open()
        return True

    def _run(self, stop: Callable[[], bool], watch: Callable[[Progress], None]) -> bool:
        if not self._open():
            return False
        hurried = self._settings.batch_rows is None or self._settings.idle_timeout is not None or self._follow
        waiting = Waiting(self._settings.batch_seconds if hurried else None, stop)
        for feed in self._feeds:
            feed.start(waiting.changed)
        try:
            self._load_tables(waiting)
        except _Stopped:
            return True
        size = BatchSize(self._settings)
        self._course.begin()
        ended: set[str] = set()
        while len(ended) < len(self._readers):
            if stop():
                return True
            taken, unread = gather(self._readers, size.rows, waiting)
            if taken == 0 and stop():
                return True
            now_ended = {r.stream.name for r in self._readers if r.ended} - ended
            ended |= now_ended
            if taken == 0 and not flushes(self._settings, self.keeps):
                continue  # there is nothing new, and the streams may go on in another run
            self._step(now_ended, unread)
            self._course.batches += 1
            self._check_memory()
            size.observe(self._course.look() - waiting.seconds, taken)
            watch(self.progress())
        if flushes(self._settings, self.keeps):
            self._end()
        return False

    def _step(self, ended: Collection[str], unread: Collection[str]) -> None:
        """A batch of what the readers have taken; some streams end with it, some may have more rows already."""
        rows = [(reader.stream.name, batch) for reader in self._readers for batch in self._readable(reader)]
        self._publish(self._engine.batch(rows, ended, unread=unread))

    def _end(self) -> None:
        """The streams have ended: flush."""
        self._publish(self._engine.end())

    @property
    def _feeds(self) -> list[Feed]:
        return [*(feed for _, feed in self._tables), *(reader.feed for reader in self._readers)]

    def _load_tables(self, waiting: Waiting) -> None:
        for table, chunk in self._table_rows(waiting):
            self._engine.load_table(table.name, chunk.rows)
            self._add(table.name, Seen(rows=chunk.rows.num_rows))
            self._dead(table, [] if chunk.dead is None else [chunk.dead])

    def _table_rows(self, waiting: Waiting) -> Iterator[tuple[Input, Chunk]]:
        """All rows of all tables; raises _Stopped at a stop before that."""
        for table, feed in self._tables:
            while waiting.until_ready(feed):
                if (chunk := feed.next()) is None:
                    break
                yield table, chunk
            else:
                raise _Stopped

    def _readable(self, reader: StreamReader) -> list[pa.RecordBatch]:
        ready, dead = reader.hand_over()
        self._dead(reader.stream, dead)
        return ready

    def _dead(self, stream: Input, batches: Iterable[pa.RecordBatch]) -> None:
        """Rows that the source could not read."""
        for batch in batches:
            self._add(stream.name, Seen(batch.num_rows, dead=batch.num_rows, reason=batch.column(-1)[0].as_py()))
            if stream.dead is not None:
                stream.dead.write(batch)

    def _add(self, stream: str, seen: Seen) -> None:
        self._unread = self._unread | {stream: self._unread.get(stream, Seen()) + seen}

    def _publish(self, result: BatchResult) -> None:
        for batch in result.results:
            if batch.num_rows:
                self._job.sink.write(batch)
        for name, batch in result.late:
            sink = self._inputs[name].late
            if sink is not None and batch.num_rows:
                sink.write(batch.select(self._inputs[name].source.schema.names))
        for name, batch, reasons in result.dead:
            stream = self._inputs[name]
            if stream.dead is not None and batch.num_rows:
                stream.dead.write(dead_rows(stream.source.schema, batch, reasons))

    def _check_memory(self) -> None:
        limit, used = self._settings.memory, self._engine.stats.memory_bytes
        if limit is not None and used > limit:
            raise JobError(
                f"the state takes {size_text(used)}, more than memory={size_text(limit)}, after {self._rows_in} rows;"
                " a larger memory or smaller windows would do (spilling is not built yet)"
            )

    @property
    def _unreadable(self) -> int:
        return sum(seen.dead for seen in self._unread.values())

    @property
    def _rows_in(self) -> int:
        return self._engine.stats.rows_in + self._unreadable

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return self._job.query.schema

    def _seen(self) -> dict[str, Seen]:
        """What was seen of each stream and table."""
        read = {name: Seen(**told) for name, told in self._engine.stats.streams.items()}
        names = read.keys() | self._unread.keys()
        return {name: self._unread.get(name, Seen()) + read.get(name, Seen()) for name in names}

    def explain(self) -> str:
        """The plan, and what was measured on it so far."""
        return self._engine.explain()

    def report(self) -> Report:
        """What the eddy did so far; may be called from another thread."""
        return self._engine.report(self._course.seconds)

    def progress(self) -> Progress:
        """Where the run is now; may be called from another thread."""
        stats, seen = self._engine.stats, self._seen()
        return Progress(
            rows_in=self._rows_in,
            rows_out=stats.rows_out,
            rows_late=stats.rows_late,
            rows_dead=stats.rows_dead + self._unreadable,
            state_rows=stats.state_rows,
            memory_bytes=stats.memory_bytes,
            batches=self._course.batches,
            seconds=self._course.seconds,
            watermark_us=self._engine.watermark,
            rows_by_stream={r.stream.name: seen.get(r.stream.name, Seen()).rows for r in self._readers},
        )

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return dict(self._engine.stats.decisions)

    def summary(self, stopped: bool) -> Summary:
        """What was done up to now."""
        stats, report = self._engine.stats, self.report()
        ends = summed_up(of_streams({r.stream.name: r.stream.lateness for r in self._readers}, self._seen()))
        return Summary(
            rows_in=self._rows_in,
            rows_out=stats.rows_out,
            rows_used=stats.rows_used,
            rows_late=stats.rows_late,
            rows_dead=stats.rows_dead + self._unreadable,
            expression_errors=stats.expression_errors,
            first_error=stats.first_error,
            peak_state_rows=stats.peak_state_rows,
            peak_memory_bytes=stats.peak_memory_bytes,
            stopped=stopped,
            decisions=self.decisions,
            migrations=self.decisions.get("migration", 0),
            plan=self.explain(),
            warnings=(*self.warnings, *ends.pop("warnings")),
            input_batch=report.input_batch,
            **(self._course.told | report.as_dict() | ends),
        )
