"""The chunks of a stream of files, file after file, from a given place in its register on.

Files in the register come first; then newly found files, in the order of their paths, each of which is added to the
register. With `follow` there is no end: when all files are read, it looks for new ones.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from eddyline.runtime.sources.register import Register
from eddyline.runtime.sources.source import Chunk, Files, Found, Wanted

LOOK_EVERY, LOOK_SHARE = 0.2, 20
"""The least seconds between two looks for new files, also as a multiple of the time of a look, because looking into a
large folder takes long."""


class FileChunks:
    """Gives chunk after chunk. `place` is the place of the last chunk's file, `done` the number of files that are read
    whole."""

    def __init__(
        self,
        source: Files,
        wanted: Wanted,
        follow: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source, self._wanted, self.follow = source, wanted, follow
        self.register = Register(source.at)
        self._clock, self._next_look = clock, 0.0
        self.place = self.done = 0
        self._unread: deque[Found] | None = None
        self._chunks: Iterator[Chunk] | None = None
        self._ahead: Chunk | None = None
        self._ahead_place = 0
        self._ended = False

    def start_at(self, place: int, register: Register) -> None:
        """Start at this place of the register: the files before it were read."""
        self.done = self.place = place
        self.register = register

    def ready(self) -> bool:
        """Whether `next` returns at once, with a chunk or the end."""
        if self._ahead is None and not self._ended:
            self._pull()
        return self._ahead is not None or self._ended

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while not self.ready():
            time.sleep(LOOK_EVERY)
        if self._ahead is None:
            raise StopIteration
        chunk, self._ahead, self.place = self._ahead, None, self._ahead_place
        return chunk

    def _pull(self) -> None:
        """Gets the next chunk, if there is one now."""
        while self._ahead is None:
            if self._chunks is None:
                file = self._next_file()
                if file is None:
                    self._ended = not self.follow
                    return
                self._chunks = self.source.read_file(file, self._wanted)
            self._ahead, self._ahead_place = next(self._chunks, None), self.done
            if self._ahead is None:
                self._chunks = None
                self.done += 1

    def _next_file(self) -> Found | None:
        if self.done < len(self.register):
            return self.register[self.done]
        if not self._unread and (self._unread is None or self.follow):
            now = self._clock()
            if self._unread is not None and now < self._next_look:
                return None
            self._unread = deque(self.register.unread(self.source.found()))
            after = self._clock()
            self._next_look = after + max(LOOK_EVERY, LOOK_SHARE * (after - now))
        if not self._unread:
            return None
        file = self._unread.popleft()
        self.register.add([file])
        return file
