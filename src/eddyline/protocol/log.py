"""The durable log of a job: the rows that it may still need, in segments that commits name.

A slot writes at most one segment in a batch: its new rows, and those of older segments that it merges. Once groups have
left memory, each row has the epoch in which it came (spill/generations.py), in a column of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.engine.clean_up import RowsOnDisk
from eddyline.engine.intake import columns_for, event_times
from eddyline.engine.slot import Slot
from eddyline.engine.split import Split
from eddyline.protocol.checkpoint import LOG, Checkpoint
from eddyline.protocol.commit import Commit, LogFile
from eddyline.state.log.segment import written

EPOCH = "\0epoch"
"""The column that says in which epoch a row came; no name that a stream could have."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LogMeta:
    """The metadata of a segment of the log: which slot wrote it."""

    slot: int


class Log:
    """Writes and reads the rows of a job."""

    def __init__(self, checkpoint: Checkpoint, split: Split) -> None:
        """`split` is that of new rows."""
        self._checkpoint, self._split = checkpoint, split

    def write(
        self,
        name: str,
        slot: int,
        epoch: int,
        rows: Mapping[str, Sequence[pa.RecordBatch]],
        merged: Sequence[str],
        least: Mapping[str, int],
    ) -> LogFile | None:
        """Write one segment with the new rows of a slot, by stream, and those of the segments to merge. Rows older than
        `least` are left out: they are not needed once the batch is committed. None if no row remains."""
        logged = {stream: list(batches) for stream, batches in rows.items()}
        if epoch:
            logged = {stream: [_came_in(batch, epoch) for batch in batches] for stream, batches in logged.items()}
        for old in merged:
            segment = self._checkpoint.segment(old)
            for stream in segment.names:
                before = [self._in_order(stream, batch, epoch) for batch in segment.batches(stream)]
                logged[stream] = [*before, *logged.get(stream, ())]
        kept: dict[str, list[pa.RecordBatch]] = {}
        last: dict[str, int | None] = {}
        for stream, batches in logged.items():
            if (time := self._split.streams[stream].time) is not None:
                batches = [some for batch in batches if (some := _not_before(batch, time, least[stream])).num_rows]
            if batches:
                kept[stream] = batches
                last[stream] = None if time is None else max(int(event_times(b.column(time)).max()) for b in batches)
        if not kept:
            return None
        sections = [(stream, _alike(batches)) for stream, batches in kept.items()]
        self._checkpoint.store.write(f"{LOG}/{name}", *written(sections, LogMeta(slot)))
        count = sum(batch.num_rows for batches in kept.values() for batch in batches)
        return LogFile(f"{LOG}/{name}", slot, count, last)

    def by_epoch(self, commit: Commit, ordered: bool) -> Iterator[tuple[int, list[tuple[str, pa.RecordBatch]]]]:
        """The rows of a commit by the epochs in which they came, in the order of these. Where there is only one, they
        are given as they are."""
        if not ordered:
            yield 0, [(stream, batch) for stream, batch, _ in self._rows(commit)]
            return
        found: dict[int, list[tuple[str, pa.RecordBatch]]] = {}
        for stream, batch, came in self._rows(commit):
            for epoch in np.unique(came).tolist():
                some = batch if came[0] == epoch and (came == epoch).all() else batch.filter(pa.array(came == epoch))
                found.setdefault(epoch, []).append((stream, some))
        yield from sorted(found.items())

    def on_disk(self, commit: Commit, number: int, slot: Slot) -> Iterator[RowsOnDisk]:
        """All rows that the slot of this number has of sources whose rows can leave memory."""
        for stream, batch, came in self._rows(commit):
            for source, which in self._split.share(stream, batch, number).items():
                if slot.executor.leaves(source):
                    some = batch if which is None else batch.filter(pa.array(which))
                    yield RowsOnDisk(source, some, came if which is None else came[which])

    def _rows(self, commit: Commit) -> Iterator[tuple[str, pa.RecordBatch, Ints]]:
        """All rows, with the epochs in which they came."""
        for file in commit.log:
            segment = self._checkpoint.segment(file.name)
            for stream in segment.names:
                for batch in segment.batches(stream):
                    if EPOCH in batch.schema.names:
                        came = batch.column(EPOCH).to_numpy()
                        yield stream, batch.drop_columns([EPOCH]), came
                    else:  # from before the first group left
                        yield stream, batch, np.zeros(batch.num_rows, np.int64)

    def _in_order(self, stream: str, batch: pa.RecordBatch, epoch: int) -> pa.RecordBatch:
        """Logged rows with their columns in the order of this run and, if there are epochs, theirs."""
        rows = columns_for(self._split.streams[stream], batch, self._split.needed[stream])
        if EPOCH in batch.schema.names:
            return rows.append_column(EPOCH, batch.column(EPOCH))
        return _came_in(rows, 0) if epoch else rows


def _came_in(batch: pa.RecordBatch, epoch: int) -> pa.RecordBatch:
    return batch.append_column(EPOCH, pa.array(np.full(batch.num_rows, epoch)))


def _not_before(batch: pa.RecordBatch, time: str, least: int) -> pa.RecordBatch:
    """The rows that are not older than `least`; the whole batch if more than half remain, as filtering copies."""
    keep = event_times(batch.column(time)) >= least
    return batch if 2 * np.count_nonzero(keep) > keep.size else batch.filter(pa.array(keep))


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Give all batches the same dictionaries: a segment cannot hold dictionaries that differ between batches."""
    if any(pa.types.is_dictionary(field.type) for field in batches[0].schema):
        batches = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return batches
