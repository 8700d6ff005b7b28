"""Results for sinks that keep the mark of a batch with its rows: delivered after the commit, each batch once.

The commit names the staged files of its batch, so the rows of a committed batch never change. They are delivered after
the commit, and again at the next start, because the run may have died in between. The sink leaves out a batch that it
has. Staged files are deleted after they were delivered: if a commit names files and none of them is there, the sink has
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from eddyline.errors import JobError, SettingError
from eddyline.protocol.commit import Commit
from eddyline.protocol.outlet import Outlet
from eddyline.runtime.sinks.batches import HandOver
from eddyline.runtime.sinks.sink import NO_BATCH, BatchMark, BatchOwner, Delivery, TakesBatches


class Deliveries:
    """The outlets of a job whose sinks take batches. `job` is None if no later run can continue the job: then batches
    come once, and their numbers are not kept."""

    def __init__(self, job: str | None, sinks: Mapping[Outlet, tuple[HandOver, TakesBatches]]) -> None:
        self._job, self._sinks = job, sinks
        self._commit: Commit | None = None
        """The commit whose rows are delivered."""

    @property
    def outlets(self) -> Collection[Outlet]:
        """The outlets whose results are delivered after the commit."""
        return self._sinks.keys()

    def check(self, last: Commit | None) -> None:
        """SettingError if a sink has a batch that the newest commit, `last`, and those before it did not give it."""
        committed = -1 if last is None else last.batch
        for outlet, (_, sink) in self._sinks.items():
            if self._job is None:
                continue
            owner = BatchOwner(self._job, outlet.name)
            newest = sink.newest_batch(owner)
            if newest is not None and newest.batch > committed:
                raise SettingError(
                    f"{sink.name} holds batch {newest.batch} of this job, but the newest commit of the checkpoint is of"
                    f" batch {committed}: the checkpoint is an old copy; begin with a new one"
                )
            given = None if last is None else self._newest(owner, outlet, last)
            if newest is not None and given is not None and not given.knows(newest):
                raise SettingError(
                    f"{sink.name} has batch {newest.batch} of another run of this job, which began with a copy"
                    " of the checkpoint; begin with a new one"
                )
            sink.begin(owner, None if last is None else committed)

    def deliver(self, commit: Commit) -> None:
        """Give the files that a commit names to their sinks, and delete them."""
        self._commit, owed = commit, {staged.outlet: staged.files for staged in commit.owed}
        for outlet, (staged, _) in self._sinks.items():
            staged.publish(commit.batch, owed.get(outlet, ()))

    def give(self, outlet: Outlet, files: Sequence[str]) -> None:
        """Give these files of the commit to the sink of an outlet."""
        assert self._commit is not None
        staged, sink = self._sinks[outlet]
        missing = [file for file in files if not staged.has(file)]
        if len(missing) == len(files):
            return
        batch = self._commit.batch
        delivery = None
        if self._job is not None:
            delivery = self._newest(BatchOwner(self._job, outlet.name), outlet, self._commit)
        if missing and (delivery is None or delivery.is_missing(sink.name, sink.newest_batch(delivery.owner))):
            raise JobError(f"the checkpoint is damaged: {missing[0]} is missing, and {sink.name} lacks batch {batch}")

        def rows() -> Iterator[pa.RecordBatch]:
            for file in files:
                yield from staged.staged(file).to_batches()

        if not missing:
            sink.take_batch(delivery, rows)

    def _newest(self, owner: BatchOwner, outlet: Outlet, commit: Commit) -> Delivery | None:
        """The newest batch that the sink of an outlet gets: that of this commit, or one before; None if it is not
        known."""
        known = None if commit.written is None else {w.outlet: BatchMark.of(w.batch, w.history) for w in commit.written}
        before = None if known is None else known.get(outlet, NO_BATCH)
        owes = any(staged.outlet == outlet for staged in commit.owed)
        mark = BatchMark.of(commit.batch, commit.history) if owes else before
        return None if mark is None else Delivery(owner, mark, before)
