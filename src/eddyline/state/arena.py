"""Where state lives: one sparse file, mapped piece by piece, holes punched where nothing is needed any more.

An arena hands out *regions*, wide stretches of file that cost nothing until they are written. In process the file is
anonymous memory (memfd); given a path it is a file on the host that another process can attach to. Pages come zeroed.
"""

from __future__ import annotations

import mmap
import os

import numpy as np
from numpy.typing import NDArray

from eddyline.errors import JobError

REGION = 1 << 52
"""Bytes between the starts of two regions: what one column may have written in its whole life."""

REGIONS = 1 << 11
"""Regions that fit into the file."""


class _Window:
    """Keeps a mapping alive for as long as an array looks through it."""

    def __init__(self, mapping: mmap.mmap, address: int, count: int) -> None:
        self.mapping = mapping
        self.__array_interface__ = {"data": (address, False), "shape": (count,), "typestr": "|u1", "version": 3}


class Arena:
    """A sparse file of regions."""

    def __init__(self, path: str | None = None) -> None:
        self._fd = os.memfd_create("eddyline") if path is None else os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._regions = 0
        self._size = 0

    def region(self) -> int:
        """A new region, by its number."""
        if self._regions == REGIONS:
            raise JobError(f"the query needs more than {REGIONS} columns of state in one slot")
        self._regions += 1
        return self._regions - 1

    def map(self, region: int, first: int, last: int) -> tuple[NDArray[np.uint8], mmap.mmap]:
        """Bytes first..last-1 of a region, as an array that is indexed by the offset *in the region*.

        `first` is a multiple of the page size. The array pretends to begin at offset 0; what lies before `first` is not
        mapped and must not be touched. That is what lets rows keep their numbers for ever while the mapping moves on.
        """
        if last > REGION:
            raise JobError("a column has outgrown its region: restart the job from its checkpoint")
        start = region * REGION
        if start + last > self._size:
            self._size = start + last
            os.ftruncate(self._fd, self._size)
        mapping = mmap.mmap(self._fd, last - first, offset=start + first)
        address = np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]
        return np.asarray(_Window(mapping, address - first, last)), mapping

    def close(self) -> None:
        """Let go of the file; mappings that are still looked through stay."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


def punch(mapping: mmap.mmap, first: int, last: int) -> None:
    """Give the pages wholly within first..last-1 of a mapping back; they read as zeros afterwards."""
    page = mmap.PAGESIZE
    first, last = -(-first // page) * page, last // page * page
    if last > first:
        mapping.madvise(mmap.MADV_REMOVE, first, last - first)
