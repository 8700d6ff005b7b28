"""Files as a source: finds them, and reads each exactly as it was when it was found, or not at all.

A format (parquet, csv, json) knows how to read one file. This module has what all formats share: finding files, waiting
for a file whose writer has not finished it, refusing a file that changed between being found and being read, and
handling corrupt files.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import time
from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from eddyline.errors import CorruptFile
from eddyline.runtime.sources.paths import at_present, check_unchanged, files, find, folder_of
from eddyline.runtime.sources.source import Chunk, Found, Piece, Wanted, dead_rows, no_rows

_PATIENCE = 60.0
"""The seconds after which an incomplete file is reported."""

_log = logging.getLogger(__name__)


class FileFormat(Protocol):
    """Reads files of one format and one schema."""

    schema: pa.Schema

    def is_rowless(self, file: Found) -> bool:
        """Whether the file has no rows and need not be read."""

    def is_complete(self, file: Found) -> bool:
        """Whether the file's writer has finished it, as far as the format can tell."""

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The pieces of a file."""

    def count(self, file: Found) -> int:
        """The number of rows of a file; text is read for it. CorruptFile if it cannot be read."""

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file; CorruptFile if it cannot be read."""

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece; CorruptFile if it cannot be read."""


class FileSource:
    """The files of one format at a path. With `follow`, incomplete files are left for later. With `corrupt='dead'` a
    piece that cannot be read becomes one dead row with the name of the file."""

    endless = False

    def __init__(self, path: str, format_: FileFormat, follow: bool = False, corrupt: str = "stop") -> None:
        self._path, self._format, self._follow, self._corrupt = path, format_, follow, corrupt
        self._complete: set[Found] = set()
        self._told: set[str] = set()
        if glob.has_magic(path) and not files(path):
            _log.warning("no file matches %s now", path)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._format.schema

    def found(self) -> list[Found]:
        """The files to read now, in the order of their paths; with `follow`, without incomplete files. Empty files of
        text do not count."""
        seen = (file for file in find(self._path) if not self._format.is_rowless(file))
        return [file for file in seen if not self._follow or self._is_complete(file)]

    def at(self, name: str, size: int, changed: int, number: int = 0) -> Found:
        """The file of this name, with the size, time and number with which it was found before."""
        return Found(str(folder_of(self._path) / name), name, size, changed, number)

    def _is_complete(self, file: Found) -> bool:
        with contextlib.suppress(FileNotFoundError):  # the file was deleted at this moment
            if file in self._complete or (self._format.is_complete(file) and at_present(file) == file):
                self._complete.add(file)
                return True
        if file.path not in self._told and time.time() - file.changed / 1e9 > _PATIENCE:
            self._told.add(file.path)
            _log.warning("%s has no end yet, and is read when its writer has finished it", file.path)
        return False

    def count(self) -> int | None:
        """The number of rows of all files; None if more files may come, or if one cannot be read."""
        try:
            return None if self._follow else sum(self._format.count(file) for file in self.found())
        except CorruptFile:
            return None

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """All rows, file after file."""
        for file in self.found():
            yield from self.read_file(file, wanted)

    def pieces(self, file: Found, time: str | None = None) -> list[Piece]:
        """The pieces of a file; JobError if the file has changed since it was found."""
        check_unchanged(file)
        try:
            return self._format.pieces(file, time)
        except CorruptFile as error:
            if self._corrupt == "stop":
                raise _with_a_way_on(error) from None
            return [Piece(file, 1)]  # reading it raises the error

    def read_file(self, file: Found, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a file; JobError if the file has changed since it was found."""
        if self._corrupt == "dead":
            for piece in self.pieces(file):
                yield from self.read_piece(piece, wanted)
            return
        check_unchanged(file)
        yield from _or_stop(_unchanged(file, self._format.read_file(file, wanted)))
        check_unchanged(file)

    def read_piece(self, piece: Piece, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece; JobError if the file has changed since it was found."""
        check_unchanged(piece.file)
        chunks = _unchanged(piece.file, self._format.read_piece(piece, wanted))
        if self._corrupt == "dead":
            try:
                chunks = iter(list(chunks))  # all rows of the piece, or none
            except CorruptFile as error:
                chunks = iter([self._dead(str(error), wanted)])
        yield from _or_stop(chunks)
        check_unchanged(piece.file)

    def _dead(self, reason: str, wanted: Wanted) -> Chunk:
        nothing = pa.RecordBatch.from_arrays([pa.nulls(1, pa.string())], names=[self.schema.names[0]])
        return Chunk(no_rows(self.schema, wanted), dead_rows(self.schema, nothing, pa.array([reason])))


def _unchanged(file: Found, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks of a file. JobError if the file has changed when a chunk was read, so no row of another text is used,
    and a file that cannot be read because it changed says so."""
    try:
        for chunk in chunks:
            check_unchanged(file)
            yield chunk
    except CorruptFile:
        check_unchanged(file)
        raise


def _or_stop(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks of a file; JobError if it cannot be read."""
    try:
        yield from chunks
    except CorruptFile as error:
        raise _with_a_way_on(error) from None


def _with_a_way_on(error: CorruptFile) -> CorruptFile:
    return CorruptFile(f"{error}; to go on without such files, and count each as a dead row, set corrupt 'dead'")
