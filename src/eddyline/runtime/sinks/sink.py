"""The interface of sinks.

Invariant: between `open` and `close` or `abandon`, a sink has every batch that it was given once. A reader never sees
an incomplete file, because a file gets its name when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from eddyline.errors import JobError


def taken(place: object, other: object) -> JobError:
    """The error of a run that may not write to a place, because another run does."""
    return JobError(
        f"another run writes to {place} now ({other}): wait until it has ended, or choose another place; with mode"
        " 'append' several runs may write at the same time"
    )


class Sink(Protocol):
    """Takes record batches of one schema."""

    def check(self) -> None:
        """SettingError if the sink cannot work; called before any row is read, changes nothing."""

    def open(self) -> None:
        """Prepare for rows."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows."""

    def close(self) -> None:
        """Complete the output: all rows have come."""

    def abandon(self) -> None:
        """The job failed, perhaps after `close`: keep the published files, and remove everything else."""


ReadRows = Callable[[], Iterator[pa.RecordBatch]]
"""Reads rows; it can be called again."""


@dataclass(frozen=True)
class BatchOwner:
    """Whose batches a sink counts: an outlet of a job with a checkpoint.

    >>> BatchOwner("3f2a", "late-orders").name
    'eddyline-3f2a-late-orders'
    """

    job: str
    """The id of the checkpoint."""
    outlet: str

    @property
    def name(self) -> str:
        """A name that no other owner has."""
        return f"eddyline-{self.job}-{self.outlet}"


@dataclass(frozen=True)
class BatchMark:
    """What a sink keeps with the rows of a batch: its number, and 60 bits of the history of the job up to it. A run
    that begins with a copy of the checkpoint and reads other rows has another history."""

    batch: int
    history: int = 0
    """0 if an earlier version wrote the batch."""

    @staticmethod
    def of(batch: int, history: str) -> BatchMark:
        """The mark of a batch with this history, as commits have it."""
        return BatchMark(batch, int(history[:15], 16))

    def is_of(self, other: BatchMark) -> bool:
        """Whether both are of the same batch of the same run."""
        return self.batch == other.batch and (self.history == other.history or not (self.history and other.history))


NO_BATCH = BatchMark(-1)
"""The mark of an owner without a batch."""


@dataclass(frozen=True)
class Delivery:
    """A batch on its way to a sink."""

    owner: BatchOwner
    mark: BatchMark
    before: BatchMark | None
    """The newest batch that the sink got before this one, or NO_BATCH; None if that is not known."""

    def knows(self, newest: BatchMark) -> bool:
        """Whether a sink that has `newest` has it from this run or one before. A job may have had another sink for some
        time, so batches before `before` are not compared."""
        if self.before is None or newest.batch < self.before.batch:
            return newest.batch < self.mark.batch or newest.is_of(self.mark)
        return newest.is_of(self.mark) or newest.is_of(self.before)

    def is_missing(self, sink: str, newest: BatchMark | None) -> bool:
        """Whether a sink lacks this batch whose newest batch of the owner is `newest`; `sink` is its name. JobError if
        that batch is of another run.

        >>> delivery = Delivery(BatchOwner("3f2a", "results"), BatchMark(5, 91), BatchMark(3, 77))
        >>> delivery.is_missing("the table", BatchMark(3, 77)), delivery.is_missing("the table", BatchMark(5, 91))
        (True, False)
        """
        if newest is None or newest.batch < 0:
            return True
        if not self.knows(newest):
            raise JobError(f"{sink} has batch {newest.batch} of another run of this job; start it again")
        return not newest.is_of(self.mark)


@runtime_checkable
class TakesBatches(Sink, Protocol):
    """A sink that keeps the mark of a batch with its rows, and recognises a batch that comes again by it."""

    @property
    def name(self) -> str:
        """What it writes to, for messages."""

    def begin(self, owner: BatchOwner, last: int | None) -> None:
        """A run begins of a job whose newest commit is of batch `last`; None if there is no commit. No other run of the
        job may write from now on."""

    def newest_batch(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch of this owner that the sink has."""

    def take_batch(self, delivery: Delivery | None, rows: ReadRows) -> None:
        """Add the rows of a batch and its mark in one step, unless the sink has the batch. Without a delivery the rows
        come once, and no mark is kept. JobError if the sink has a batch of another run."""


@runtime_checkable
class TakesFiles(Sink, Protocol):
    """A sink that takes the staged files of a batch instead of their rows."""

    def take_files(self, batch: int, files: Sequence[str]) -> None:
        """The results of a batch, which may come again after a crash."""
