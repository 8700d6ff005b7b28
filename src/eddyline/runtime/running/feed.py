"""The chunks of one stream or table. An error of its source becomes a JobError that names the stream or table.

Python iterables and servers are read in a thread of their own, because they may wait for other programs; files and
generated rows are not.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from eddyline.errors import EddylineError, JobError, said
from eddyline.runtime.running.job import JobInput
from eddyline.runtime.running.reader_thread import ReaderThread
from eddyline.runtime.running.time_order import FrameChunks, is_frame
from eddyline.runtime.sources.file_chunks import FileChunks
from eddyline.runtime.sources.register import Register
from eddyline.runtime.sources.source import Blocking, Chunk, Counted, Files, OffsetSource
from eddyline.state.log.labelled import LabelledFiles

_T = TypeVar("_T")


RowOffset = tuple[int, int, int]
"""How far a stream was read: the place of a file in the register, and how many of its readable and dead rows were read.
A stream that does not consist of files counts as one file."""
Offset = RowOffset | Mapping[str, Any]
"""How far a stream was read; for a source with offsets of its own (`OffsetSource`) one of these."""


class Feed:
    """Returns one chunk after the other, then None. With `follow`, a stream of files does not end."""

    def __init__(self, input_: JobInput, follow: bool = False, most: int | None = None) -> None:
        """A source with offsets of its own gives ranges of about `most` rows; None: as it likes."""
        self._input, source = input_, input_.source
        self._files: FileChunks | None = None
        if isinstance(source, Files):
            self._files = FileChunks(source, input_.wanted, follow)
        self._frame = FrameChunks(input_) if is_frame(input_) else None
        self.has_offsets = isinstance(source, OffsetSource) and input_.time is not None
        self._most = most
        self._chunks: Iterator[Chunk] = self._files or self._frame or source.read(input_.wanted)
        self._since: Mapping[str, Any] = {}
        self._waiting = 0
        """The rows after the last range of such a source."""
        self._thread: ReaderThread | None = None
        self._start = 0
        self._skip_rows = self._skip_dead = 0

    @property
    def may_wait(self) -> bool:
        """Whether the source may wait for other programs: its rows may be new."""
        return isinstance(self._input.source, Blocking) and self._input.source.may_block

    def start(self, changed: threading.Condition) -> None:
        """Starts the thread of a source that needs one."""
        if self.may_wait:
            self._chunks = self._thread = ReaderThread(self._chunks, self._input.name, changed)

    def close(self) -> None:
        """Stops the thread: no more chunks are wanted."""
        if self._thread is not None:
            self._thread.close()

    def ready(self) -> bool:
        """Whether `next` returns without waiting for other programs."""
        if self._files is not None:
            return self._asked(self._files.ready)
        return self._thread is None or self._thread.ready()

    @property
    def backlog(self) -> int:
        """About how many rows `next` has not given yet: those of unread files, or those that the thread has read ahead
        and those behind them, if the source knows."""
        if self._files is not None:
            return self._asked(self._files.backlog)
        return self._waiting if self._thread is None else max(self._thread.rows, self._waiting)

    def count(self) -> int | None:
        """The number of rows of the whole source; None if not known before they are read."""
        source = self._input.source
        if self._files is not None and self._files.follow:
            return None
        return self._asked(source.count) if isinstance(source, Counted) else None

    @property
    def place(self) -> int:
        """The place of the file that the last chunk came from."""
        return 0 if self._files is None else self._files.place

    @property
    def done(self) -> int:
        """The number of files that are completely read."""
        return 0 if self._files is None else self._files.done

    def start_at(self, offset: Offset, checkpoint: LabelledFiles) -> None:
        """Skips the rows before the offset: an earlier run read them. The checkpoint has the list of files."""
        if isinstance(offset, Mapping):
            assert isinstance(self._input.source, OffsetSource)
            self._since = offset
            self._chunks = self._input.source.read_from(offset, self._input.wanted, self._most)
            return
        self._start, self._skip_rows, self._skip_dead = place, _, _ = offset
        if self._files is not None:
            register = Register(self._files.source.at, checkpoint, self._input.name)
            register.keep(place + 1 if self._skip_rows or self._skip_dead else place)
            self._files.start_at(place, register)
        if self._frame is not None:
            self._frame.start_at(self._skip_rows + self._skip_dead, checkpoint)

    def save(self) -> None:
        """Writes the files of all chunks so far, or the length of the frame, to the checkpoint."""
        if self._files is not None:
            self._files.register.save()
        if self._frame is not None:
            self._frame.save()

    def next(self) -> Chunk | None:
        """The next chunk; JobError if the source raises."""
        chunk = self._next()
        while chunk is not None and (self._skip_rows or self._skip_dead):
            if self.place > self._start:  # the file of these rows has become corrupt and is skipped
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
            register = () if self._files is None else self._files.register
            path = register[self._start].path if self._start < len(register) else ""  # empty: rows are generated
            what = f"{path} of {self._input.name}" if path else self._input.name
            raise JobError(f"{what} has fewer rows than the job has already read: those must stay")
        return chunk

    def more(self) -> bool:
        """Whether the stream has a row that no earlier run has read; if so, that row is consumed. False for a source
        that was cleared. The stream ends here, even if files are followed."""
        if isinstance(self._input.source, OffsetSource):
            source, since = self._input.source, self._since
            return bool(self._asked(lambda: source.between(since, source.plan(since, 1))))
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
        chunk = self._asked(lambda: next(self._chunks, None))
        if chunk is not None and chunk.mark is not None:
            self._waiting = chunk.mark.backlog
        return chunk

    def _asked(self, question: Callable[[], _T]) -> _T:
        """The result of a call to the source; JobError if it raises."""
        try:
            return question()
        except EddylineError:
            raise
        except (Exception, SystemExit) as error:
            what = "table" if self._input.time is None else "stream"
            raise JobError(f"{what} {self._input.name} raised {said(error)}") from error
