"""A job on Spark: one streaming query, each of whose batches is a batch of the protocol (protocol/coordinator.py).

    streams -> parcels (split) -> one shuffle -> a turn of every slot -> records to the driver -> publish, commit

Tables come first and the end of the streams last, each as a batch of our own. Our batch n is Spark's batch n - 1, so a
batch that Spark repeats after a crash is recognised by its number.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from eddyline.counts import Counts
from eddyline.errors import EddylineError, JobError
from eddyline.faults import reach
from eddyline.optimizer.pressure import Pressure
from eddyline.protocol.batch_decision import BatchDecision, BatchKind
from eddyline.protocol.record import Record
from eddyline.protocol.resizer import Cores
from eddyline.runtime.reporting.metrics import Metrics
from eddyline.runtime.reporting.reporter import Reporter
from eddyline.runtime.reporting.summary import Course, Progress, Summary
from eddyline.runtime.running.batch_size import BatchSize, SizeLimits
from eddyline.runtime.running.check import check_estimates, check_is_of_spark, flushes
from eddyline.runtime.running.checkpointed_job import CheckpointedJob
from eddyline.runtime.running.handed_over import hand_over
from eddyline.runtime.running.job import Job, JobInput, check_same
from eddyline.runtime.running.memory_share import usable_memory, with_memory
from eddyline.runtime.running.without_effect import RunKind, notes_of
from eddyline.runtime.sinks.sink import TakesBatches
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.settings import Settings
from eddyline.spark.anchor import Anchor
from eddyline.spark.checks import check_memory
from eddyline.spark.executors import Executors
from eddyline.spark.failures import told_by_spark
from eddyline.spark.frames import FrameSource, as_spark_reads
from eddyline.spark.functions import travelling
from eddyline.spark.listener import Listener
from eddyline.spark.names import numbered
from eddyline.spark.results import frame_of
from eddyline.spark.source import PACKED_DDL, source_of, sources_option
from eddyline.spark.still_frames import StillFrame, hand_over_frame
from eddyline.spark.sweep_share import looking
from eddyline.spark.tasks import RECORD_DDL, Task, combine_task, split_task, sweep_task, turn_task
from eddyline.state.arena import placed
from eddyline.state.own_folder import ARENAS, OwnFolder, host_memory, is_own, own_name

BATCH_BYTES, HOST_SHARE = 1 << 29, 32
"""The most bytes of the rows of a batch; and the share of this host's memory (a 32nd), if that is less."""


