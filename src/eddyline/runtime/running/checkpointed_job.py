"""A job with a checkpoint, in one process or on Spark: its spec, its coordinator and its sinks.

The checkpoint describes its job (streams, columns, query, partition groups); a different job is refused. Settings may
change from one run to the next: results do not depend on them. Sinks take results in two steps: slots stage them, and
the coordinator publishes them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from eddyline.balance.slot_map import SlotMap
from eddyline.cql.script import parse
from eddyline.errors import JobError, SettingError
from eddyline.plan.judges import Preferences
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.commit import Commit
from eddyline.protocol.coordinator import Coordinator
from eddyline.protocol.home import Home
from eddyline.protocol.in_process import InProcess
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.protocol.resizer import Cores
from eddyline.runtime.running.check import about
from eddyline.runtime.running.deliveries import Deliveries
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.job_driver import JobDriver
from eddyline.runtime.running.modules import is_path, texts
from eddyline.runtime.running.schemas import schema_text
from eddyline.runtime.running.spec import AnySink, Spec, home_of
from eddyline.runtime.sinks.batches import BatchFiles, HandOver
from eddyline.runtime.sinks.folder import JOB_DIGITS
from eddyline.runtime.sinks.sink import Sink, TakesBatches, TakesFiles
from eddyline.settings import Settings
from eddyline.state.log.store import Store
from eddyline.state.own_folder import CHECKPOINT, OwnFolder, host_memory, own_name, sweep

FINISHED = "the job of this checkpoint is finished: its streams have ended and its results are complete"


class CheckpointedJob:
    """One job and its checkpoint. Without a folder for the checkpoint, a temporary one is used and removed at the
    end."""

    def __init__(
        self,
        job: Job,
        settings: Settings,
        slots: int,
        checkpoint: str | None,
        arenas: str | None,
        modules: Sequence[str] = (),
        anywhere: bool = False,
        cores: Cores | None = None,
        in_process: bool = False,
    ) -> None:
        """`arenas` and `anywhere` are as in `Spec`, `cores` as in `JobDriver`. `in_process`: all splits and slots are
        in this process."""
        self._job = job
        self._folder = os.path.abspath(settings.spill_dir or tempfile.gettempdir())
        root = checkpoint or own_name(self._folder, CHECKPOINT)
        self._temporary = None if checkpoint else OwnFolder(root)
        self.root = root if "://" in root else os.path.abspath(root)
        self.checkpoint = Checkpoint(Store(self.root))
        self._identity = self.checkpoint.identity()
        declared = {d.name.lower() for d in parse(job.text).declarations}
        self.spec = Spec(
            job.text,
            {i.name.lower(): schema_text(i.source.schema) for i in job.inputs}
            | {table.stream.name.lower(): schema_text(table.schema) for table in job.asked},
            {i.name: (i.time, i.lateness) for i in job.inputs if i.name.lower() not in declared},
            asdict(replace(settings, slots=slots)),
            [module for module in modules if not is_path(module)],
            texts(modules),
            self.root,
            arenas,
            anywhere,
            slots,
            self._identity[:JOB_DIGITS],
        )
        self.text = self.spec.as_json()
        alone = self.temporary and arenas is None  # no other process and no later run needs what this one holds
        query = self.spec.query if alone else home_of(self.text)[1].query
        self.sinks = self.spec.sinks(query, self._give, self._sink if alone else None)
        self.home: Home = self.spec.home(query, self.sinks) if alone else home_of(self.text)[1]
        self.home.preferences = Preferences(self.home.plan, settings.prefer)  # an earlier run may have changed its own
        if self.home.slots != slots:  # an earlier run in this process ended with another number
            self.home.place(SlotMap(slots, settings.groups))
        self._deliveries = self._delivered()
        self.here = InProcess(self.home) if in_process else None
        """Takes the batches, if all splits and slots are in this process."""
        self.driver = JobDriver(self.home, settings, cores, self.here)

    def start(self, follow: bool = False) -> Coordinator:
        """Begin, or continue from the newest commit, and lock the checkpoint until `close`. Removes what killed jobs of
        this user have left on this host. With `follow` the job has no end."""
        files = [sink for sink in self.sinks.values() if isinstance(sink, BatchFiles)]
        for sink in files:
            if sink.path.resolve().is_relative_to(Path(self.checkpoint.store.path("")).resolve()):
                raise SettingError(
                    f"the sink folder {sink.path} lies in the checkpoint; choose another for one of them"
                )
        for folder in {tempfile.gettempdir(), host_memory()}:
            sweep(folder)
        self._hold()
        for sink in files:
            sink.claim()
        self.checkpoint.open(about(self.spec.script, self.home.query, self.home.settings.groups), self._identity)
        last = self.checkpoint.last()
        if last is not None:
            self.checkpoint.check_files(last)
        if last is not None and (out := {*last.ledger.generations.left, *last.moves.leave}) and not self.home.spills:
            raise SettingError(
                f"{len(out)} partition groups of this job have rows on disk; to continue it, set memory, as large as"
                " you like, and leave spill on"
            )
        for sink in files:
            sink.check(None if last is None else last.batch)
            if self.temporary and not follow:
                sink.keep_until_the_end()
        if last is not None:
            self._check_owed(last)
        self._deliveries.check(last)
        published = _Published(self.sinks, self._deliveries.outlets)
        coordinator = self.driver.begin(self.checkpoint, published, self._deliveries)
        if self.commit.finished:
            self.end()  # an earlier run may have failed before this step
        return coordinator

    def _check_owed(self, last: Commit) -> None:
        """SettingError if rows of the newest commit wait for a sink, and now another kind of sink is in its place: the
        new sink would never get these rows."""
        for staged in last.owed:
            waits = staged.outlet not in self._deliveries.outlets
            if waits and any(self.checkpoint.store.exists(file) for file in staged.files):
                raise SettingError(
                    f"the last run failed before the sink of {staged.outlet.name} had the rows of batch {last.batch};"
                    " run the job once more with the sink that it had, or with another table or topic"
                )

    def _hold(self) -> None:
        if self._temporary is None:
            self.checkpoint.store.hold()
            return
        try:
            self._temporary.hold()
        except OSError as error:
            why = "it is not a folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
            raise SettingError(f"cannot keep rows in {self._folder}: {why}; set spill_dir to another folder") from None

    @property
    def commit(self) -> Commit:
        """The newest commit."""
        return self.driver.commit

    @property
    def unclean(self) -> int:
        """The number of groups that may miss results, because rows are on disk."""
        return len(self.commit.ledger.generations.clean)

    def end(self) -> None:
        """Close the sinks: the streams have ended and everything is flushed."""
        for sink in self.sinks.values():
            sink.close(self.commit.batch)

    def refused(self, stream: str) -> JobError:
        """The error for new rows of a stream that has ended for this job."""
        what = FINISHED if self.commit.finished else f"{stream} has ended for this job"
        return JobError(f"{what}; {stream} has new rows, which need a new checkpoint")

    @property
    def temporary(self) -> bool:
        """Whether the checkpoint is removed with the job, so that no later run can continue it."""
        return self._temporary is not None

    @property
    def more_room(self) -> str:
        """What to do if the disk of the checkpoint is full."""
        if self.temporary:
            return "set spill_dir to a folder with more room"
        return "make room, and run the job again; it continues from its last commit"

    def close(self) -> None:
        """End the run: unlock the checkpoint, and remove a temporary one."""
        self.home.close()
        if self.driver.coordinator is not None:  # otherwise another run may have the checkpoint, and stage files
            for sink in self.sinks.values():
                if isinstance(sink, BatchFiles):
                    sink.pause()
        self.checkpoint.store.let_go()
        if self._temporary is not None:
            for sink in self.sinks.values():
                sink.abandon()
            self._temporary.remove()
            self.driver.account.end()
        for sink in self.sinks.values():
            if isinstance(sink, BatchFiles):
                sink.release()

    def _sink(self, outlet: Outlet) -> Sink:
        """The sink of an outlet that has one."""
        if outlet == RESULTS:
            return self._job.sink
        inputs = {i.name: (i.late, i.dead) for i in self._job.inputs}
        inputs |= {table.stream.name: (None, table.dead) for table in self._job.asked}
        late, dead = inputs[outlet.stream]
        found = late if outlet.kind == "late" else dead
        assert found is not None
        return found

    def _delivered(self) -> Deliveries:
        """The outlets whose sinks keep the numbers of batches."""
        found = {}
        for outlet, staged in self.sinks.items():
            if isinstance(staged, HandOver) and isinstance(sink := self._sink(outlet), TakesBatches):
                found[outlet] = staged, sink
        return Deliveries(None if self.temporary else self.spec.job, found)

    def _give(self, outlet: Outlet, batch: int, files: Sequence[str]) -> None:
        """Give published rows to a sink that does not write files itself."""
        sink = self._sink(outlet)
        if outlet in self._deliveries.outlets:
            self._deliveries.give(outlet, files)
        elif isinstance(sink, TakesFiles):
            sink.take_files(batch, [f"{self.root}/{file}" for file in files])
        else:
            taken = self.sinks[outlet]
            assert isinstance(taken, HandOver)
            for file in files:
                for rows in taken.staged(file).to_batches():
                    sink.write(rows)


class _Published:
    """All sinks of a job as the coordinator sees them. Results for some are `delivered` after the commit instead."""

    def __init__(self, sinks: Mapping[Outlet, AnySink], delivered: Collection[Outlet]) -> None:
        self._sinks, self._delivered = sinks, delivered

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        for outlet, sink in self._sinks.items():
            if outlet not in self._delivered:
                sink.publish(batch, staged.get(outlet, ()))

    def forget_after(self, batch: int) -> None:
        for sink in self._sinks.values():
            sink.forget_after(batch)
