"""The loop of a job in this process: tables, then batches of streams read side by side, then the end.

Results reach the sinks in the batch that made them. A stop from outside takes effect between two batches, or in a long
one (inside_batch.py), and ends every wait for rows. The results written up to then are correct and complete; results
that wait for a watermark are not flushed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from eddyline.optimizer.pressure import Pressure
from eddyline.runtime.reporting.metrics import Metrics
from eddyline.runtime.reporting.reporter import Reporter
from eddyline.runtime.reporting.summary import Course, Progress, Summary
from eddyline.runtime.running.batch_size import BatchSize
from eddyline.runtime.running.check import check_estimates, flushes
from eddyline.runtime.running.engine import Engine, Read, WatchSweep
from eddyline.runtime.running.failures import told
from eddyline.runtime.running.feed import Feed
from eddyline.runtime.running.inside_batch import InsideBatch, Stopped
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.memory_share import with_memory
from eddyline.runtime.running.reading import StreamReader, gather
from eddyline.runtime.running.waiting import Waiting
from eddyline.runtime.running.without_effect import RunKind, notes_of
from eddyline.settings import Settings


class Runner(Protocol):
    """Runs one job once, here or on Spark."""

    reporter: Reporter

    def run(self, stop: Callable[[], bool], watch: Callable[[Progress], None]) -> Summary:
        """Runs to the end of the streams, or until `stop()` returns True. Calls `watch` after every batch."""

    def prefer(self, text: str | None) -> None:
        """From the next batch on, rows that satisfy this condition come first; None: none do. SettingError if it is
        wrong. Any thread may call it."""


class LocalRunner:
    """Runs one job once in this process."""

    def __init__(
        self,
        job: Job,
        settings: Settings,
        checkpoint: str | None = None,
        clock: Callable[[], float] = time.perf_counter,
        began: float | None = None,
        follow: bool = False,
    ) -> None:
        """With a `checkpoint`, a folder, the run continues from the newest commit there. `clock` counts seconds;
        `began` is its reading when the start-up of the job began. With `follow` the run waits for more files for
        ever."""
        settings = with_memory(settings, settings.slots or 1, settings.arena_dir)
        self._settings, self._follow, self._keeps = settings, follow, checkpoint is not None
        self._course, self._clock = Course(clock, began), clock
        self._engine = _engine(job, settings, checkpoint)
        keeps, most = self._keeps, settings.batch_rows
        self._readers = [StreamReader(i, follow, keeps, most) for i in job.inputs if i.time is not None]
        self._tables = [(i.name, Feed(i)) for i in job.inputs if i.time is None]
        slots = settings.slots or 1
        notes = notes_of(job, settings, RunKind("local", slots, keeps, follow))
        self.reporter = Reporter(job.query, self._engine, self._course, settings.memory, slots, *notes)

    def run(
        self, stop: Callable[[], bool] = lambda: False, watch: Callable[[Progress], None] = lambda progress: None
    ) -> Summary:
        """Runs to the end of the streams, or until `stop()` returns True. Calls `watch` after every batch."""
        feeds = [*(feed for _, feed in self._tables), *(reader.feed for reader in self._readers)]
        try:
            with Metrics(self._settings.metrics_port, self.reporter.progress, lambda: self.reporter.groups):
                stopped = self._run(feeds, stop, watch)
                if stopped:
                    self._engine.stop(self._sweeping(watch))
            self._engine.close()
        except BaseException as error:
            self._engine.abandon()
            if self._course.batches:
                self._course.look()
            if not isinstance(error, Exception) or isinstance(error, BrokenPipeError) or told(error) is error:
                raise
            raise told(error) from error
        finally:
            for feed in feeds:
                feed.close()
        self._course.look()
        return self.reporter.summary(stopped)

    def prefer(self, text: str | None) -> None:
        """From the next batch on, rows that satisfy this condition come first."""
        self._engine.prefer(text)

    def _run(self, feeds: list[Feed], stop: Callable[[], bool], watch: Callable[[Progress], None]) -> bool:
        """Reads to the end of the streams; returns whether the run was stopped before."""
        flush = flushes(self._settings, self._keeps)
        if not self._engine.open(self._readers):
            return False
        hurried = self._settings.batch_rows is None or self._settings.idle_timeout is not None or self._follow
        waiting = Waiting(self._settings.batch_seconds if hurried else None, stop)
        for feed in feeds:
            feed.start(waiting.changed)
        try:
            self._engine.load(self._table_rows(waiting))  # no batch may run with half a table
            return self._batches(waiting, flush, stop, watch)
        except Stopped:
            return True

    def _batches(
        self, waiting: Waiting, flush: bool, stop: Callable[[], bool], watch: Callable[[Progress], None]
    ) -> bool:
        """Runs all batches; returns whether the run was stopped between two of them."""
        taken = 0

        def show(share: float) -> None:
            watch(self.reporter.progress().inside_batch(round(share * taken), self._course.now))

        inside = InsideBatch(stop, show)
        self._engine.watch(inside)
        size = BatchSize(self._settings, self._follow or any(reader.feed.may_wait for reader in self._readers))
        size.fit(self._engine.most_rows)
        self._course.begin()
        ended: set[str] = set()
        while len(ended) < len(self._readers):
            if stop():
                return True
            taken, unread = gather(self._readers, size.rows, waiting, self._engine.waits)
            if taken == 0 and stop():
                return True
            now_ended = {r.stream.name for r in self._readers if r.ended} - ended
            ended |= now_ended
            moved = any(reader.moved for reader in self._readers)
            if taken == 0 and not flush and not self._engine.waits and not moved:
                continue  # there is nothing new
            # A stream that is not flushed may continue in another run.
            self._course.backlog = backlog = sum(reader.backlog for reader in self._readers)
            pressure = Pressure(backlog // (self._settings.slots or 1), size.busy)
            rows = self._stream_rows()
            nbytes = sum(read.rows.nbytes for read in rows)
            inside.begin()
            self._engine.batch(rows, now_ended if flush else (), unread, pressure)
            inside.end()
            del rows  # they take as much memory as those of the next batch
            self._course.batches += 1
            self._engine.check_memory()
            size.observe(self._course.look() - waiting.seconds, taken, backlog, nbytes)
            size.fit(self._engine.most_rows)
            watch(self.reporter.progress())
        while self._engine.waits:
            if stop():
                return True
            self._engine.batch((), (), ())  # answers
            self._course.look()
            watch(self.reporter.progress())
        if flush:
            self._engine.end(self._sweeping(watch))
        return False

    def _sweeping(self, watch: Callable[[Progress], None]) -> WatchSweep:
        """Tells how far the sweep of all groups on disk is, which begins now."""
        begin = self._clock()

        def told(swept: int, groups: int) -> None:
            seconds = self._clock() - begin
            watch(replace(self.reporter.progress(), swept=swept, to_sweep=groups, sweep_seconds=seconds))

        return told

    def _table_rows(self, waiting: Waiting) -> Iterator[Read]:
        """All rows of all tables; raises Stopped if a stop is asked for before the end."""
        for name, feed in self._tables:
            while waiting.until_ready(feed):
                if (chunk := feed.next()) is None:
                    break
                yield Read(name, chunk.rows)
                if chunk.dead is not None:
                    yield Read(name, chunk.dead, readable=False)
            else:
                raise Stopped

    def _stream_rows(self) -> list[Read]:
        """The rows that the readers have taken for this batch."""
        rows = []
        for reader in self._readers:
            ready, dead = reader.hand_over()
            rows += [Read(reader.stream.name, batch) for batch in ready]
            rows += [Read(reader.stream.name, batch, readable=False) for batch in dead]
        return rows


def _engine(job: Job, settings: Settings, checkpoint: str | None) -> Engine:
    """Make the engine. It is imported only when it is needed, so that mistakes are told quickly."""
    spills = _spills(job, settings)
    check_estimates(settings, checkpoint is not None, spills)
    from eddyline.runtime.running.durable_engine import DurableEngine

    return DurableEngine(job, settings, checkpoint, spills)


def _spills(job: Job, settings: Settings) -> bool:
    """Whether groups of rows can leave memory: then the rows are also in a log, with a checkpoint or without one."""
    if not settings.may_spill:
        return False
    from eddyline.plan.plan import plan_of
    from eddyline.plan.spill_axis import spill_axis

    return spill_axis(plan_of(job.query), settings.groups) is not None
