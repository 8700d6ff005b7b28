"""An iterator read in a thread of its own, so that one that waits for its rows holds nobody else up.

Chunks come out in the order they went in, and an error after the chunks before it: what is read does not depend on the
thread. It reads ahead by a bounded number of rows and chunks. It is a daemon: one that waits for ever ends with the
interpreter.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from eddyline.runtime.sources.source import Chunk

_ROWS_AHEAD = 65536
_CHUNKS_AHEAD = 1024


class ReaderThread:
    """Reads from the moment it is made; `changed` is notified of what comes, and may be shared by many."""

    def __init__(self, chunks: Iterator[Chunk], name: str, changed: threading.Condition) -> None:
        self._chunks, self._changed = chunks, changed
        self._queue: deque[Chunk] = deque()
        self._rows = 0
        self._ended = self._closed = False
        self._error: BaseException | None = None
        threading.Thread(target=self._work, name=f"eddyline reads {name}", daemon=True).start()

    def ready(self) -> bool:
        """Whether `next` answers at once: with a chunk, the end or an error."""
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
        """No more is wanted: the thread ends when the iterator next gives something."""
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
