"""Rows for sinks that keep the numbers of batches: staged files that are there, gone, or gone in part."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.errors import JobError
from eddyline.protocol.outlet import RESULTS
from eddyline.runtime.running.deliveries import Deliveries
from eddyline.runtime.sinks.batches import HandOver
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sinks.sink import BatchOwner, ReadRows
from eddyline.state.log.store import Store

ROWS = pa.record_batch({"k": [1, 2]})


class Numbered(CallbackSink):
    """A sink that keeps the number of its newest batch."""

    name = "the table"

    def __init__(self, newest: int | None) -> None:
        self.taken: list[pa.RecordBatch] = []
        super().__init__(self.taken.append)
        self.newest = newest

    def begin(self, owner: BatchOwner, last: int | None) -> None:
        """A run begins."""

    def newest_batch(self, owner: BatchOwner) -> int | None:
        """The newest batch."""
        return self.newest

    def take_batch(self, owner: BatchOwner | None, batch: int, rows: ReadRows) -> None:
        """Take rows that are new."""
        if self.newest is None or self.newest < batch:
            self.taken += rows()
            self.newest = batch


def deliveries(folder: Path, sink: Numbered) -> tuple[Deliveries, HandOver]:
    found: list[Deliveries] = []
    staged = HandOver(
        Store(str(folder)), "results", ROWS.schema, lambda batch, files: found[0].give(RESULTS, batch, files)
    )
    found.append(Deliveries("0123456789ab", {RESULTS: (staged, sink)}))
    return found[0], staged


@pytest.mark.parametrize("batch", [0, 7])
def test_a_run_that_dies_while_it_deletes_delivered_files(tmp_path: Path, batch: int) -> None:
    job, staged = deliveries(tmp_path, Numbered(batch))
    files = [*staged.stage(f"{batch:08}-a", [ROWS]), *staged.stage(f"{batch:08}-b", [ROWS])]
    Store(str(tmp_path)).delete(files[0])
    job.deliver(batch, {RESULTS: files})
    assert not staged.has(files[1])


def test_a_file_that_is_missing_before_it_was_delivered(tmp_path: Path) -> None:
    sink = Numbered(None)
    job, staged = deliveries(tmp_path, sink)
    files = [*staged.stage("00000000-a", [ROWS]), *staged.stage("00000000-b", [ROWS])]
    Store(str(tmp_path)).delete(files[0])
    with pytest.raises(JobError, match=r"^the checkpoint is damaged: results/00000000-a\.parquet is missing, and"):
        job.deliver(0, {RESULTS: files})
    assert not sink.taken and staged.has(files[1])
