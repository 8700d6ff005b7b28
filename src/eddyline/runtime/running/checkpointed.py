"""A job on the local engine with a checkpoint: the batch protocol, with its driver, splits and slots in one process.

How far a stream was read is a place in the list of its files that were read (runtime/sources/register.py), and how many
rows of that file were. A stream that a program hands over is read from its start again, less that many rows.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa

from eddyline.errors import SettingError
from eddyline.protocol.packing import Packed, Packer
from eddyline.protocol.parcel import Parcel
from eddyline.protocol.turn import put_together, take_turn
from eddyline.routing.report import Report
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.runtime.running.check import flushes
from eddyline.runtime.running.durable import Durable
from eddyline.runtime.running.feed import Offset
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.running.waiting import Waiting
from eddyline.runtime.sinks.file_sink import FileSink
from eddyline.runtime.sinks.sink import Sink
from eddyline.settings import Settings


class CheckpointedRunner(LocalRunner):
    """Runs one job from its newest commit on."""

    keeps = True

    def __init__(
        self,
        job: Job,
        text: str,
        settings: Settings,
        checkpoint: str,
        clock: Callable[[], float] = time.perf_counter,
        began: float | None = None,
        follow: bool = False,
    ) -> None:
        super().__init__(job, settings, clock, began, follow)
        self._durable = Durable(job, text, settings, settings.slots or 1, checkpoint, None, self._course)
        self._home, self._account = self._durable.home, self._durable.account

    @property
    def _sinks(self) -> Sequence[Sink]:
        """Files are published batch by batch (runtime/sinks/batches.py), not here."""
        return [sink for sink in self._job.sinks if not isinstance(sink, FileSink)]

    def run(
        self, stop: Callable[[], bool] = lambda: False, watch: Callable[[Progress], None] = lambda progress: None
    ) -> Summary:
        try:
            return super().run(stop, watch)
        finally:
            self._durable.close()

    def _open(self) -> bool:
        super()._open()
        for reader in self._readers:
            if hasattr(reader.stream.source, "plan"):  # it has offsets of its own, and its rows may be trimmed
                raise SettingError(f"--checkpoint with --engine local cannot read {reader.stream.name}: use Spark")
        self._coordinator = self._durable.start()
        commit = self._durable.commit
        at = self._offsets if commit.offsets is None else commit.offsets
        if not isinstance(at, dict) or at.keys() != self._offsets.keys():
            raise SettingError(f"the checkpoint {self._durable.root} is of a job on Spark: go on with it there")
        for reader in self._readers:
            name = reader.stream.name
            reader.start_at(tuple(at[name]), self._durable.checkpoint.store)
            if (commit.finished or name in commit.watermarks["ended"]) and reader.feed.more():
                raise self._durable.refused(name)
        return not commit.finished

    @property
    def _offsets(self) -> dict[str, Offset]:
        """How far streams were taken."""
        return {reader.stream.name: reader.offset for reader in self._readers}

    def _load_tables(self, waiting: Waiting) -> None:
        if self._durable.commit.batch >= 0:
            return

        def rows() -> Iterator[tuple[str, pa.RecordBatch, bool]]:
            for table, chunk in self._table_rows(waiting):
                yield table.name, chunk.rows, True
                if chunk.dead is not None:
                    yield table.name, chunk.dead, False

        self._batch("load", rows())

    def _step(self, ended: Collection[str], unread: Collection[str]) -> None:
        rows = []
        for reader in self._readers:
            ready, dead = reader.hand_over()
            name = reader.stream.name
            rows += [*((name, batch, True) for batch in ready), *((name, batch, False) for batch in dead)]
        ended = ended if flushes(self._settings, self.keeps) else ()  # it may go on
        self._batch("rows", iter(rows), ended, unread)

    def _end(self) -> None:
        self._batch("end", iter(()))
        self._durable.end()

    def _batch(
        self,
        kind: str,
        rows: Iterator[tuple[str, pa.RecordBatch, bool]],
        ended: Collection[str] = (),
        unread: Collection[str] = (),
    ) -> None:
        home = self._home
        offsets = self._offsets
        for reader in self._readers:
            reader.feed.save()
        decision = self._coordinator.begin(self._durable.commit.batch + 1, kind, offsets, sorted(ended), unread)
        assert decision is not None
        packer = Packer(home, decision, 0)
        parcels: dict[int, list[Parcel]] = {slot: [] for slot in range(decision.slots)}

        def packed() -> Iterator[Packed]:
            for name, batch, readable in rows:
                yield from (packer.rows if readable else packer.dead)(name, batch)
            yield from packer.finish()

        for slot, parcel in packed():
            parcels[slot].append(parcel)
        attempt = uuid.uuid4().hex[:8]
        turns = [take_turn(home, decision, slot, attempt, mine) for slot, mine in parcels.items()]
        records = [turn.record for turn in turns]
        if home.partial:
            cells = [batch for turn in turns for batch in turn.partial]
            records.append(put_together(home, decision, attempt, cells))
        self._durable.finish(decision, records)

    def progress(self) -> Progress:
        return self._account.progress()

    @property
    def decisions(self) -> dict[str, int]:
        return self._account.decisions

    def report(self) -> Report:
        return self._account.report()

    def explain(self) -> str:
        return self._account.explain()

    def summary(self, stopped: bool) -> Summary:
        """What the job did, over all its runs."""
        return self._account.summary(stopped)
