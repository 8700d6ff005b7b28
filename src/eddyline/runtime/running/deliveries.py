"""Results for sinks that keep the number of a batch with its rows: delivered after the commit, each batch once.

The commit names the staged files of its batch, so the rows of a committed batch never change. They are delivered after
the commit, and again at the next start, because the run may have died in between. The sink leaves out a batch that it
has. Staged files are deleted after they were delivered: if a commit names files and none of them is there, the sink has
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from eddyline.errors import JobError, SettingError
from eddyline.protocol.outlet import Outlet
from eddyline.runtime.sinks.batches import HandOver
from eddyline.runtime.sinks.sink import BatchOwner, TakesBatches


class Deliveries:
    """The outlets of a job whose sinks take batches. `job` is None if no later run can continue the job: then batches
    come once, and their numbers are not kept."""

    def __init__(self, job: str | None, sinks: Mapping[Outlet, tuple[HandOver, TakesBatches]]) -> None:
        self._job, self._sinks = job, sinks

    @property
    def outlets(self) -> Collection[Outlet]:
        """The outlets whose results are delivered after the commit."""
        return self._sinks.keys()

    def check(self, last: int | None) -> None:
        """SettingError if a sink has a batch of this job that is newer than the newest commit, of batch `last`."""
        for outlet, (_, sink) in self._sinks.items():
            owner = self._owner(outlet)
            newest = None if owner is None else sink.newest_batch(owner)
            if newest is not None and newest > (-1 if last is None else last):
                raise SettingError(
                    f"{sink.name} holds batch {newest} of this job, but the newest commit of the checkpoint is of batch"
                    f" {-1 if last is None else last}: the checkpoint is an old copy; begin with a new one"
                )
            if owner is not None:
                sink.begin(owner, last)

    def deliver(self, batch: int, owed: Mapping[Outlet, Sequence[str]]) -> None:
        """Give the files of a committed batch, and delete them."""
        for outlet, (staged, _) in self._sinks.items():
            staged.publish(batch, owed.get(outlet, ()))

    def give(self, outlet: Outlet, batch: int, files: Sequence[str]) -> None:
        """Give the rows of a batch to the sink of an outlet."""
        staged, sink = self._sinks[outlet]
        missing = [file for file in files if not staged.has(file)]
        if len(missing) == len(files):
            return
        owner = self._owner(outlet)
        if missing and (owner is None or (newest := sink.newest_batch(owner)) is None or newest < batch):
            raise JobError(f"the checkpoint is damaged: {missing[0]} is missing, and {sink.name} lacks batch {batch}")

        def rows() -> Iterator[pa.RecordBatch]:
            for file in files:
                yield from staged.staged(file).to_batches()

        if not missing:
            sink.take_batch(owner, batch, rows)

    def _owner(self, outlet: Outlet) -> BatchOwner | None:
        return None if self._job is None else BatchOwner(self._job, outlet.name)
