"""Results that wait in memory until the program asks for them.

A job that is ahead of its reader waits, once as many bytes wait here as a reader should need: so reading them batch by
batch takes bounded memory. Where the program waits for all of them, or has stopped the job, the job does not wait:
nobody would read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

MOST_BYTES = 64 << 20
"""How much may wait before the job does."""


class KeptSink:
    """Record batches in the order of their coming; each is read once, by `next`. `taken` says whether one was."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._waiting: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._wanted_whole = 0
        self._released = self._ended = self.taken = False
        self._changed = threading.Condition()

    # What the job does

    def check(self) -> None:
        """Nothing can be wrong."""

    def open(self) -> None:
        """Nothing to make."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Keeps rows; then waits while there are too many, unless somebody waits for the job."""
        with self._changed:
            self._waiting.append(batch)
            self._bytes += batch.nbytes
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._bytes <= self._most or self._wanted_whole > 0 or self._released)

    def close(self) -> None:
        """`end` tells the reader."""

    def abandon(self) -> None:
        """The batches that are here are right."""

    # What the program does

    def release(self) -> None:
        """The job is held up no longer: it is to stop."""
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def end(self) -> None:
        """The job is over: no more batches come."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Meanwhile somebody waits for the job: it is not held up, and all of its results are kept."""
        with self._changed:
            self._wanted_whole += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._wanted_whole -= 1

    def next(self) -> pa.RecordBatch | None:
        """The next batch, taken out; waits for it. None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if not self._waiting:
                return None
            batch, self.taken = self._waiting.popleft(), True
            self._bytes -= batch.nbytes
            self._changed.notify_all()
            return batch

    def unread(self) -> list[pa.RecordBatch]:
        """All batches that wait; they stay."""
        with self._changed:
            return list(self._waiting)
