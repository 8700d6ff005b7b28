"""Reads an iterator in a thread of its own, so that no other stream has to wait while it waits for rows.

Chunks come out in the order in which they went in, and an error comes after the chunks before it: the rows that are
read do not depend on the thread. The thread reads ahead by a bounded number of rows and chunks. It is a daemon: a
thread that waits for ever ends with the interpreter.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from eddyline.runtime.sources.source import Chunk

_ROWS_AHEAD = 65536
_CHUNKS_AHEAD = 1024


class ReaderThread:
    """Starts to read when it is made. It notifies `changed`, which threads may share, of each chunk and of the end."""

    def __init__(self, chunks: Iterator[Chunk], name: str, changed: threading.Condition) -> None:
        self._chunks, self._changed = chunks, changed
        self._queue: deque[Chunk] = deque()
        self._rows = 0
        self._ended = self._closed = False
        self._error: BaseException | None = None
        threading.Thread(target=self._work, name=f"eddyline reads {name}", daemon=True).start()

    @property
    def rows(self) -> int:
        """The rows that were read ahead."""
        return self._rows

    def ready(self) -> bool:
        """Whether `next` returns at once: with a chunk, the end or an error."""
        return bool(self._queue) or self._ended

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        with self._changed:
            self._changed.wait_for(self.ready)
            if self._queue:
                chunk = self._queue.popleft()
                self._rows -= chunk.rows.num_rows
                if self._below(2):
                    self._changed.notify_all()
                return chunk
        raise StopIteration if self._error is None else self._error

    def close(self) -> None:
        """Ends the thread when the iterator returns its next chunk: no more chunks are wanted."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _below(self, share: int = 1) -> bool:
        return self._rows < _ROWS_AHEAD // share and len(self._queue) < _CHUNKS_AHEAD // share

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            for chunk in self._chunks:
                with self._changed:
                    self._queue.append(chunk)
                    self._rows += chunk.rows.num_rows
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closed or self._below())
                    if self._closed:
                        break
        except BaseException as raised:
            error = raised
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()
