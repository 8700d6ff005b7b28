"""The engine of a local job: the batch protocol, with its driver, splits and slots in one process.

Without a checkpoint nothing is kept (unkept_job.py), unless rows can leave memory: then they are in the log of a
temporary one. With a checkpoint the job continues from its newest commit, and each commit has offsets.

The offset of a stream is a place in the list of its files that were read (runtime/sources/register.py), and the number
of rows of that file that were read. Of a source with offsets of its own it is such an offset: batches end where ranges
of the source do. A stream that a Python program hands over is read again from its start, and the rows before the offset
are skipped.

Slots stay in the memory of the process. With a checkpoint and `arena_dir` they are in files there, as on Spark: the
kernel may then write their pages to disk where memory is short.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from eddyline.engine.groups.online import RunningEstimate, running_estimates
from eddyline.engine.standing import Standing
from eddyline.errors import InternalError, SettingError
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.protocol.batch_decision import BatchKind
from eddyline.protocol.in_process import InProcess
from eddyline.routing.report import Report
from eddyline.runtime.running.checkpointed_job import CheckpointedJob
from eddyline.runtime.running.engine import Pulse, Read, WatchSweep
from eddyline.runtime.running.feed import Offset
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.reading import StreamReader
from eddyline.runtime.running.unkept_job import UnkeptJob
from eddyline.runtime.sinks.file_sink import FileSink
from eddyline.settings import Settings
from eddyline.state.arena import placed
from eddyline.state.own_folder import ARENAS, OwnFolder, own_name


class DurableEngine:
    """Runs batches, from the newest commit on if there is a checkpoint, and commits each."""

    def __init__(self, job: Job, settings: Settings, checkpoint: str | None, spills: bool = False) -> None:
        """`spills`: rows can leave memory."""
        arenas = None
        if checkpoint is not None and settings.arena_dir is not None:
            arenas = os.path.abspath(own_name(placed(settings.arena_dir), ARENAS))
        self._arenas = OwnFolder(arenas) if arenas is not None else None
        self._kept: CheckpointedJob | None = None
        if checkpoint is not None or spills:
            self._kept = CheckpointedJob(job, settings, settings.slots or 1, checkpoint, arenas, in_process=True)
        self._job = self._kept or UnkeptJob(job, settings)
        self._here = InProcess(self._job.home) if self._job.here is None else self._job.here
        self._driver = self._job.driver
        self._sinks = [sink for sink in job.sinks if self._kept is None or not isinstance(sink, FileSink)]
        """Sinks to which rows are written. With a checkpoint, files are published with each commit
        (runtime/sinks/batches.py), not here."""
        self._has_tables = any(i.time is None for i in job.inputs)
        self._estimates, self._totals = settings.estimates == "on", dict[str, int]()
        self._readers: Sequence[StreamReader] = ()

    def open(self, readers: Sequence[StreamReader]) -> bool:
        """Starts the readers at the newest commit. Raises SettingError for a source or a checkpoint that only Spark can
        use, JobError for new rows of a stream that has ended. For estimates, counts the rows of the streams that can be
        counted."""
        self._readers = readers
        if self._estimates:
            counted = {reader.stream.name: reader.feed.count() for reader in readers}
            self._totals = {name: rows for name, rows in counted.items() if rows is not None}
        for sink in self._sinks:
            sink.open()
        self._coordinator = self._job.start()
        if self._arenas is not None:
            self._arenas.hold()
        return self._kept is None or self._resume(self._kept, readers)

    def _resume(self, job: CheckpointedJob, readers: Sequence[StreamReader]) -> bool:
        commit = job.commit
        if job.home.query.group is not None and commit.batch >= 0 and (commit.seen is not None) != self._estimates:
            was = "on" if commit.seen is not None else "off"
            raise SettingError(
                f"the job of the checkpoint {job.root} began with estimates={was}, and its groups are kept for that;"
                f" set estimates={was}, or give the job a new checkpoint folder"
            )
        at = self._offsets if commit.offsets is None else commit.offsets
        if not isinstance(at, dict) or at.keys() != self._offsets.keys():
            raise SettingError(f"the checkpoint {job.root} belongs to a job on Spark: continue it there")
        for reader in readers:
            name = reader.stream.name
            offset = at[name] if isinstance(at[name], Mapping) else tuple(at[name])
            reader.start_at(offset, job.checkpoint.files)
            if (commit.finished or name in commit.watermarks.ended) and reader.feed.more():
                raise job.refused(name)
        return not commit.finished

    def load(self, tables: Iterable[Read]) -> None:
        """Takes all rows of all tables in one batch, unless an earlier run did."""
        if self._driver.commit.batch < 0 and (self._kept is not None or self._has_tables):
            self._batch("load", tables)

    def watch(self, pulse: Pulse) -> None:
        """During batches, `pulse` gets the share of their rows that are taken in."""
        self._here.pulse = pulse

    def batch(
        self, rows: Sequence[Read], ended: Collection[str], unread: Collection[str], pressure: Pressure = NO_PRESSURE
    ) -> None:
        """Processes a batch, publishes its results and commits it."""
        self._batch("rows", rows, ended, unread, pressure=pressure)

    def end(self, watch: WatchSweep) -> None:
        """Emits the results that wait for a watermark, and those of groups on disk, and finishes the job."""
        with self._sweeping(watch):
            self._batch("end", ())
        self._job.end()

    def stop(self, watch: WatchSweep) -> None:
        """Emits the results of groups on disk, if no later run can."""
        if self._job.temporary and self._job.unclean:
            with self._sweeping(watch):
                self._batch("rows", (), sweep=True)

    @contextlib.contextmanager
    def _sweeping(self, watch: WatchSweep) -> Iterator[None]:
        """While all groups on disk are swept: tells how far it is."""
        groups, slots, swept = self._job.unclean, self._job.home.slots, 0.0

        def count(share: float) -> None:
            nonlocal swept
            swept += share / slots
            watch(round(swept * groups), groups)

        home = self._job.home
        before, home.watch_sweep = home.watch_sweep, count
        if groups:
            watch(0, groups)
        yield
        home.watch_sweep = before

    def prefer(self, text: str | None) -> None:
        """From the next batch on, rows that satisfy this condition come first."""
        self._job.home.preferences.change(text)

    def check_memory(self) -> None:
        """Raises JobError if the state of a slot takes more than the setting `memory`."""
        self._driver.check_memory()

    @property
    def waits(self) -> bool:
        """Whether rows wait for the answer of a table."""
        return self._driver.commit.waits

    @property
    def most_rows(self) -> int | None:
        """About how many rows a batch may have so that they fit in memory; None: any number."""
        return self._driver.most_rows

    def close(self) -> None:
        """Closes the sinks and unlocks the checkpoint. The results of a run without one are final, also if it was
        stopped."""
        if self._job.temporary and not self._driver.commit.finished:
            self._job.end()
        for sink in self._sinks:
            sink.close()
        self._let_go()

    def abandon(self) -> None:
        """Abandons the sinks and unlocks the checkpoint."""
        for sink in self._sinks:
            sink.abandon()
        self._let_go()

    def _let_go(self) -> None:
        if self._arenas is not None:
            self._arenas.remove()
        self._job.close()

    @property
    def standing(self) -> Standing:
        """The counts and the state of the job after its newest commit."""
        return self._driver.account.standing

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far in this run, by kind."""
        return self._driver.account.decisions

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of the aggregates of open groups, at most of so many."""
        if not self._estimates:
            return ()
        return running_estimates(self._job.home.query, self._here.moment, self._totals, groups)

    def report(self, seconds: float) -> Report:
        """The work of the eddies of all slots so far in this run."""
        return self._driver.account.report(seconds)

    def explain(self) -> str:
        """The plan, and the measurements on it so far in this run."""
        return self._driver.account.explain()

    @property
    def _offsets(self) -> dict[str, Offset]:
        """How far each stream was taken."""
        return {reader.stream.name: reader.offset for reader in self._readers}

    def _batch(
        self,
        kind: BatchKind,
        rows: Iterable[Read],
        ended: Collection[str] = (),
        unread: Collection[str] = (),
        sweep: bool = False,
        pressure: Pressure = NO_PRESSURE,
    ) -> None:
        offsets: dict[str, Offset] | None = None
        if self._kept is not None:
            offsets = self._offsets
            for reader in self._readers:
                reader.feed.save()
        number, told = self._driver.commit.batch + 1, (sorted(ended), unread, sweep, pressure)
        decision = self._coordinator.begin(number, kind, offsets, *told)
        if decision is None:
            raise InternalError(f"batch {number} is committed already")
        pulse = self._here.pulse
        if sweep:
            self._here.pulse = None
        records = self._here.run(decision, ((read.name, read.rows, read.readable) for read in rows))
        self._here.pulse = pulse
        self._driver.finish(decision, records)
