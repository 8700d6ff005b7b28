"""The tasks of Spark's Python workers: the split of a stream, the turn of a slot, and the combination of partial
results.

They exchange rows (slot int, blob binary), where a blob is a parcel (protocol/parcel.py). A task gets the number of its
batch from Spark's own properties, and reads the decision for the batch from the checkpoint. `spec` is the text that
`spark.functions.travelling` makes.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext

from eddyline.counts import Counts
from eddyline.errors import JobError
from eddyline.faults import reach
from eddyline.plan.partition_groups import row_groups
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.home import Home
from eddyline.protocol.packing import Packed, Packer
from eddyline.protocol.parcel import CellsHead, CountsHead, Parcel, RecordHead, packed, unpacked
from eddyline.protocol.record import Record
from eddyline.protocol.turn import put_together, take_turn
from eddyline.spark.functions import home_in_task
from eddyline.spark.names import named
from eddyline.spark.sweep_share import telling
from eddyline.state.arena import placed
from eddyline.state.own_folder import delete

RECORD_DDL = "record binary"
BATCH_PROPERTY = "streaming.sql.batchId"
_BLOBS = 16
"""Parcels that are handed to Spark at a time."""

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def decision_of(home: Home, batch: int) -> BatchDecision:
    """The decision for a batch."""
    read = home.checkpoint.decided(batch)
    assert read is not None, f"nothing was decided for batch {batch}"
    return read


def current_batch() -> int:
    """Our number of the task's batch: Spark's number plus one, because the tables are a batch before it."""
    context = TaskContext.get()
    assert context is not None
    return int(context.getLocalProperty(BATCH_PROPERTY) or 0) + 1


def as_rows(parcels: Iterable[Packed]) -> Iterator[pa.RecordBatch]:
    """Parcels as record batches for Spark."""
    slots: list[int] = []
    blobs: list[bytes] = []
    for slot, parcel in parcels:
        slots.append(slot)
        blobs.append(packed(parcel))
        if len(blobs) == _BLOBS:
            yield _rows(slots, blobs)
            slots, blobs = [], []
    if blobs:
        yield _rows(slots, blobs)


def _rows(slots: list[int], blobs: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(slots, pa.int32()), pa.array(blobs, pa.binary())], names=["slot", "blob"])


def split_task(spec: str, stream: str, columns: Sequence[str], batch: int | None) -> Task:
    """A task that packs rows of a stream, as Spark has them, into parcels; for `batch`, or Spark's current batch. Their
    `columns` come without their names (spark/names.py)."""

    def split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _, home = home_in_task(spec)
        context = TaskContext.get()
        number = current_batch() if batch is None else batch
        reach("spark: a split begins")
        packer = Packer(home, decision_of(home, number), context.partitionId() if context else 0)

        def parcels() -> Iterator[Packed]:
            for rows in batches:
                yield from packer.rows(stream, named(rows, columns))
            yield from packer.finish()

        yield from as_rows(parcels())
        reach("spark: a split is done")

    return split


def turn_task(spec: str, batch: int) -> Task:
    """A task that takes the parcels of a slot and gives the slot's record; with partial results, it gives parcels
    again."""

    def turn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job, home = home_in_task(spec)
        context = TaskContext.get()
        assert context is not None
        if job.arenas is not None and not job.anywhere:
            home.watch_sweep = telling(job.arenas, context.partitionId())
        parcels = (unpacked(blob.as_buffer()) for rows in batches for blob in rows.column("blob") if blob.is_valid)
        attempt = f"{context.attemptNumber()}-{uuid.uuid4().hex[:8]}"
        reach("spark: a turn begins")
        done = take_turn(home, decision_of(home, batch), context.partitionId(), attempt, parcels)
        reach("spark: a turn is done")
        if not home.partial:
            yield _records([done.record])
            return
        yield from as_rows(_spread(home, done.partial))
        yield from as_rows([(0, Parcel(RecordHead(done.record)))])

    return turn


def _records(records: Sequence[Record]) -> pa.RecordBatch:
    """Records as a record batch for Spark."""
    return pa.record_batch([pa.array([record.packed() for record in records], pa.binary())], names=["record"])


def sweep_task(arenas: str) -> Callable[[Iterable[int]], None]:
    """A task that removes the arenas of a job on its host."""

    def sweep(_: Iterable[int]) -> None:
        with contextlib.suppress(JobError):
            delete(placed(arenas))
        time.sleep(0.2)

    return sweep


def count_task(spec: str, batch: int) -> Task:
    """A task for the transport floor: it only unpacks parcels."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        parcels = [unpacked(blob.as_buffer()) for rows in batches for blob in rows.column("blob")]
        heads = [parcel.head for parcel in parcels]
        counts = sum((head.counts for head in heads if isinstance(head, CountsHead)), Counts())
        yield _records([Record(context.partitionId(), counts)])

    return count


def _spread(home: Home, partial: list[pa.RecordBatch]) -> Iterator[Packed]:
    """Pack partial results so that those of one group go to one task."""
    for cells in partial:
        keys = [cells.column(name) for name in cells.schema.names if name.startswith("key")]
        to = row_groups(keys, None, cells.num_rows, home.slots)
        for slot in range(home.slots):
            mine = cells.filter(pa.array(to == slot))
            if mine.num_rows:
                yield slot, Parcel(CellsHead(), mine)


def combine_task(spec: str, batch: int) -> Task:
    """A task that combines partial results of all slots and gives records."""

    def combine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _, home = home_in_task(spec)
        cells, records = [], []
        reach("spark: combining begins")
        for rows in batches:
            for blob in rows.column("blob"):
                parcel = unpacked(blob.as_buffer())
                if isinstance(parcel.head, RecordHead):
                    records.append(parcel.head.record)
                else:
                    cells.append(parcel.batch)
        records.append(put_together(home, decision_of(home, batch), f"c-{uuid.uuid4().hex[:8]}", cells))
        reach("spark: combining is done")
        yield _records(records)

    return combine
