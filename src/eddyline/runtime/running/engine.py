"""The interface between the reading loop (runner.py) and an engine.

There is one engine, durable_engine.py. Tests put others in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.runtime.reporting.reporter import ObservedEngine
from eddyline.runtime.running.reading import StreamReader
from eddyline.setting_kinds import size_text


@dataclass(frozen=True)
class Read:
    """Rows from a source. Rows that it could not read are text, and their last column holds the reason."""

    name: str
    """The name of the stream or table."""
    rows: pa.RecordBatch
    readable: bool = True


Pulse = Callable[[float], None]
"""Called often during a batch: (the share of its rows that are taken in). If it raises, the batch is abandoned, as if
it had not begun, and the run ends."""

WatchSweep = Callable[[int, int], None]
"""Called while the results of groups on disk are made: (groups that are done, all groups)."""


class Engine(ObservedEngine, Protocol):
    """Takes the rows of one run, and writes the results to the job's sinks."""

    def open(self, readers: Sequence[StreamReader]) -> bool:
        """Opens the sinks, and starts the readers where an earlier run stopped. Returns False if the job is finished
        and nothing is to be read."""

    def load(self, tables: Iterable[Read]) -> None:
        """Takes all rows of all tables, before the first batch. An engine that continues a job has them already."""

    def watch(self, pulse: Pulse) -> None:
        """Call `pulse` during batches."""

    def batch(
        self, rows: Sequence[Read], ended: Collection[str], unread: Collection[str], pressure: Pressure = NO_PRESSURE
    ) -> None:
        """Processes a batch. `ended` are the streams that end with this batch; `unread` are the streams that may have
        rows that this batch does not read; `pressure` is that of the input on each slot."""

    def prefer(self, text: str | None) -> None:
        """From the next batch on, rows that satisfy this condition come first; None: none do. SettingError if it is
        wrong. Any thread may call it."""

    def check_memory(self) -> None:
        """Raises JobError if the state takes more than the setting `memory`."""

    @property
    def waits(self) -> bool:
        """Whether rows wait for the answer of a table."""

    @property
    def most_rows(self) -> int | None:
        """About how many rows a batch may have so that they fit in memory; None: any number."""

    def end(self, watch: WatchSweep) -> None:
        """Emits the results that wait for a watermark, and those of groups on disk: all streams have ended."""

    def stop(self, watch: WatchSweep) -> None:
        """Emits the results of groups on disk, unless a later run can do that: the run was stopped."""

    def close(self) -> None:
        """Closes the sinks at the end of a run."""

    def abandon(self) -> None:
        """Abandons the sinks after a failure."""


def check_memory(limit: int | None, used: int, rows: int, of_slot: bool = False, stays: str = "") -> None:
    """Raises JobError if `used` bytes are more than the limit, after this many rows. `of_slot`: `used` is of the
    largest slot. `stays` says which state stays in memory, and why."""
    if limit is not None and used > limit:
        whose, remedy = (" of a slot", " more slots or") if of_slot else ("", "")
        raise JobError(
            f"the state{whose} takes {size_text(used)}, more than memory={size_text(limit)}, after {rows} rows"
            f"{stays and ', and cannot go to disk: '}{stays};"
            f" set a larger memory, or use{remedy} smaller windows"
        )