def size_limits() -> SizeLimits:
    """The limits of batches on Spark: a batch has a fixed cost of some tenths of a second to a second."""
    nbytes = min(BATCH_BYTES, usable_memory() // HOST_SHARE)
    return SizeLimits(first=1 << 19, live=1 << 22, most=1 << 24, nbytes=nbytes, patience=10.0, step=8.0)


STARTS = 3
"""How often a query is tried. Spark waits ten seconds for a Python process to start, and no setting changes that."""
_LATE = "Python worker failed to connect back"

_log = logging.getLogger(__name__)


class SparkRunner:
    """Runs one job once, in a Spark session."""

    def __init__(
        self,
        job: Job,
        settings: Settings,
        spark: SparkSession,
        checkpoint: str | None = None,
        modules: Sequence[str] = (),
        began: float | None = None,
        follow: bool = False,
        turn: Callable[[str, int], Task] = turn_task,
        functions: str = "",
        stay: bool = True,
        cores: Cores | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`turn` is the task of a slot; a benchmark may pass a task that does less. User functions are in `modules`,
        given by name or by path, or in `functions` (spark/functions.py). With `stay`, slots stay on their executors.
        With slots=auto the number of slots follows `cores`: those of all executors, if they are not on this host.
        `clock` counts the seconds of the run; `began` is its reading when start-up began."""
        self._flushes = flushes(settings, checkpoint is not None)
        self._turn = turn
        slots = settings.slots or spark.sparkContext.defaultParallelism
        self._alone = bool(re.match(r"local(\[|$)", str(spark.sparkContext.master)))  # on this host
        check_memory(settings, str(spark.sparkContext.master))
        check_estimates(settings, keeps=False, spark=True)
        folder = settings.arena_dir or host_memory()
        settings = with_memory(settings, slots, placed(folder) if self._alone else None)
        self._job, self._settings, self._spark, self._follow = job, settings, spark, follow
        streams = [isinstance(i.source, FrameSource) for i in job.inputs if i.time is not None]
        self._frames, self._native = any(streams), not all(streams)
        self._course = Course(clock, began)
        arenas = own_name(folder, ARENAS)
        arenas = os.path.abspath(placed(arenas)) if self._alone else arenas
        if cores is None and not self._alone:
            cores = Executors(spark).cores
        more = modules, not self._alone, cores if settings.slots is None else None
        self._checkpointed = CheckpointedJob(job, settings, slots, checkpoint, arenas, *more)
        self._spec, self._home = self._checkpointed.spec, self._checkpointed.home
        of_host = spark.sparkContext.defaultParallelism if self._alone else None
        kind = RunKind("spark", slots, checkpoint is not None, follow, of_host, more[-1] is not None)
        observed = job.query, self._checkpointed.driver.account, self._course, settings.memory, slots
        self.reporter = Reporter(*observed, *notes_of(job, settings, kind))
        self._text = travelling(self._checkpointed.text, functions)
        self._name = os.path.basename(arenas)
        self._listener = Listener(self._name)
        if "$" in arenas:  # a variable that only executors know; the driver has no arena, but needs a folder
            arenas = f"{host_memory()}/{self._name}"
        self._arenas = OwnFolder(arenas)
        self._rows_file = f"{arenas}/rows"
        self._size = BatchSize(settings, follow, size_limits())
        self._size.fit(self._checkpointed.driver.most_rows)
        self._anchor = Anchor(spark) if stay and not self._alone else None
        self._tables = [sink for sink in job.sinks if isinstance(sink, TakesBatches)]
        self._error: BaseException | None = None
        self._stopping = self._ended = self._last = self._finished = False
        self._busy = threading.Lock()

    def run(
        self, stop: Callable[[], bool] = lambda: False, watch: Callable[[Progress], None] = lambda progress: None
    ) -> Summary:
        """Run to the end of the streams, or until `stop()` is true; `watch` is called after every batch."""
        self._watch = watch
        listener = self._listener
        self._spark.streams.addListener(listener)
        try:
            for sink in self._tables:
                sink.open()
            self._coordinator = self._checkpointed.start(self._follow)
            self._arenas.hold()
            watched = self.reporter.progress, lambda: self.reporter.groups, lambda: listener.seconds
            with Metrics(self._settings.metrics_port, *watched):
                stopped = self._run(stop)
        except BaseException as error:
            cause = self._error or error
            if not isinstance(cause, Exception) or isinstance(cause, EddylineError):
                raise cause from None
            raise told_by_spark(cause, self._writes()) from cause
        finally:
            self._tidy()
            with contextlib.suppress(Py4JError, OSError):  # the JVM may be gone
                self._spark.streams.removeListener(listener)
        return self.reporter.summary(stopped)

    def prefer(self, text: str | None) -> None:
        """From the next batch on, rows that satisfy this condition come first."""
        self._home.preferences.change(text)

    def frame(self, table: pa.Table) -> DataFrame:
        """A table as a DataFrame of the session."""
        return frame_of(self._spark, table)

    def _run(self, stop: Callable[[], bool]) -> bool:
        if not all(isinstance(i.source, FrameSource) for i in self._job.inputs):
            self._spark.dataSource.register(source_of(self._name))
        check_is_of_spark(self._checkpointed.commit, self._checkpointed.root)
        self._finished = self._checkpointed.commit.finished  # then the run only looks whether there are new rows
        self._follow = self._follow and not self._finished
        for i in self._job.inputs:
            anew = self._coordinator.commit.batch < 0
            if isinstance(i.source, PythonSource):
                hand_over(self._spec.checkpoint, i, anew)
            elif isinstance(i.source, StillFrame) and not self._finished:
                hand_over_frame(self._spec.checkpoint, i, self._text, anew)
        self._course.begin()
        self._load_tables()
        stopped = self._stream(stop)
        if not stopped and not self._finished and self._flushes:
            self._end()
        elif stopped and self._checkpointed.temporary:
            if self._checkpointed.unclean:
                self._own_batch(self._coordinator.commit.batch + 1, "rows", self._no_rows, sweep=True)
            self._checkpointed.end()  # no run continues without a checkpoint: its results are final
        return stopped and not self._finished

    def _writes(self) -> dict[str, str]:
        """The folders that the JVM writes to, each with what to do if it is full."""
        local = (self._spark.conf.get("spark.local.dir", None) or tempfile.gettempdir()).partition(",")[0]
        local = os.path.dirname(local) if is_own(local) else local
        return {
            self._checkpointed.root: self._checkpointed.more_room,
            local: "make room, or name another folder with --conf spark.local.dir=FOLDER",
        }

    # Batches of our own

    def _load_tables(self) -> None:
        tables = [i for i in self._job.inputs if i.time is None]
        if self._coordinator.commit.batch < 0:
            self._own_batch(0, "load", (lambda: self._packed(tables, stream=False)) if tables else None)

    def _end(self) -> None:
        """Run the last batch, which gives the results that wait for a watermark and those of groups on disk."""
        rows = self._no_rows if self._home.has_small_state or self._checkpointed.unclean else None
        self._own_batch(self._coordinator.commit.batch + 1, "end", rows)
        self._checkpointed.end()

    def _no_rows(self) -> DataFrame:
        return self._spark.range(0).selectExpr("cast(null as int) as slot", "cast(null as binary) as blob")

    def _own_batch(
        self, batch: int, kind: BatchKind, rows: Callable[[], DataFrame] | None, sweep: bool = False
    ) -> None:
        """Run a batch of our own. Without `rows` slots have nothing to do, and no task is started."""
        groups = self._checkpointed.unclean if sweep or kind == "end" else 0
        decision = self._coordinator.begin(batch, kind, {"own": kind}, sweep=sweep)
        if decision is not None:
            idle = [Record(slot) for slot in range(decision.slots)]
            with self._sweeping(groups) if groups else contextlib.nullcontext():
                records = idle if rows is None else self._turns(rows(), batch)
            self._finish(decision, records)

    def _sweeping(self, groups: int) -> AbstractContextManager[None]:
        """Tells how far the sweep of all groups on disk is, while it goes on; on other hosts only that it does."""
        begin = time.perf_counter()

        def watch(share: float) -> None:
            swept, seconds = round(share * groups), time.perf_counter() - begin
            self._watch(replace(self.reporter.progress(), swept=swept, to_sweep=groups, sweep_seconds=seconds))

        watch(0.0)
        return looking(self._arenas.path, self._home.slots, watch)

    # The stream

    def _stream(self, stop: Callable[[], bool]) -> bool:
        """Run Spark's query; returns whether it was stopped before the end."""
        self._tell_source()
        self._remove_unfinished()
        rows = self._packed([i for i in self._job.inputs if i.time is not None], stream=True)
        writer = rows.writeStream.queryName(self._name).foreachBatch(self._batch)
        if self._settings.trigger is not None:
            writer = writer.trigger(processingTime=f"{math.ceil(self._settings.trigger * 1000)} milliseconds")
        writer = writer.option("checkpointLocation", as_spark_reads(f"{self._spec.checkpoint}/spark"))
        for left in reversed(range(STARTS)):
            failure = self._query(writer.start(), stop)
            if self._error is not None:
                raise self._error
            if failure is None or self._last or stop():  # errors of a query that is being stopped do not matter
                break
            if _LATE not in str(failure) or not left:
                raise failure
            self._stopping = False
            _log.warning("Spark waited in vain for a Python process, as on a busy machine: the query is started again")
        return not self._ended

    def _remove_unfinished(self) -> None:
        """Remove files of Spark in the checkpoint that it did not finish, because it was killed or the disk was full.
        Spark refuses to start with them if there are no finished ones. JobError if its files are missing."""
        store = self._checkpointed.checkpoint.store
        names = store.all_names("spark/offsets")
        if not names and isinstance(self._checkpointed.commit.offsets, list):
            raise JobError("the checkpoint is damaged: spark/offsets is missing")
        if not any(name.isdigit() for name in names):
            for name in names:
                store.delete(f"spark/offsets/{name}")

    def _query(self, query: StreamingQuery, stop: Callable[[], bool]) -> Exception | None:
        """Wait until Spark's query ends, or stop it; returns the error of a failed query."""
        if not self._follow:
            threading.Thread(target=self._await_all, args=(query,), daemon=True).start()
        try:
            while query.isActive and not self._ended and not stop():
                time.sleep(0.02)
            self._stopping = True
            with self._busy:  # wait for the current batch
                pass
        finally:
            query.stop()
        return query.exception()

    def _await_all(self, query: StreamingQuery) -> None:
        """Wait for the end where no batch is marked as the last: where Spark reads the sources, or there are no
        rows."""
        with contextlib.suppress(PySparkException, Py4JError):
            query.processAllAvailable()
            self._ended = query.isActive or self._ended

    def _packed(self, inputs: Sequence[JobInput], stream: bool) -> DataFrame:
        """The parcels of these inputs: one Spark source for all inputs that we read ourselves, and one for each
        DataFrame."""
        native = {i.name: i.time for i in inputs if not isinstance(i.source, FrameSource)}
        parts = [self._read(native, stream)] if native else []
        for i in inputs:
            if isinstance(i.source, FrameSource):
                columns, batch = i.wanted.columns, None if stream else 0
                frame = numbered(i.source.frame, columns)
                parts.append(frame.mapInArrow(split_task(self._text, i.name, columns, batch), PACKED_DDL))
        return functools.reduce(DataFrame.unionAll, parts)

    def _read(self, inputs: Mapping[str, str | None], stream: bool) -> DataFrame:
        reader: Any = self._spark.readStream if stream else self._spark.read
        reader = reader.format(self._name).option("spec", self._text)
        reader = reader.option("sources", sources_option(self._spec, inputs)).option("rows_file", self._rows_file)
        reader = reader.option("checkpoint", self._spec.checkpoint).option("run", self._name)
        reader = reader.option("tasks", str(self._spark.sparkContext.defaultParallelism))
        frame: DataFrame = reader.option("follow", str(self._follow).lower()).load()
        return frame

    def _batch(self, rows: DataFrame, number: int) -> None:
        """Run the protocol's batch for a batch of Spark."""
        with self._busy:
            if self._stopping or self._ended or self._error is not None:
                raise EddylineError("the job is stopping")
            if self._finished and number + 1 < self._checkpointed.commit.batch:
                return  # committed, but Spark died before it recorded that
            try:
                if self._finished:
                    raise self._checkpointed.refused("one of them")
                offsets = self._offsets(number)
                reach("spark: offsets are known")
                ours: Any = json.loads(offsets[0]) if self._native else {"unread": ()}  # ours is first (_packed)
                self._course.backlog = backlog = ours.get("backlog", 0) + self._listener.backlog
                told = {"unread": ours["unread"], "pressure": Pressure(backlog // self._home.slots, self._size.busy)}
                decision = self._coordinator.begin(number + 1, "rows", offsets, **told)
                if decision is not None:
                    begin = time.perf_counter()
                    records = self._turns(rows, number + 1)
                    check_same(self._job.inputs, ours.get("streams", {}))
                    nbytes = sum(record.bytes_in for record in records)
                    counts = self._finish(decision, records)
                    self._size.observe(time.perf_counter() - begin, counts.rows_in, backlog, nbytes)
                    self._size.fit(self._checkpointed.driver.most_rows)
                    self._tell_source()
                reach("spark: the batch is done")
                if not self._frames and not self._follow:
                    # An earlier run may have planned the batch: then it does not know of files that have come since.
                    self._ended = self._last = ours["ended"] and ours["run"] == self._name
            except BaseException as error:
                self._error = error
                raise

    def _tell_source(self) -> None:
        """Tell our source how many rows the next batch should have, and after which batch rows wait for answers."""
        commit = self._checkpointed.commit
        with open(self._rows_file, "w", encoding="utf-8") as file:
            file.write(f"{self._size.rows} {commit.batch if commit.waits else 0}")

    def _offsets(self, number: int) -> list[str]:
        """Spark's record of a batch, written before the batch began: how far each source is read."""
        lines: list[str] = (
            self._checkpointed.checkpoint.store.read(f"spark/offsets/{number}").to_pybytes().decode().splitlines()
        )
        return lines[2:]

    def _turns(self, rows: DataFrame, batch: int) -> list[Record]:
        """Run the turns of all slots as one Spark job."""
        slots = self._home.slots  # as the decision of the batch says
        of_slots = rows.repartitionById(slots, "slot")
        if self._anchor is not None:
            of_slots = self._anchor.hold(of_slots, slots)
        if self._home.partial:
            cells = of_slots.mapInArrow(self._turn(self._text, batch), PACKED_DDL)
            done = cells.repartitionById(slots, "slot").mapInArrow(combine_task(self._text, batch), RECORD_DDL)
        else:
            done = of_slots.mapInArrow(self._turn(self._text, batch), RECORD_DDL)
        reach("spark: before the job")
        records = [Record.unpacked(bytes(row.record)) for row in done.collect()]
        reach("spark: records are there")
        return records

    def _finish(self, decision: BatchDecision, records: Sequence[Record]) -> Counts:
        counts = self._checkpointed.driver.finish(decision, records)
        self._course.batches += 1
        self._course.look()
        self._checkpointed.driver.check_memory()
        self._watch(self.reporter.progress())
        return counts

    def _tidy(self) -> None:
        if not self._alone:
            self._sweep()
        self._arenas.remove()
        for sink in self._tables:
            sink.abandon()
        self._checkpointed.close()

    def _sweep(self) -> None:
        """Remove arenas on other hosts: a task for every core, each slow enough that the tasks spread over all
        executors."""
        with contextlib.suppress(PySparkException, Py4JError, OSError):  # leftover arenas do no harm
            context = self._spark.sparkContext
            tasks = context.defaultParallelism
            context.parallelize(range(tasks), tasks).foreachPartition(sweep_task(self._spec.arenas or ""))
