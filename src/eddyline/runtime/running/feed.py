"""The chunks of one stream or table, and whose fault it is when there are none.

Python iterables and servers are read in a thread of their own (they may wait for the world); files and generated rows
are not.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from eddyline.errors import EddylineError, JobError, said
from eddyline.runtime.running.job import JobInput
from eddyline.runtime.running.reader_thread import ReaderThread
from eddyline.runtime.sources.file_chunks import FileChunks
from eddyline.runtime.sources.register import Register
from eddyline.runtime.sources.source import Blocking, Chunk, Files
from eddyline.state.log.store import Store

_T = TypeVar("_T")


Offset = tuple[int, int, int]
"""How far a stream was read: the place of a file in the register, and how many readable and dead rows of it were. A
stream that is not of files is one file."""


class Feed:
    """Gives chunk after chunk, then None; with `follow`, a stream of files does not end."""

    def __init__(self, input_: JobInput, follow: bool = False) -> None:
        self._input, source = input_, input_.source
        self._files: FileChunks | None = None
        if isinstance(source, Files):
            self._files = FileChunks(source, input_.wanted, follow)
        self._chunks: Iterator[Chunk] = self._files or source.read(input_.wanted)
        self._thread: ReaderThread | None = None
        self._start = 0
        self._skip_rows = self._skip_dead = 0

    def start(self, changed: threading.Condition) -> None:
        """Begins to read, if that needs a thread."""
        if isinstance(self._input.source, Blocking) and self._input.source.may_block:
            self._chunks = self._thread = ReaderThread(self._chunks, self._input.name, changed)

    def close(self) -> None:
        """No more is wanted."""
        if self._thread is not None:
            self._thread.close()

    def ready(self) -> bool:
        """Whether `next` answers without waiting for the world."""
        if self._files is not None:
            return self._asked(self._files.ready)
        return self._thread is None or self._thread.ready()

    @property
    def place(self) -> int:
        """The place of the file that the last chunk is of."""
        return 0 if self._files is None else self._files.place

    @property
    def done(self) -> int:
        """How many files are read whole."""
        return 0 if self._files is None else self._files.done

    def start_at(self, offset: Offset, store: Store) -> None:
        """What is before the offset was read before. The store is the checkpoint, which knows the files."""
        self._start, self._skip_rows, self._skip_dead = place, _, _ = offset
        if self._files is not None:
            register = Register(self._files.source.at, store, self._input.name)
            register.keep(place + 1 if self._skip_rows or self._skip_dead else place)
            self._files.start_at(place, register)

    def save(self) -> None:
        """The checkpoint knows the files of all chunks so far."""
        if self._files is not None:
            self._files.register.save()

    def next(self) -> Chunk | None:
        """The next chunk; JobError if the source raises."""
        chunk = self._next()
        while chunk is not None and (self._skip_rows or self._skip_dead):
            if self.place > self._start:  # a file that is corrupt now, and skipped, had rows that were used
                self._skip_rows = self._skip_dead = 0
                break
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
        """Whether there is a row that was not read before; it is gone then. Of a source that was cleared nothing is.
        The stream ends here, also if others are followed."""
        if self._files is not None:
            self._files.follow = False
        if (first := self._next()) is None:
            self._skip_rows = self._skip_dead = 0
            return False
        self._chunks = itertools.chain([first], self._chunks)
        while (chunk := self.next()) is not None:
            if chunk.rows.num_rows or chunk.dead is not None:
                return True
        return False

    def _next(self) -> Chunk | None:
        return self._asked(lambda: next(self._chunks, None))

    def _asked(self, question: Callable[[], _T]) -> _T:
        """The answer of the source; JobError if it raises."""
        try:
            return question()
        except EddylineError:
            raise
        except (Exception, SystemExit) as error:
            what = "table" if self._input.time is None else "stream"
            raise JobError(f"{what} {self._input.name} raised {said(error)}") from error
