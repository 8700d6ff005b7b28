"""What a sink is.

Invariant: between `open` and `close` or `abandon`, a sink has every batch it was given once; a reader of files never
sees one that is not complete, since a file gets its name when it is complete.
"""

from __future__ import annotations

from typing import Protocol

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
