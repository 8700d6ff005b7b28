"""A table of another system as a sink: Delta, Iceberg, PostgreSQL.

Each batch of a job with a checkpoint is one step of the table, which also keeps the number of the batch. So a reader
sees a whole batch or nothing of it, and a batch that comes again is left out. Without a checkpoint rows are gathered
into steps of a sensible size, and a job that fails leaves the steps before it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import pyarrow as pa

from eddyline.faults import reach
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery, ReadRows, taken
from eddyline.runtime.sources.paths import on_this_machine
from eddyline.state.folder_lock import FolderLock, FolderTaken

GATHERED_ROWS, GATHERED_SECONDS = 65_536, 1.0
"""Without a checkpoint rows are added when there are so many, or when the first of them came so long ago."""


class ResultTable(Protocol):
    """A table to which rows are added in steps: each step is visible whole or not at all."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def check(self) -> None:
        """SettingError if the table cannot take the results; changes nothing."""

    def open(self) -> None:
        """Make the table if it is missing and should be made."""

    def newest(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch of this owner in the table."""

    def add(self, rows: ReadRows, delivery: Delivery | None) -> None:
        """Add rows and the mark of their batch in one step, unless the table has the batch. JobError if that fails, or
        if the table has a batch of another run."""

    def close(self) -> None:
        """End connections."""


def tries(most: int, pause: float) -> Iterator[bool]:
    """The tries of a step that work of others can stop; for each, whether it is the last one. `pause` is the seconds
    before the second try, and doubles before each later one.

    >>> [is_last for is_last in tries(3, 0.0)]
    [False, False, True]
    """
    for number in range(most):
        if number:
            time.sleep(pause * 2 ** (number - 1))
        yield number == most - 1


def keep_others_out(lock: FolderLock, name: str, place: str) -> None:
    """Lock a table that is a local folder, until the run ends; JobError if another run writes to it."""
    folder = on_this_machine(place)
    if os.path.isdir(folder):
        try:
            lock.take(folder)
        except FolderTaken as other:
            raise taken(name, other) from None


@runtime_checkable
class Begins(Protocol):
    """A table that must know when a run begins."""

    def begin(self, owner: BatchOwner, last: int | None) -> None:
        """A run of the owner's job begins, whose newest commit is of batch `last`."""


class TableSink:
    """Writes results to a table."""

    def __init__(self, table: ResultTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._table, self._clock = table, clock
        self._open = False
        self._gathered: list[pa.RecordBatch] = []
        self._rows, self._since = 0, 0.0

    @property
    def name(self) -> str:
        """The table, for messages."""
        return self._table.name

    def check(self) -> None:
        """SettingError if the table cannot take the results."""
        self._table.check()
        self._table.close()

    def open(self) -> None:
        """Check the table and make it if it is missing."""
        if not self._open:
            self._table.check()
            self._table.open()
            self._open = True

    def write(self, batch: pa.RecordBatch) -> None:
        """Gather rows, and add them when there are enough."""
        now = self._clock()
        self._since = self._since if self._gathered else now
        self._gathered.append(batch)
        self._rows += batch.num_rows
        if self._rows >= GATHERED_ROWS or now - self._since >= GATHERED_SECONDS:
            self._flush()

    def close(self) -> None:
        """Add the gathered rows."""
        self._flush()
        self.abandon()

    def abandon(self) -> None:
        """End connections: the rows that were added stay."""
        self._gathered, self._rows = [], 0
        self._table.close()
        self._open = False

    def begin(self, owner: BatchOwner, last: int | None) -> None:
        """A run of a job begins."""
        if isinstance(self._table, Begins):
            self._table.begin(owner, last)

    def newest_batch(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch of this owner in the table."""
        return self._table.newest(owner)

    def take_batch(self, delivery: Delivery | None, rows: ReadRows) -> None:
        """Add the rows of a batch and its mark in one step, unless the table has the batch."""
        reach("table: before a step")
        self._table.add(rows, delivery)
        reach("table: a step is done")

    def _flush(self) -> None:
        gathered, self._gathered, self._rows = self._gathered, [], 0
        if gathered:
            self._table.add(lambda: iter(gathered), None)
