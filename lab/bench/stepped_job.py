"""A job with a log, in this process, batch by batch: for runs whose groups leave memory.

The batch protocol is the real one (protocol/coordinator.py, turn.py, spiller.py) with a checkpoint in a temporary
folder. Results are not kept: the sink adds up a hash of each, so that two runs can be compared, and the time that it
takes for that is left out of the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from types import TracebackType

import numpy as np
import pyarrow as pa

from eddyline.balance.slot_map import SlotMap
from eddyline.bound.model import BoundQuery
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.protocol.adapted import Adapted, AfterBatch, Placer, stays
from eddyline.protocol.batch_decision import BatchKind
from eddyline.protocol.commit import Commit
from eddyline.protocol.coordinator import Coordinator, no_moves
from eddyline.protocol.home import Home, checkpoint_at
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.packing import Packer
from eddyline.protocol.parcel import Parcel, packed, unpacked
from eddyline.protocol.record import Record
from eddyline.protocol.spiller import Spiller
from eddyline.protocol.turn import take_turn
from eddyline.settings import Settings
from eddyline.state.keys import combine


@dataclass(frozen=True)
class Step:
    """The measurements of one batch."""

    seconds: float
    cpu: float
    results: int
    """All of them, those of a sweep too."""
    swept: int
    """Results that a sweep made."""
    held: int
    """Bytes of state of the largest slot, at the end of the batch."""
    left: int
    """Groups that left memory before the batch."""
    rows_left: int
    """Their rows in memory."""
    turns: tuple[float, ...]
    """By slot the CPU seconds of its turn, without the sink."""


Digest = tuple[int, int]
"""The number of results, and the sum of their hashes: runs with the same results in any order have the same."""


class SteppedJob:
    """Runs a query over the rows that it is given. A context manager: the checkpoint is removed when it ends."""

    def __init__(
        self,
        query: BoundQuery,
        settings: Settings,
        placer: Placer = stays,
        serialised: bool = False,
        tuning: Tuning = DEFAULT,
    ) -> None:
        """`placer` decides which slot has which group, if `balance` is not off. If parcels are `serialised`, they
        travel as bytes, as between processes."""
        self._placer, self._serialised = placer, serialised
        self._folder = TemporaryDirectory(prefix="eddyline-")
        checkpoint = checkpoint_at(self._folder.name)
        checkpoint.open({})
        slots, self._sink = settings.slots or 1, _Hashed()
        self.home = Home(query, settings, slots, checkpoint, None, self._sink.stage, tuning=tuning)
        self.spiller = Spiller(query, settings) if self.home.spills else None
        mover = self.spiller or no_moves
        self._coordinator = Coordinator(checkpoint, self.home, self._sink, mover=mover, placer=self._place)
        self.records: Sequence[Record] = ()
        """What slots reported about the last batch."""

    def place_by(self, placer: Placer) -> None:
        """Another placer decides from now on."""
        self._placer = placer

    def __enter__(self) -> SteppedJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def batch(self, rows: Iterable[tuple[str, pa.RecordBatch]]) -> Step:
        """Run a batch of rows of streams."""
        return self._step("rows", rows)

    def end(self) -> Step:
        """Sweep all groups that are on disk, and end the job."""
        return self._step("end", ())

    @property
    def commit(self) -> Commit:
        """The newest commit."""
        return self._coordinator.commit

    @property
    def results(self) -> list[pa.RecordBatch]:
        """The results of the last batch."""
        return self._sink.results

    @property
    def digest(self) -> Digest:
        """The digest of all results so far."""
        return self._sink.count, self._sink.hash

    def _place(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        return self._placer(so_far, after)

    def _step(self, kind: BatchKind, rows: Iterable[tuple[str, pa.RecordBatch]]) -> Step:
        self._sink.seconds = self._sink.cpu = 0.0
        self._sink.results = []
        begin, begin_cpu = perf_counter(), process_time()
        batch = self._coordinator.commit.batch + 1
        decision = self._coordinator.begin(batch, kind, batch)
        assert decision is not None
        packer = Packer(self.home, decision, 0)
        parcels: dict[int, list[Parcel]] = {slot: [] for slot in range(decision.slots)}
        for stream, some in rows:
            for slot, parcel in packer.rows(stream, some):
                parcels[slot].append(unpacked(packed(parcel)) if self._serialised else parcel)
        for slot, parcel in packer.finish():
            parcels[slot].append(parcel)
        records, turns = list[Record](), list[float]()
        for slot, mine in parcels.items():
            began, hashed = process_time(), self._sink.cpu
            records.append(take_turn(self.home, decision, slot, "one", mine).record)
            turns.append(process_time() - began - (self._sink.cpu - hashed))
        self.records = records
        counts = self._coordinator.finish(decision, records)
        return Step(
            perf_counter() - begin - self._sink.seconds,
            process_time() - begin_cpu - self._sink.cpu,
            counts.rows_out,
            counts.spill.results,
            max(record.held.bytes for record in records),
            counts.spill.left,
            counts.spill.rows,
            tuple(turns),
        )


class ScriptedMap:
    """A placer that does as it is told: `to` is the slot map from the next batch on."""

    def __init__(self, to: SlotMap | None = None) -> None:
        self.to = to

    def __call__(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        """What is different in the next batch."""
        return so_far if self.to is None else replace(so_far, slot_map=self.to)


class _Hashed:
    """A sink that counts results and adds up their hashes."""

    def __init__(self) -> None:
        self.count = self.hash = 0
        self.results: list[pa.RecordBatch] = []
        self.seconds = self.cpu = 0.0
        """What that took, since these were set to 0."""

    def stage(self, outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        begin, begin_cpu = perf_counter(), process_time()
        self.results += batches
        for batch in batches:
            hashes = combine([np.asarray(column) for column in batch.columns])
            self.count += batch.num_rows
            self.hash = (self.hash + int(hashes.view(np.uint64).sum())) % (1 << 64)
        self.seconds += perf_counter() - begin
        self.cpu += process_time() - begin_cpu
        return []

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        pass

    def forget_after(self, batch: int) -> None:
        pass
