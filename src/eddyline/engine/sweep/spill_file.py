"""Parked tuples: rows of a sweep that wait on disk for its next stage, in the order of partition groups.

They are in a file without a name, which ends with the process. Rows are collected up to a size, put into the order of
their groups, and written; so each piece of the file has a range of rows for each group, which is read without the rest.
Where these ranges end is in the file too: with many groups it takes nearly as much room as the rows.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.errors import JobError
from eddyline.os_errors import is_full, why
from eddyline.state.log.by_group import GroupedRows, together

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _ParkedPiece:
    begin: int
    end: int
    groups: int
    """How many groups it has. After its rows are these groups, in order, and by group the number of rows of this one
    and of those before it."""


class Parked:
    """Rows on disk by group."""

    def __init__(self, folder: str | None, most: int) -> None:
        """`most` is about the most bytes that are collected before they are written. The file is in the `folder` or,
        where there is no such folder, as on another host, in the temporary one."""
        here = folder is not None and os.path.isdir(folder)
        self._folder, self._most = folder if here else None, most
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self._some: list[GroupedRows] = []
        self._bytes = 0
        self._pieces: list[_ParkedPiece] = []
        self.written = 0
        """Bytes on disk."""

    def add(self, batch: pa.RecordBatch, groups: Ints) -> None:
        """Add rows and the group of each."""
        self._some.append(GroupedRows(batch, groups))
        self._bytes += batch.nbytes
        if self._bytes >= self._most:
            self._write()

    def _write(self) -> None:
        rows = together(self._some).ordered()
        self._some, self._bytes = [], 0
        known, counts = np.unique(rows.groups, return_counts=True)
        with self._errors():
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder, prefix="eddyline-")  # noqa: SIM115
            with pa.ipc.new_stream(pa.PythonFile(self._file, "w"), rows.batch.schema) as stream:
                stream.write_batch(rows.batch)
            end = self._file.tell()
            self._file.write(np.concatenate([known, np.cumsum(counts)]).tobytes())
            begin, self.written = self.written, self._file.tell()
        self._pieces.append(_ParkedPiece(begin, end, known.size))

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """JobError with the folder if there is no room on disk, or the disk fails."""
        try:
            yield
        except OSError as error:
            folder = self._folder or tempfile.gettempdir()
            if is_full(error):
                raise JobError(f"{folder} has no room for a sweep: set spill_dir to a folder with more room") from error
            raise JobError(f"cannot keep the rows of a sweep in {folder}: {why(error)}") from error

    def finish(self) -> None:
        """Write what is left: no more rows are added."""
        if self._some:
            self._write()
        if self._file is not None:
            with self._errors():
                self._file.flush()
                self._map = mmap.mmap(self._file.fileno(), self.written, access=mmap.ACCESS_READ)

    def rows(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The rows of groups first..last-1."""
        whole = pa.py_buffer(b"" if self._map is None else self._map)
        for piece in self._pieces:
            known, ends = np.frombuffer(whole, np.int64, 2 * piece.groups, piece.end).reshape(2, -1)
            begin, end = (int(ends[at - 1]) if at else 0 for at in known.searchsorted([first, last]).tolist())
            if begin < end:
                (batch,) = pa.ipc.open_stream(whole.slice(piece.begin, piece.end - piece.begin))
                yield batch.slice(begin, end - begin)

    def close(self) -> None:
        """Give back the room on disk."""
        self._map, self._pieces = None, []
        if self._file is not None:
            with contextlib.suppress(OSError):  # what is not written yet is not needed
                self._file.close()
