"""A job on the local engine with a checkpoint: the batch protocol, with its driver, splits and slots in one process.

How far a source was read is the number of its readable and of its dead rows. A run that goes on reads its sources from
the start and leaves out that many: so the files must be the ones they were, with new ones after them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa

from eddyline.engine.coordinator import Record
from eddyline.engine.packing import Packed, Packer
from eddyline.engine.parcel import Parcel
from eddyline.engine.turn import put_together, take_turn
from eddyline.errors import SettingError
from eddyline.plan.explain import explain
from eddyline.runtime.durable import Durable
from eddyline.runtime.job import Job
from eddyline.runtime.runner import LocalRunner
from eddyline.runtime.sinks.files import FileSink
from eddyline.runtime.sinks.sink import Sink
from eddyline.runtime.summary import Progress, Summary
from eddyline.runtime.waiting import Waiting
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
    ) -> None:
        super().__init__(job, settings, clock, began)
        self._durable = Durable(job, text, settings, settings.slots or 1, checkpoint, None)
        self._home = self._durable.home
        self._records: list[Record] = []
        self._peaks = {"rows": 0, "bytes": 0}
        self._at: dict[str, list[int]] = {r.stream.name: [0, 0] for r in self._readers}

    @property
    def _sinks(self) -> Sequence[Sink]:
        """Files are published batch by batch (runtime/sinks/batches.py), not here."""
        return [sink for sink in self._job.sinks if not isinstance(sink, FileSink)]

    def _open(self) -> None:
        super()._open()
        for reader in self._readers:
            if hasattr(reader.stream.source, "plan"):  # it has offsets of its own, and its rows may be trimmed
                raise SettingError(f"--checkpoint with --engine local cannot read {reader.stream.name}: use Spark")
        self._durable.start()
        self._at |= self._durable.commit.offsets or {}
        for reader in self._readers:
            reader.feed.skip(*self._at[reader.stream.name])

    def _load_tables(self, waiting: Waiting) -> None:
        if self._durable.commit.batch >= 0:
            return

        def rows() -> Iterator[tuple[str, pa.RecordBatch, bool]]:
            for table, feed in self._tables:
                while waiting.until_ready(feed) and (chunk := feed.next()) is not None:
                    yield table.name, chunk.rows, True
                    if chunk.dead is not None:
                        yield table.name, chunk.dead, False

        self._batch("load", rows(), ())

    def _step(self, ended: Collection[str]) -> None:
        rows = []
        for reader in self._readers:
            ready, dead = reader.hand_over()
            name = reader.stream.name
            at = self._at[name]
            self._at[name] = [at[0] + sum(b.num_rows for b in ready), at[1] + sum(b.num_rows for b in dead)]
            self._read[name] += sum(batch.num_rows for batch in (*ready, *dead))
            rows += [*((name, batch, True) for batch in ready), *((name, batch, False) for batch in dead)]
        self._batch("rows", iter(rows), () if self._settings.at_end == "keep" else ended)  # it may go on

    def _end(self) -> None:
        self._batch("end", iter(()), ())
        self._durable.finished()

    def _batch(self, kind: str, rows: Iterator[tuple[str, pa.RecordBatch, bool]], ended: Collection[str]) -> None:
        durable, home = self._durable, self._home
        offsets = {name: list(at) for name, at in self._at.items()}
        decision = durable.coordinator.begin(durable.commit.batch + 1, kind, offsets, sorted(ended))
        assert decision is not None
        packer = Packer(home, decision, 0)
        parcels: dict[int, list[Parcel]] = {slot: [] for slot in range(decision.slots)}

        def packed() -> Iterator[Packed]:
            for name, batch, readable in rows:
                yield from (packer.rows if readable else packer.dead)(name, batch)
            yield packer.finish()

        for slot, parcel in packed():
            parcels[slot].append(parcel)
        attempt = uuid.uuid4().hex[:8]
        turns = [take_turn(home, decision, slot, attempt, mine) for slot, mine in parcels.items()]
        self._records = [turn.record for turn in turns]
        if home.partial:
            cells = [batch for turn in turns for batch in turn.partial]
            self._records.append(put_together(home, decision, attempt, cells))
        durable.coordinator.finish(decision, self._records)
        for what in self._peaks:
            self._peaks[what] = max(self._peaks[what], sum(r.state.get(what, 0) for r in self._records))

    def _state(self, what: str) -> int:
        return sum(r.state.get(what, 0) for r in self._records)

    def progress(self) -> Progress:
        counts = self._durable.counts
        return Progress(
            **{name: counts[name] for name in ("rows_in", "rows_out", "rows_late", "rows_dead")},
            state_rows=self._state("rows"),
            memory_bytes=self._state("bytes"),
            batches=self._batches,
            seconds=self._last - self._first,
            watermark=self._durable.commit.watermarks["used"],
            rows_by_stream=dict(self._read),
        )

    @property
    def decisions(self) -> dict[str, int]:
        return {"reroute": self._state("reroute")}

    def explain(self) -> str:
        return explain(self._job.query, self._home.split.partitioning)

    def summary(self, stopped: bool) -> Summary:
        """What the job did, over all its runs."""
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
