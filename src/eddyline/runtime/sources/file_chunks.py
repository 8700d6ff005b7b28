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
COUNT_EVERY, COUNT_SHARE = 1.0, 100
"""The same for looks that only count: how many rows wait is asked after every batch."""
LINE = 64
"""The bytes of a row before the first file is read."""


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
        self._clock, self._next_look, self._next_count = clock, 0.0, 0.0
        self._rows = self._bytes = self._of_file = 0
        """The rows and bytes of the files that are read whole, and the rows of the current file so far."""
        self.place = self.done = 0
        self._unread: deque[Found] | None = None
        self._left = 0
        """The bytes of these files."""
        self._chunks: Iterator[Chunk] | None = None
        self._ahead: Chunk | None = None
        self._ahead_place = 0
        self._ended = False

    def start_at(self, place: int, register: Register) -> None:
        """Start at this place of the register: the files before it were read."""
        self.done = self.place = place
        self.register = register
        if place < len(register):
            register.rename(self.source.found())  # the file that is read in part

    def ready(self) -> bool:
        """Whether `next` returns at once, with a chunk or the end."""
        if self._ahead is None and not self._ended:
            self._pull()
        return self._ahead is not None or self._ended

    def backlog(self) -> int:
        """About how many rows the files have that were found and are not begun. Files are taken to have as many rows
        for each byte as those before them."""
        if self.follow and self._unread and self._clock() >= self._next_count:
            self._look()
        return self._left * self._rows // self._bytes if self._bytes else self._left // LINE

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
                self._rows, self._bytes = self._rows + self._of_file, self._bytes + self.register[self.done].size
                self._chunks, self._of_file = None, 0
                self.done += 1
            else:
                self._of_file += self._ahead.rows.num_rows

    def _next_file(self) -> Found | None:
        if self.done < len(self.register):
            return self.register[self.done]
        if not self._unread and (self._unread is None or self.follow):
            if self._unread is not None and self._clock() < self._next_look:
                return None
            self._look()
        if not self._unread:
            return None
        file = self._unread.popleft()
        self._left -= file.size
        self.register.add([file])
        return file

    def _look(self) -> None:
        """Look for unread files."""
        begin = self._clock()
        self._unread = deque(self.register.unread(self.source.found()))
        self._left = sum(file.size for file in self._unread)
        end = self._clock()
        self._next_look = end + max(LOOK_EVERY, LOOK_SHARE * (end - begin))
        self._next_count = end + max(COUNT_EVERY, COUNT_SHARE * (end - begin))
