"""What a sink is.

Invariant: between `open` and `close` or `abandon`, a sink has every batch it was given once; a reader of files never
sees one that is not complete, since a file gets its name when it is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa


class Sink(Protocol):
    """Takes record batches of one schema."""

    def check(self) -> None:
        """Refuses (SettingError) what cannot work, before any row is read; changes nothing."""

    def open(self) -> None:
        """Makes ready for rows."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows."""

    def close(self) -> None:
        """All rows are here."""

    def abandon(self) -> None:
        """The job failed, perhaps after `close`: leaves files that are visible as they are, and nothing else."""


@runtime_checkable
class TakesFiles(Sink, Protocol):
    """A sink that takes the staged files of a batch instead of their rows."""

    def take_files(self, batch: int, files: Sequence[str]) -> None:
        """The results of a batch, which may come again after a crash."""
