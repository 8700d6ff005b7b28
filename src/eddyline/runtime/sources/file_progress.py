"""Batches of a stream of files that many tasks read: which pieces come next, and which are between two offsets.

An offset is a place in the register of files, and the number of pieces of the file at that place that were read. Files
are added to the register, durably, before an offset names them; so the pieces between two offsets are always the same,
whatever files appear meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.runtime.sources.register import Register
from eddyline.runtime.sources.source import Files, Found, Piece
from eddyline.state.log.labelled import LabelledFiles

FileOffset = Sequence[int]
"""A place in the register of files, and how many pieces of the file there were read."""
BEGINNING: FileOffset = (0, 0)


class FileProgress:
    """Plans the reading of one stream, whose column of event times is `time`."""

    def __init__(self, source: Files, checkpoint: LabelledFiles, stream: str, time: str | None) -> None:
        self._source, self._time = source, time
        self._register = Register(source.at, checkpoint, stream)
        self._found: list[Found] = []
        self._pieces: dict[Found, list[Piece]] = {}

    def look(self) -> None:
        """Look for files; JobError if a file that was read has changed."""
        self._found = self._source.found()
        self._register.rename(self._found)

    def unread(self, start: FileOffset) -> list[Piece]:
        """The pieces after an offset: the next batches read them."""
        place, group = start
        self._register.keep(place + 1 if group else place)
        pieces = self._of(self._register[place])[group:] if group else []
        new = self._register.unread(self._found)
        now = {*new, self._register[place]} if group else set(new)
        self._pieces = {file: known for file, known in self._pieces.items() if file in now}
        return pieces + [piece for file in new for piece in self._of(file)]

    def after(self, start: FileOffset, pieces: Sequence[Piece]) -> FileOffset:
        """The offset after these pieces, which are the first unread ones."""
        place, group = start
        for piece in pieces:
            if piece.group == 0:
                self._register.add([piece.file])
            place, group = len(self._register) - 1, piece.group + 1
            if group == len(self._of(piece.file)):
                place, group = place + 1, 0
        self._register.save()
        return [place, group]

    def see_anew(self, start: FileOffset, end: FileOffset) -> None:
        """Before a batch that was planned and never done is read again, accept changes of the files that are whole in
        the batch: none of their rows was used."""
        for place in range(start[0] + bool(start[1]), end[0]):
            self._register.see_anew(place)
        self._register.save()

    def between(self, start: FileOffset, end: FileOffset) -> list[Piece]:
        """The pieces from one offset to another."""
        (first, skipped), (last, some) = start, end
        pieces = []
        for place in range(first, last + 1 if some else last):
            of_file = self._of(self._register[place])
            pieces += of_file[skipped if place == first else 0 : some if place == last else len(of_file)]
        return pieces

    def _of(self, file: Found) -> list[Piece]:
        if file not in self._pieces:
            self._pieces[file] = self._source.pieces(file, self._time)
        return self._pieces[file]
