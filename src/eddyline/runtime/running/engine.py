"""What the reading loop (runner.py) asks of an engine.

There are two: in_memory_engine.py, whose state goes with the process, and durable_engine.py, which goes from commit to
commit of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from eddyline.errors import JobError
from eddyline.runtime.reporting.reporter import ObservedEngine
from eddyline.runtime.running.reading import StreamReader
from eddyline.settings import size_text


@dataclass(frozen=True)
class Read:
    """Rows that a source gave. Rows that it could not read are text, and the last column says why."""

    name: str
    """The name of the stream or table."""
    rows: pa.RecordBatch
    readable: bool = True


class Engine(ObservedEngine, Protocol):
    """Takes the rows of one run, and gives the results to the job's sinks."""

    def open(self, readers: Sequence[StreamReader]) -> bool:
        """Makes sinks ready, and has readers begin where an earlier run was. False: the job is finished, and nothing is
        to be read."""

    def load(self, tables: Iterable[Read]) -> None:
        """Takes all rows of all tables, before the first batch; an engine that goes on has them already."""

    def batch(self, rows: Sequence[Read], ended: Collection[str], unread: Collection[str]) -> None:
        """Processes a batch. `ended` are the streams that this is the last batch of, `unread` those that may have rows
        that it leaves for later."""

    def check_memory(self) -> None:
        """Raises JobError if the state takes more than the setting `memory`."""

    def end(self) -> None:
        """All streams have ended: gives the results that wait for a watermark."""

    def close(self) -> None:
        """The run is over: sinks are closed."""

    def abandon(self) -> None:
        """The run failed: sinks are let go of."""


def check_memory(limit: int | None, used: int, rows: int, of_slot: bool = False) -> None:
    """Raises JobError if more bytes are used than the limit, after this many rows; `of_slot`: by the largest slot."""
    if limit is not None and used > limit:
        whose, remedy = (" of a slot", ", more slots") if of_slot else ("", "")
        raise JobError(
            f"the state{whose} takes {size_text(used)}, more than memory={size_text(limit)}, after {rows} rows;"
            f" a larger memory{remedy} or smaller windows would do (spilling is not built yet)"
        )
