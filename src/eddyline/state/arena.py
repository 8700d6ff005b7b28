"""Where state lives: sparse files, mapped piece by piece, holes punched where nothing is needed any more.

An arena hands out *regions*, wide stretches of file that cost nothing until they are written. Pages come zeroed.
`Arena()` is one file of anonymous memory, gone with the process. `Arena(folder)` is a file for each region, and another
process can attach to it later: who has a region says which when it is saved, and finds in it what was there. That is
why nobody may write to a region before it is known whether it is new. A folder has one owner at a time: a lock is held
until `close`, or until the process ends. It must be this user's alone, and is always reached by its descriptor: nobody
else can put another folder, or a link, in its place.

A page that cannot be had when it is first touched would end the process by a signal. So pages of files are reserved
before anybody reads or writes them (`reserve`), which fails with a sentence where the file system is full.

The name of a folder may have environment variables (`$NAME`), which are looked up where the arena is used: that is how
each executor of a cluster has a place of its own.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from eddyline.errors import InternalError, JobError
from eddyline.faults import reach
from eddyline.settings import size_text
from eddyline.state.own_folder import is_at, opened
from eddyline.state.shelf import END, Shelf
from eddyline.state.tuning import DEFAULT, StateTuning

REGION = 1 << 50
"""Bytes between the starts of two regions in one file: what one column may have written in its whole life."""

REGIONS = 1 << 13
"""Regions that fit into one file."""

_POPULATE_READ, _POPULATE_WRITE = 22, 23
"""MADV_POPULATE_READ and MADV_POPULATE_WRITE, which Python has no names for yet."""


class _MappedBytes:
    """Keeps a mapping alive for as long as an array looks through it."""

    def __init__(self, mapping: mmap.mmap, address: int, count: int) -> None:
        self.mapping = mapping
        self.__array_interface__ = {"data": (address, False), "shape": (count,), "typestr": "|u1", "version": 3}


class Arena:
    """Regions in anonymous memory, or in the files of a folder."""

    def __init__(self, folder: str | None = None, identity: str = "", tuning: StateTuning = DEFAULT) -> None:
        """`tuning` is for all that is made in it."""
        self._fd, self.tuning = -1, tuning
        folder = None if folder is None else placed(folder)
        self.folder, self.identity = folder, identity
        """Where it is, and whose state it is."""
        self._fd = os.memfd_create("eddyline") if folder is None else _locked(folder)
        self.regions = 0
        """How many were handed out."""
        self.freed: list[int] = []
        """Those that were given back."""
        self._shelf = None if folder is None else Shelf(self.path(""))

    @property
    def shelf(self) -> Shelf:
        """Where Arrow data are kept beside the regions."""
        if self._shelf is None:
            raise InternalError("an arena without a folder cannot be saved")
        return self._shelf

    def path(self, name: str) -> str:
        """Where a file of the folder is; good until `close`."""
        return f"/proc/self/fd/{self._fd}/{name}"

    def region(self) -> int:
        """A region with nothing in it, by its number."""
        if self.freed:
            return self.freed.pop()
        if self.regions == REGIONS:
            raise JobError(f"the query needs more than {REGIONS} columns of state in one slot")
        self.regions += 1
        return self.regions - 1

    def free(self, region: int) -> None:
        """Nobody needs a region any more; what was mapped of it has been punched."""
        if self.folder is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(str(region)))
        self.freed.append(region)

    def map(self, region: int, first: int, last: int, shift: int = 0) -> tuple[NDArray[np.uint8], mmap.mmap]:
        """Bytes first..last-1 of a region, as an array that is indexed by the offset *in the region*, plus `shift`.

        `first` is a multiple of the page size. The array pretends to begin `shift` bytes before the region; what lies
        before `first` is not mapped and must not be touched. That is what lets rows keep their numbers for ever while
        the mapping moves on.
        """
        if self._fd < 0:
            raise InternalError("the arena is closed")
        if self.folder is None:
            mapping = _mapped(self._fd, region * REGION, first, last)
        else:
            with self._file(region) as fd:
                mapping = _mapped(fd, 0, first, last)
        address = np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]
        return np.asarray(_MappedBytes(mapping, address - first - shift, last + shift)), mapping

    def reserve(self, region: int, first: int, last: int, mapping: mmap.mmap, mapped_from: int) -> None:
        """Have the pages of bytes first..last-1 of a region, so that they can be touched through this mapping of it;
        those that are there stay as they are. JobError if there is no room. Anonymous memory has no limit of its own,
        and is left alone."""
        if self.folder is None or last <= first:
            return
        try:
            reach("arena: pages are reserved")
            if not _populated(mapping, first - mapped_from, last - first):
                with self._file(region) as fd:
                    os.posix_fallocate(fd, first, last - first)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM):
                raise
            raise JobError(self._full(last - first)) from None

    def _full(self, more: int) -> str:
        assert self.folder is not None
        jobs, slot = os.path.split(self.folder)
        place, disk = os.path.dirname(jobs), os.statvfs(self.path(""))
        return (
            f"{place} is full ({size_text(disk.f_bavail * disk.f_frsize)} free of"
            f" {size_text(disk.f_blocks * disk.f_frsize)}): the state of slot {slot} takes {size_text(self.bytes)} and"
            f" needs {size_text(more)} more; set arena_dir to a folder with more room, or make windows smaller; more"
            " slots help if they are on several hosts, and arena_limit stops a job before the folder is full"
        )

    @contextlib.contextmanager
    def _file(self, region: int) -> Iterator[int]:
        fd = os.open(self.path(str(region)), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            yield fd
        finally:
            os.close(fd)

    @property
    def bytes(self) -> int:
        """Bytes that it takes from the host."""
        if self.folder is None:
            return os.fstat(self._fd).st_blocks * 512
        with os.scandir(self._fd) as files:
            return sum(file.stat(follow_symlinks=False).st_blocks for file in files) * 512

    @property
    def files(self) -> dict[str, int]:
        """The files of regions and of the shelf, and how long they are."""
        if self.folder is None:
            return {}
        with os.scandir(self._fd) as files:
            found = {f.name: f for f in files if f.name.removesuffix(END).isdecimal()}
            return {name: file.stat(follow_symlinks=False).st_size for name, file in found.items()}

    def clear(self) -> None:
        """Begin anew: no regions, and a folder without files. Whoever still looks through a mapping keeps what it
        sees."""
        self.regions, self.freed = 0, []
        if self.folder is not None:
            self._shelf = Shelf(self.path(""))
            _empty(self._fd)

    def close(self) -> None:
        """Let go of the files; mappings that are still looked through stay, and must not be written any more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


