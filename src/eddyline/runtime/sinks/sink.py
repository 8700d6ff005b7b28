"""The interface of sinks.

Invariant: between `open` and `close` or `abandon`, a sink has every batch that it was given once. A reader never sees
an incomplete file, because a file gets its name when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa


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


@runtime_checkable
class TakesBatches(Sink, Protocol):
    """A sink that keeps the number of a batch with its rows, and recognises a batch that comes again by it."""

    @property
    def name(self) -> str:
        """What it writes to, for messages."""

    def begin(self, owner: BatchOwner, last: int | None) -> None:
        """A run begins of a job whose newest commit is of batch `last`; None if there is no commit. No other run of the
        job may write from now on."""

    def newest_batch(self, owner: BatchOwner) -> int | None:
        """The newest batch of this owner that the sink has."""

    def take_batch(self, owner: BatchOwner | None, batch: int, rows: ReadRows) -> None:
        """Add the rows of a batch and its number in one step, unless the sink has the batch. Without an owner the
        batch comes once, and its number is not kept."""


@runtime_checkable
class TakesFiles(Sink, Protocol):
    """A sink that takes the staged files of a batch instead of their rows."""

    def take_files(self, batch: int, files: Sequence[str]) -> None:
        """The results of a batch, which may come again after a crash."""
