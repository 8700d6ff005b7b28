"""Rows for sinks that keep the numbers of batches: staged files that are there, gone, or gone in part."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.engine.watermarks import Reached
from eddyline.errors import JobError, SettingError
from eddyline.protocol.checkpoint import Checkpoint
from eddyline.protocol.commit import Commit
from eddyline.protocol.outlet import RESULTS, Staged, Written
from eddyline.runtime.running.deliveries import Deliveries
from eddyline.runtime.sinks.batches import HandOver
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery, ReadRows
from eddyline.state.log.store import Store

ROWS = pa.record_batch({"k": [1, 2]})


class Numbered(CallbackSink):
    """A sink that keeps the mark of its newest batch."""

    name = "the table"

    def __init__(self, newest: BatchMark | None) -> None:
        self.taken: list[pa.RecordBatch] = []
        super().__init__(self.taken.append)
        self.newest = newest

    def begin(self, owner: BatchOwner, last: int | None) -> None:
        """A run begins."""

    def newest_batch(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch."""
        return self.newest

    def take_batch(self, delivery: Delivery | None, rows: ReadRows) -> None:
        """Take rows that are new."""
        if delivery is not None and delivery.is_missing(self.name, self.newest):
            self.taken += rows()
            self.newest = delivery.mark


def deliveries(folder: Path, sink: Numbered) -> tuple[Deliveries, HandOver]:
    found: list[Deliveries] = []
    checkpoint = Checkpoint(Store(str(folder)))
    checkpoint.open({})
    staged = HandOver(checkpoint.files, "results", ROWS.schema, lambda batch, files: found[0].give(RESULTS, files))
    found.append(Deliveries("0123456789ab", {RESULTS: (staged, sink)}))
    return found[0], staged


def commit(batch: int, files: list[str], history: str = "e1", written: tuple[Written, ...] | None = ()) -> Commit:
    owed = (Staged(RESULTS, tuple(files)),) if files else ()
    return Commit(batch, None, Reached(), history=history, owed=owed, written=written)


@pytest.mark.parametrize("batch", [0, 7])
def test_a_run_that_dies_while_it_deletes_delivered_files(tmp_path: Path, batch: int) -> None:
    job, staged = deliveries(tmp_path, Numbered(BatchMark(batch, 0xE1)))
    files = [*staged.stage(f"{batch:08}-a", [ROWS]), *staged.stage(f"{batch:08}-b", [ROWS])]
    Store(str(tmp_path)).delete(files[0])
    job.deliver(commit(batch, files))
    assert not staged.has(files[1])


def test_a_file_that_is_missing_before_it_was_delivered(tmp_path: Path) -> None:
    sink = Numbered(None)
    job, staged = deliveries(tmp_path, sink)
    files = [*staged.stage("00000000-a", [ROWS]), *staged.stage("00000000-b", [ROWS])]
    Store(str(tmp_path)).delete(files[0])
    with pytest.raises(JobError, match=r"^the checkpoint is damaged: results/00000000-a\.parquet is missing, and"):
        job.deliver(commit(0, files))
    assert not sink.taken and staged.has(files[1])


def test_a_staged_file_that_was_copied_over_another(tmp_path: Path) -> None:
    sink = Numbered(None)
    job, staged = deliveries(tmp_path, sink)
    one, other = [*staged.stage("00000000-a", [ROWS]), *staged.stage("00000000-b", [ROWS])]
    shutil.copy(tmp_path / one, tmp_path / other)
    with pytest.raises(JobError, match=r"00000000-b\.parquet is a copy of results/00000000-a\.parquet$"):
        job.deliver(commit(0, [other]))
    assert not sink.taken and staged.has(one)


BEFORE = (Written(RESULTS, 3, "77"),)


@pytest.mark.parametrize(
    ("has", "now", "fits"),
    [
        (None, commit(5, ["f"], written=BEFORE), True),  # another sink than before
        (BatchMark(2, 0xAA), commit(5, ["f"], written=BEFORE), True),  # this sink, another one, and this one
        (BatchMark(3, 0x77), commit(5, ["f"], written=BEFORE), True),  # the rows of batch 5 are not there yet
        (BatchMark(5, 0xE1), commit(5, ["f"], written=BEFORE), True),
        (BatchMark(3, 0x77), commit(5, [], written=BEFORE), True),
        (BatchMark(3), commit(5, [], written=BEFORE), True),  # by an earlier version
        (BatchMark(4, 0xAA), commit(5, ["f"], written=None), True),  # the checkpoint is of an earlier version
        (BatchMark(3, 0x78), commit(5, ["f"], written=BEFORE), False),
        (BatchMark(4, 0xAA), commit(5, ["f"], written=BEFORE), False),
        (BatchMark(5, 0xE2), commit(5, ["f"], written=BEFORE), False),
        (BatchMark(5, 0xE2), commit(5, ["f"], written=None), False),
        (BatchMark(5, 0xE1), commit(5, [], written=BEFORE), False),
        (BatchMark(0, 0xE1), commit(5, []), False),
    ],
)
def test_a_sink_that_another_run_has_written_to(has: BatchMark | None, now: Commit, fits: bool, tmp_path: Path) -> None:
    job, _ = deliveries(tmp_path, Numbered(has))
    if fits:
        job.check(now)
    else:
        with pytest.raises(SettingError, match=r"^the table has batch \d of another run of this job, which began with"):
            job.check(now)