def _mapped(fd: int, start: int, first: int, last: int) -> mmap.mmap:
    if last > REGION:
        raise JobError("a column has outgrown its region: restart the job from its checkpoint")
    try:
        if start + last > os.fstat(fd).st_size:
            os.ftruncate(fd, start + last)
        return mmap.mmap(fd, last - first, offset=start + first)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise JobError("a column has outgrown its file: restart the job from its checkpoint") from None
        raise


def _locked(folder: str) -> int:
    """A descriptor of a folder, which is made if it is not there, with the lock on it."""
    while True:
        try:
            os.mkdir(folder, 0o700)
        except FileNotFoundError:
            jobs = os.path.dirname(folder)
            raise JobError(f"{jobs}, where the state of slots is, was removed: the job has ended") from None
        except FileExistsError:
            pass
        try:
            fd = opened(folder)
        except FileNotFoundError:  # it was removed in between
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise JobError(f"the state in {folder} is in use by another process") from None
        if is_at(fd, folder):
            return fd
        os.close(fd)  # it was removed in between: the lock is worth nothing


def placed(folder: str) -> str:
    """A folder with its environment variables looked up."""
    found = os.path.expandvars(folder)
    if "$" in found:
        raise JobError(f"arenas go to {folder}, but that environment variable is not set where a slot runs")
    return found


def _empty(fd: int) -> None:
    with os.scandir(fd) as files:
        for file in files:
            os.unlink(file.name, dir_fd=fd)


def remove(folder: str) -> None:
    """Delete an arena; one that is in use is not."""
    folder = placed(folder)
    if os.path.isdir(folder):
        fd = _locked(folder)
        try:
            _empty(fd)
            os.rmdir(folder)
        finally:
            os.close(fd)


def punch(mapping: mmap.mmap, first: int, last: int) -> None:
    """Give the pages wholly within first..last-1 of a mapping back; they read as zeros afterwards."""
    page = mmap.PAGESIZE
    first, last = -(-first // page) * page, last // page * page
    if last > first:
        mapping.madvise(mmap.MADV_REMOVE, first, last - first)


def _populated(mapping: mmap.mmap, first: int, size: int) -> bool:
    """Whether the kernel has put pages into a mapping, all at once, which takes less time than reserving them and then
    touching them one by one. It may be too old for that (before Linux 5.14), or there is no room; then reserving says
    which."""
    try:
        mapping.madvise(_POPULATE_WRITE, first, size)
    except OSError:
        return False
    return True


def touch(mapping: mmap.mmap) -> None:
    """Have the pages of a mapping at hand, all at once: one by one, when they are written, takes several times as long.
    A kernel that cannot do that will do it one by one."""
    with contextlib.suppress(OSError):
        mapping.madvise(_POPULATE_READ)
