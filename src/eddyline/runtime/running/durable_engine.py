"""The engine of a local job with a checkpoint: the batch protocol, with its driver, splits and slots in one process.

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
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from eddyline.engine.online import RunningEstimate
from eddyline.engine.standing import Standing
from eddyline.errors import SettingError
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.protocol.batch_decision import BatchKind
from eddyline.protocol.packing import Packed, Packer
from eddyline.protocol.parcel import Parcel
from eddyline.protocol.turn import Turn, put_together, take_turn
from eddyline.routing.report import Report
from eddyline.runtime.running.checkpointed_job import CheckpointedJob
from eddyline.runtime.running.engine import Pulse, Read, WatchSweep
from eddyline.runtime.running.feed import Offset
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.reading import StreamReader
from eddyline.runtime.sinks.file_sink import FileSink
from eddyline.settings import Settings
from eddyline.state.arena import placed
from eddyline.state.own_folder import ARENAS, OwnFolder, own_name


class DurableEngine:
    """Runs batches from the newest commit of a checkpoint on, and commits each."""

    def __init__(self, job: Job, settings: Settings, checkpoint: str | None) -> None:
        arenas = None
        if checkpoint is not None and settings.arena_dir is not None:
            arenas = os.path.abspath(own_name(placed(settings.arena_dir), ARENAS))
        self._arenas = OwnFolder(arenas) if arenas is not None else None
        self._job = CheckpointedJob(job, settings, settings.slots or 1, checkpoint, arenas)
        self._sinks = [sink for sink in job.sinks if not isinstance(sink, FileSink)]
        """Sinks to which rows are written. Files are published with each commit (runtime/sinks/batches.py), not
        here."""
        self._readers: Sequence[StreamReader] = ()
        self._pulse: Pulse = lambda share: None

    def open(self, readers: Sequence[StreamReader]) -> bool:
        """Starts the readers at the newest commit. Raises SettingError for a source or a checkpoint that only Spark can
        use, JobError for new rows of a stream that has ended."""
        self._readers = readers
        for sink in self._sinks:
            sink.open()
        self._coordinator = self._job.start()
        if self._arenas is not None:
            self._arenas.hold()
        commit = self._job.commit
        at = self._offsets if commit.offsets is None else commit.offsets
        if not isinstance(at, dict) or at.keys() != self._offsets.keys():
            raise SettingError(f"the checkpoint {self._job.root} belongs to a job on Spark: continue it there")
        for reader in readers:
            name = reader.stream.name
            offset = at[name] if isinstance(at[name], Mapping) else tuple(at[name])
            reader.start_at(offset, self._job.checkpoint.files)
            if (commit.finished or name in commit.watermarks.ended) and reader.feed.more():
                raise self._job.refused(name)
        return not commit.finished

    def load(self, tables: Iterable[Read]) -> None:
        """Takes all rows of all tables in one batch, unless an earlier run did."""
        if self._job.commit.batch < 0:
            self._batch("load", tables)

    def watch(self, pulse: Pulse) -> None:
        """During batches, `pulse` gets the share of their rows that are taken in."""
        self._pulse = pulse

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
        self._job.check_memory()

    @property
    def waits(self) -> bool:
        """Whether rows wait for the answer of a table."""
        return self._job.commit.waits

    @property
    def most_rows(self) -> int | None:
        """About how many rows a batch may have so that they fit in memory; None: any number."""
        return self._job.most_rows

    def close(self) -> None:
        """Closes the sinks and unlocks the checkpoint. The results of a run without one are final, also if it was
        stopped."""
        if self._job.temporary and not self._job.commit.finished:
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
        return self._job.account.standing

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far in this run, by kind."""
        return self._job.account.decisions

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """No estimates: only the engine without a checkpoint has them."""
        return ()

    def report(self, seconds: float) -> Report:
        """The work of the eddies of all slots so far in this run."""
        return self._job.account.report(seconds)

    def explain(self) -> str:
        """The plan, and the measurements on it so far in this run."""
        return self._job.account.explain()

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
        home, offsets = self._job.home, self._offsets
        for reader in self._readers:
            reader.feed.save()
        number, told = self._job.commit.batch + 1, (sorted(ended), unread, sweep, pressure)
        decision = self._coordinator.begin(number, kind, offsets, *told)
        assert decision is not None
        packer = Packer(home, decision, 0)
        parcels: dict[int, list[Parcel]] = {slot: [] for slot in range(decision.slots)}

        def packed() -> Iterator[Packed]:
            for read in rows:
                yield from (packer.rows if read.readable else packer.dead)(read.name, read.rows)
            yield from packer.finish()

        for slot, parcel in packed():
            parcels[slot].append(parcel)
        attempt = uuid.uuid4().hex[:8]
        turns = list[Turn]()

        def pulse(share: float) -> None:
            self._pulse((len(turns) + share) / len(parcels))

        home.pulse = None if kind != "rows" or sweep else pulse
        for slot, mine in parcels.items():
            turns.append(take_turn(home, decision, slot, attempt, mine))
        records = [turn.record for turn in turns]
        if home.partial:
            cells = [batch for turn in turns for batch in turn.partial]
            records.append(put_together(home, decision, attempt, cells))
        self._job.finish(decision, records)
