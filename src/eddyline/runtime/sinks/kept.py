"""Results that wait in memory until the program asks for them.

A job pauses while MOST_BYTES of its results are unread, so reading batch by batch takes bounded memory. If the program
waits for all results, or has stopped the job, the job does not pause, because nobody would read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

MOST_BYTES = 64 << 20
"""The job pauses while this many bytes are unread."""


class KeptSink:
    """Record batches in the order in which they came; each is read once, by `next`. `taken` says whether any was
    read."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._waiting: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._wanted_whole = 0
        self._released = self._ended = self.taken = False
        self._changed = threading.Condition()

    # Called by the job

    def check(self) -> None:
        """Nothing can be wrong."""

    def open(self) -> None:
        """Nothing to make."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Keep rows; then wait while too many are unread, unless the program waits for the job."""
        with self._changed:
            self._waiting.append(batch)
            self._bytes += batch.nbytes
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._bytes <= self._most or self._wanted_whole > 0 or self._released)

    def close(self) -> None:
        """Nothing to complete: `end` informs the reader."""

    def abandon(self) -> None:
        """Nothing to undo: the kept batches are right."""

    # Called by the program

    def release(self) -> None:
        """Let the job continue without pausing, because it is going to stop."""
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def end(self) -> None:
        """The job has ended: no more batches will come."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Inside this context the program waits for the job: the job does not pause, and all results are kept."""
        with self._changed:
            self._wanted_whole += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._wanted_whole -= 1

    def next(self) -> pa.RecordBatch | None:
        """Wait for the next batch and remove it; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if not self._waiting:
                return None
            batch, self.taken = self._waiting.popleft(), True
            self._bytes -= batch.nbytes
            self._changed.notify_all()
            return batch

    def unread(self) -> list[pa.RecordBatch]:
        """All unread batches, without removing them."""
        with self._changed:
            return list(self._waiting)
