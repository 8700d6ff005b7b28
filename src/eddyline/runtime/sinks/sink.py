"""The interface of sinks.

Invariant: between `open` and `close` or `abandon`, a sink has every batch that it was given once. A reader never sees
an incomplete file, because a file gets its name when it is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
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


@runtime_checkable
class TakesFiles(Sink, Protocol):
    """A sink that takes the staged files of a batch instead of their rows."""

    def take_files(self, batch: int, files: Sequence[str]) -> None:
        """The results of a batch, which may come again after a crash."""
