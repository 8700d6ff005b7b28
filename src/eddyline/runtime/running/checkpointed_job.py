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

from eddyline.balance.decided import ended_tracks
from eddyline.balance.forced import spill_mode
from eddyline.balance.slot_map import SlotMap
from eddyline.counts import Counts
from eddyline.cql.script import parse
from eddyline.engine.watermarks import Silence
from eddyline.errors import JobError, SettingError
from eddyline.plan.judges import Preferences
from eddyline.plan.spill_axis import spill_axis
from eddyline.protocol.adapted import stays
from eddyline.protocol.balancer import Balancer
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.commit import Commit
from eddyline.protocol.coordinator import Coordinator, no_moves
from eddyline.protocol.home import Home
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.protocol.record import Record
from eddyline.protocol.resizer import Cores, Resizer
from eddyline.protocol.spiller import Spiller
from eddyline.protocol.ways import ways_of
from eddyline.routing.decisions import Decision
from eddyline.runtime.reporting.account import Account
from eddyline.runtime.running.check import about
from eddyline.runtime.running.deliveries import Deliveries
from eddyline.runtime.running.engine import check_memory
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.least_memory import fitting
from eddyline.runtime.running.modules import is_path, texts
from eddyline.runtime.running.schemas import schema_text
from eddyline.runtime.running.spec import AnySink, Spec, home_of
from eddyline.runtime.sinks.batches import BatchFiles, HandOver
from eddyline.runtime.sinks.folder import JOB_DIGITS
from eddyline.runtime.sinks.sink import Sink, TakesBatches, TakesFiles
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings
from eddyline.state.log.store import Store
from eddyline.state.own_folder import CHECKPOINT, OwnFolder, host_memory, own_name, sweep

WIDE = 4096
"""The bytes that a row is taken to have in a slot before the first batch has told."""

WARM = 0.1
"""If less than this share of the groups is in memory, a batch does not tell how much memory a row takes."""

IN_STATE = 4
"""The bytes that a row is taken to have in a slot then, for each byte in the log or in a parcel."""

ENOUGH = 10_000
"""A batch with fewer rows is never refused: in a small batch a row takes more memory than in a large one."""

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
    ) -> None:
        """`arenas` and `anywhere` are as in `Spec`. If it is known how many `cores` there are, the number of slots
        follows it, where groups can move."""
        self._job, self._memory, self._fixed_rows = job, settings.memory, settings.batch_rows is not None
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
        self.coordinator: Coordinator | None = None
        self.account = Account(self.home)
        self._spiller = Spiller(self.home.query, self.home.settings) if self.home.spills else None
        self._balancer: Balancer | None = None
        if self.home.even_map is not None:
            memory, copies, mode = self.home.settings.memory, self.home.copies, spill_mode(settings.spill)
            force = None if self._spiller is None else self._spiller.force
            aliases = [source.alias for source in query.sources]
            self._balancer = Balancer(
                memory, mode=mode, force=force, copies=copies, ways=ways_of(self.home), aliases=aliases
            )
        axis = spill_axis(self.home.plan, settings.groups)
        self._groups = 1 if axis is None else axis.count
        self.most_rows = None if self._spiller is None else self._fitting(1, WIDE / slots)
        """About how many rows a batch may have so that they fit in memory; None: any number."""
        self._resizer = None if cores is None or self._balancer is None else Resizer(cores, self._balancer)
        self._guessed = True
        """Whether no batch has told that yet."""
        self._added = 0
        """Bytes of the rows of the last batch in the slot that has most of them, if they were enough."""
        self._largest = 0
        """Bytes of the largest slot in the last batch; where groups can leave memory, of those that cannot."""

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
        home, published = self.home, _Published(self.sinks, self._deliveries.outlets)
        self._silence = silence = Silence(home.streams, home.settings.idle_timeout)
        deciders = self._spiller or no_moves, self._resizer or self._balancer or stays
        more = silence, *deciders, self._deliveries
        self.coordinator = Coordinator(self.checkpoint, home, published, *more)
        self.account.begin(self.commit)
        if self.commit.finished:
            self.end()  # an earlier run may have failed before this step
        return self.coordinator

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
        if self.coordinator is not None:
            return self.coordinator.commit
        return Commit(-1, None, self.home.watermarks().reached)

    @property
    def unclean(self) -> int:
        """The number of groups that may miss results, because rows are on disk."""
        return len(self.commit.ledger.generations.clean)

    def finish(self, decision: BatchDecision, records: Sequence[Record]) -> Counts:
        """Publish and commit a batch in which every slot took its turn. Returns its counts."""
        assert self.coordinator is not None
        counts = self.coordinator.finish(decision, records)
        self.account.add(self.commit, counts, records)
        self.account.decide(self._silence.decisions())
        if self._balancer is not None:
            self.account.decide([*self._ended_tracks(), *self._balancer.decisions()])
        if self._resizer is not None:
            self.account.decide(self._resizer.decisions())
        if self._spiller is None:
            self._largest = max(record.held.bytes for record in records)
            if self._memory is not None and counts.rows_used >= ENOUGH:
                self.most_rows = self._fitting(counts.rows_used, IN_STATE * max(record.bytes_in for record in records))
        else:
            self._largest = max(record.spillable.stays for record in records)
            self.account.decide(self._spiller.decisions())
            added = max(record.spillable.added for record in records)
            if added > 0 and counts.rows_used > 0:
                self._added = added if counts.rows_used >= ENOUGH else 0
            self._size_batches(decision, counts.rows_used, added)
        return counts

    def _ended_tracks(self) -> list[Decision]:
        before, after = self.commit.slot_map, self.commit.next_map
        return [] if before is None or after is None else ended_tracks(before, after)

    def _size_batches(self, decision: BatchDecision, rows: int, added: int) -> None:
        """Decide how many rows a batch may have, after one of this many rows that took so many bytes in a slot. Rows of
        cold groups are not stored, but a batch should fit as if they were: their groups come back."""
        warm = 1 - len(decision.ledger.generations.cold) / self._groups
        if rows > 0 and added > 0 and warm >= WARM:
            self.most_rows, self._guessed = self._fitting(rows, added / warm), False
        elif self._guessed and self.commit.log:
            size = IN_STATE * sum(file.bytes for file in self.commit.log) / self.home.slots
            self.most_rows = self._fitting(sum(file.rows for file in self.commit.log), size)

    def _fitting(self, rows: int, size: float) -> int:
        assert self._memory is not None
        return fitting(rows, size, self._memory)

    def check_memory(self) -> None:
        """Raises JobError if the largest slot takes more than the setting `memory`; where groups can leave memory, if
        the rest of the slot does, or the rows of one batch."""
        if self._fixed_rows and self._memory is not None and self._added > self._memory:
            raise JobError(
                f"the rows of a batch take {size_text(self._added)} in a slot, more than"
                f" memory={size_text(self._memory)}; set a larger memory, or batch_rows to at most {self.most_rows}"
            )
        check_memory(self._memory, self._largest, self.commit.counts.rows_in, of_slot=True, stays=self.home.stays)

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
        if self.coordinator is not None:  # otherwise another run may have the checkpoint, and stage files
            for sink in self.sinks.values():
                if isinstance(sink, BatchFiles):
                    sink.pause()
        self.checkpoint.store.let_go()
        if self._temporary is not None:
            for sink in self.sinks.values():
                sink.abandon()
            self._temporary.remove()
            self.account.end()
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
