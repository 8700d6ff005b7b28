"""A job on Spark: one streaming query, each of whose batches is a batch of the protocol (engine/coordinator.py).

    streams -> parcels (split) -> one shuffle -> a turn of every slot -> records to the driver -> publish, commit

Tables come first and the end of the streams last, each as a batch of our own. Batch n of ours is batch n - 1 of
Spark's, so what Spark runs again after a crash is known here by its number.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from eddyline.engine.coordinator import Decision, Record
from eddyline.errors import EddylineError
from eddyline.plan.explain import explain, warnings
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.runtime.batch_size import BatchSize
from eddyline.runtime.durable import Durable
from eddyline.runtime.job import Input, Job
from eddyline.runtime.metrics import Metrics
from eddyline.runtime.summary import Progress, Summary
from eddyline.settings import Settings
from eddyline.spark.failures import told_by_spark
from eddyline.spark.frames import FrameSource
from eddyline.spark.listener import Listener
from eddyline.spark.source import EddylineFiles
from eddyline.spark.tasks import PACKED_DDL, RECORD_DDL, Task, combine_task, split_task, turn_task
from eddyline.state.arena import remove

SPARK_ROWS = 1 << 19
"""Rows of a batch to begin with: a batch has a fixed cost of some tenths of a second."""


class SparkRunner:
    """Runs one job once, on a session."""

    def __init__(
        self,
        job: Job,
        text: str,
        settings: Settings,
        spark: SparkSession,
        checkpoint: str | None = None,
        modules: Sequence[str] = (),
        began: float | None = None,
        follow: bool = False,
        turn: Callable[[str, int], Task] = turn_task,
    ) -> None:
        """`turn` is what slots do; a benchmark may have them do less."""
        self._turn = turn
        self._job, self._settings, self._spark, self._follow = job, settings, spark, follow
        self._frames = any(isinstance(i.source, FrameSource) for i in job.inputs if i.time is not None)
        self._began = time.perf_counter() if began is None else began
        slots = settings.slots or spark.sparkContext.defaultParallelism
        arenas = f"{settings.arena_dir or _memory()}/eddyline-{{name}}"
        self._durable = Durable(job, text, settings, slots, checkpoint, arenas, modules)
        self._spec, self._text, self._home = self._durable.spec, self._durable.text, self._durable.home
        self._arenas = self._spec.arenas or ""
        self._rows_file = f"{self._arenas}/rows"  # where the next run finds it, and removes it, if this one is killed
        self._size = BatchSize(replace(settings, batch_rows=SPARK_ROWS) if settings.batch_rows_auto else settings)
        self._error: BaseException | None = None
        self._stopping = self._ended = False
        self._busy = threading.Lock()
        self._batches = 0
        self._first = self._last = self._began
        self._records: list[Record] = []
        self._peaks = {"rows": 0, "bytes": 0}
        self.warnings = warnings(job.query)

    def run(
        self, stop: Callable[[], bool] = lambda: False, watch: Callable[[Progress], None] = lambda progress: None
    ) -> Summary:
        """Runs to the end of the streams, or until `stop()` says so; `watch` is told after every batch."""
        self._watch = watch
        listener = Listener()
        self._spark.streams.addListener(listener)
        try:
            self._durable.start()
            with Metrics(self._settings.metrics_port, self.progress, lambda: listener.seconds):
                stopped = self._run(stop)
        except BaseException as error:
            cause = self._error or error
            if not isinstance(cause, Exception) or isinstance(cause, EddylineError):
                raise cause from None
            raise told_by_spark(cause) from cause
        finally:
            self._tidy()
            with contextlib.suppress(Py4JError, OSError):  # the JVM may be gone
                self._spark.streams.removeListener(listener)
        return self.summary(stopped)

    def _run(self, stop: Callable[[], bool]) -> bool:
        self._coordinator = self._durable.coordinator
        self._spark.dataSource.register(EddylineFiles)
        self._first = self._last = time.perf_counter()
        self._load_tables()
        stopped = self._stream(stop)
        if not stopped and self._settings.at_end == "flush":
            self._own_batch(self._coordinator.commit.batch + 1, "end", self._nothing)
            self._durable.finished()
        return stopped

    # Batches of our own

    def _load_tables(self) -> None:
        tables = [i for i in self._job.inputs if i.time is None]
        if self._coordinator.commit.batch < 0:
            self._own_batch(0, "load", lambda: self._packed(tables, stream=False) if tables else self._nothing())

    def _own_batch(self, batch: int, kind: str, rows: Callable[[], DataFrame]) -> None:
        decision = self._coordinator.begin(batch, kind, {"own": kind})
        if decision is not None:
            self._finish(decision, self._turns(rows(), batch))

    def _nothing(self) -> DataFrame:
        return self._spark.createDataFrame([], PACKED_DDL)

    # The stream

    def _stream(self, stop: Callable[[], bool]) -> bool:
        """Runs Spark's query; whether it was stopped before the end."""
        os.makedirs(self._arenas, exist_ok=True)
        with open(self._rows_file, "w", encoding="utf-8") as file:
            file.write(str(self._size.rows))
        rows = self._packed([i for i in self._job.inputs if i.time is not None], stream=True)
        writer = rows.writeStream.foreachBatch(self._batch)
        if self._settings.trigger is not None:
            writer = writer.trigger(processingTime=f"{self._settings.trigger} seconds")
        query = writer.option("checkpointLocation", f"{self._spec.checkpoint}/spark").start()
        if not self._follow and self._frames:
            threading.Thread(target=self._await_all, args=(query,), daemon=True).start()
        try:
            while query.isActive and not self._ended and not stop():
                time.sleep(0.02)
            self._stopping = True
            with self._busy:  # the batch in hand is finished
                pass
        finally:
            query.stop()
        if self._error is not None:
            raise self._error
        failure = query.exception()
        if failure is not None and not self._ended and not stop():
            raise failure
        return not self._ended

    def _await_all(self, query: StreamingQuery) -> None:
        """The end, where Spark's own sources are read: all that they had is processed."""
        with contextlib.suppress(PySparkException, Py4JError):
            query.processAllAvailable()
            self._ended = query.isActive or self._ended

    def _packed(self, inputs: Sequence[Input], stream: bool) -> DataFrame:
        """The parcels of all these: one source for those that we read ourselves, one for each DataFrame."""
        native = [i.name for i in inputs if not isinstance(i.source, FrameSource)]
        parts = [self._read(native, stream)] if native else []
        for i in inputs:
            if isinstance(i.source, FrameSource):
                frame = i.source.frame.select(*[f"`{name}`" for name in i.wanted.columns])
                batch = None if stream else 0
                parts.append(frame.mapInArrow(split_task(self._text, i.name, batch), PACKED_DDL))
        return functools.reduce(DataFrame.unionAll, parts)

    def _read(self, names: Sequence[str], stream: bool) -> DataFrame:
        reader: Any = self._spark.readStream if stream else self._spark.read
        reader = reader.format("eddyline").option("spec", self._text).option("streams", json.dumps(list(names)))
        tasks = self._spark.sparkContext.defaultParallelism
        reader = reader.option("tasks", str(tasks)).option("rows_file", self._rows_file)
        frame: DataFrame = reader.option("follow", str(self._follow).lower()).load()
        return frame

    def _batch(self, rows: DataFrame, number: int) -> None:
        """A batch of Spark's."""
        with self._busy:
            if self._stopping or self._ended or self._error is not None:
                raise EddylineError("the job is stopping")
            try:
                offsets = self._offsets(number)
                decision = self._coordinator.begin(number + 1, "rows", offsets)
                if decision is not None:
                    begin = time.perf_counter()
                    self._finish(decision, self._turns(rows, number + 1))
                    self._size.observe(time.perf_counter() - begin)
                    with open(self._rows_file, "w", encoding="utf-8") as file:
                        file.write(str(self._size.rows))
                if not self._frames and not self._follow:
                    self._ended = json.loads(offsets[-1])["ended"]
            except BaseException as error:
                self._error = error
                raise

    def _offsets(self, number: int) -> list[str]:
        """What Spark noted of a batch before it began: how far each source is read."""
        lines: list[str] = (
            self._durable.checkpoint.store.read(f"spark/offsets/{number}").to_pybytes().decode().splitlines()
        )
        return lines[2:]

    def _turns(self, rows: DataFrame, batch: int) -> list[Record]:
        """One job: the turns of all slots."""
        slots = self._spec.slots
        if self._home.partial:
            cells = rows.repartitionById(slots, "slot").mapInArrow(self._turn(self._text, batch), PACKED_DDL)
            done = cells.repartitionById(slots, "slot").mapInArrow(combine_task(self._text, batch), RECORD_DDL)
        else:
            done = rows.repartitionById(slots, "slot").mapInArrow(self._turn(self._text, batch), RECORD_DDL)
        return [Record.of_json(row.record) for row in done.collect()]

    def _finish(self, decision: Decision, records: Sequence[Record]) -> None:
        self._coordinator.finish(decision, records)
        self._batches += 1
        self._records = list(records)
        for what in self._peaks:
            self._peaks[what] = max(self._peaks[what], sum(r.state.get(what, 0) for r in records))
        self._last = time.perf_counter()
        self._watch(self.progress())

    # Telling

    def progress(self) -> Progress:
        """Where the run is now."""
        counts = self._durable.counts
        state = {what: sum(r.state.get(what, 0) for r in self._records) for what in ("rows", "bytes")}
        return Progress(
            rows_in=counts["rows_in"],
            rows_out=counts["rows_out"],
            rows_late=counts["rows_late"],
            rows_dead=counts["rows_dead"],
            state_rows=state["rows"],
            memory_bytes=state["bytes"],
            batches=self._batches,
            seconds=self._last - self._first,
            watermark=self._durable.commit.watermarks["used"],
        )

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return {"reroute": sum(r.state.get("reroute", 0) for r in self._records)}

    def explain(self) -> str:
        """The plan."""
        query = self._job.query
        return explain(query, partition(Plan(query), self._spec.slots, self._settings.groups))

    def summary(self, stopped: bool) -> Summary:
        """What was done up to now, by the job as a whole."""
        return Summary(
            **self._durable.counts,  # type: ignore[arg-type]
            first_error=next((r.first_error for r in self._records if r.first_error), ""),
            peak_state_rows=self._peaks["rows"],
            peak_memory_bytes=self._peaks["bytes"],
            batches=self._batches,
            seconds=round(self._last - self._first, 6),
            start_seconds=round(self._first - self._began, 6),
            stopped=stopped,
            decisions=self.decisions,
            plan=self.explain(),
            warnings=tuple(self.warnings),
        )

    def _tidy(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._rows_file)
        for slot in os.listdir(self._arenas) if os.path.isdir(self._arenas) else ():  # also those of runs with more
            with contextlib.suppress(OSError, EddylineError):
                remove(f"{self._arenas}/{slot}")
        with contextlib.suppress(OSError):
            os.rmdir(self._arenas)
        self._durable.close()


def _memory() -> str:
    return "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
