"""The chunks of one stream or table, and whose fault it is when there are none.

Python iterables and servers are read in a thread of their own (they may wait for the world); files and generated rows
are not.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

from eddyline.errors import EddylineError, JobError, said
from eddyline.runtime.job import Input
from eddyline.runtime.reader_thread import ReaderThread
from eddyline.runtime.sources.source import Chunk


class Feed:
    """Gives chunk after chunk, then None."""

    def __init__(self, input_: Input) -> None:
        self._input = input_
        self._chunks: Iterator[Chunk] = input_.source.read(input_.wanted)
        self._thread: ReaderThread | None = None
        self._skip_rows = self._skip_dead = 0

    def start(self, changed: threading.Condition) -> None:
        """Begins to read, if that needs a thread."""
        if getattr(self._input.source, "may_block", False):
            self._chunks = self._thread = ReaderThread(self._chunks, self._input.name, changed)

    def close(self) -> None:
        """No more is wanted."""
        if self._thread is not None:
            self._thread.close()

    def ready(self) -> bool:
        """Whether `next` answers without waiting for the world."""
        return self._thread is None or self._thread.ready()

    def skip(self, rows: int, dead: int) -> None:
        """The first so many readable and dead rows were read before."""
        self._skip_rows, self._skip_dead = rows, dead

    def next(self) -> Chunk | None:
        """The next chunk; JobError if the source raises."""
        chunk = self._next()
        while chunk is not None and (self._skip_rows or self._skip_dead):
            rows, dead = chunk.rows, chunk.dead
            few, few_dead = (
                min(self._skip_rows, rows.num_rows),
                0 if dead is None else min(self._skip_dead, dead.num_rows),
            )
            self._skip_rows, self._skip_dead = self._skip_rows - few, self._skip_dead - few_dead
            dead = None if dead is None or few_dead == dead.num_rows else dead.slice(few_dead)
            if few < rows.num_rows or dead is not None:
                return Chunk(rows.slice(few), dead)
            chunk = self._next()
        if self._skip_rows or self._skip_dead:
            raise JobError(f"{self._input.name} has fewer rows than the job read of it before: those must stay")
        return chunk

    def more(self) -> bool:
        """Whether there is a row that was not read before; it is gone then. Of a source that was cleared nothing is."""
        if (first := self._next()) is None:
            self.skip(0, 0)
            return False
        self._chunks = itertools.chain([first], self._chunks)
        while (chunk := self.next()) is not None:
            if chunk.rows.num_rows or chunk.dead is not None:
                return True
        return False

    def _next(self) -> Chunk | None:
        try:
            return next(self._chunks, None)
        except EddylineError:
            raise
        except (Exception, SystemExit) as error:
            what = "table" if self._input.time is None else "stream"
            raise JobError(f"{what} {self._input.name} raised {said(error)}") from error
