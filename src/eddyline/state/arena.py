"""The arena: sparse files that hold state. They are mapped piece by piece, and pages that are not needed are punched.

An arena hands out *regions*: wide ranges of a file that cost nothing until they are written. Pages come zeroed.
`Arena()` is one file of anonymous memory, which ends with the process. `Arena(folder)` has a file for each region, and
another process can attach to it later: the owner of a region saves its number, and after a restore finds the old
contents in it. So a region must not be written before it is known whether it is new. A folder has one owner at a time:
a lock is held until `close` or until the process ends. The folder must belong to this user alone. It is always reached
by its descriptor, so that no other user can put another folder or a link in its place.

If a page cannot be allocated when it is first touched, a signal ends the process. So pages of files are reserved before
they are read or written (`reserve`), which raises JobError if the file system is full.

The name of a folder may contain environment variables (`$NAME`). They are looked up where the arena is used, so each
executor of a cluster can have a place of its own.
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
from eddyline.os_errors import limit_of, why
from eddyline.setting_kinds import size_text
from eddyline.state.own_folder import is_at, opened
from eddyline.state.shelf import END, Shelf
from eddyline.state.tuning import DEFAULT, StateTuning

REGION = 1 << 50
"""Bytes between the starts of two regions in one file: the most that one column may write in its whole life."""

REGIONS = 1 << 13
"""The most regions of an arena."""

_POPULATE_READ, _POPULATE_WRITE = 22, 23
"""MADV_POPULATE_READ and MADV_POPULATE_WRITE, which the mmap module does not define yet."""


class _MappedBytes:
    """Keeps a mapping alive as long as an array uses it."""

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
        """Its place, and the identity of the state in it."""
        self._fd = os.memfd_create("eddyline") if folder is None else _locked(folder)
        self.regions = 0
        """The number of regions that were handed out."""
        self.freed: list[int] = []
        """The regions that were freed."""
        self._shelf = None if folder is None else Shelf(self.path(""), identity, folder)

    @property
    def shelf(self) -> Shelf:
        """The shelf that keeps Arrow data beside the regions."""
        if self._shelf is None:
            raise InternalError("an arena without a folder cannot be saved")
        return self._shelf

    def path(self, name: str) -> str:
        """The path of a file of the folder; valid until `close`."""
        return f"/proc/self/fd/{self._fd}/{name}"

    def region(self) -> int:
        """Hand out an empty region; returns its number."""
        if self.freed:
            return self.freed.pop()
        if self.regions == REGIONS:
            raise JobError(f"the query needs more than {REGIONS} columns of state in one slot")
        self.regions += 1
        return self.regions - 1

    def free(self, region: int) -> None:
        """Free a region that is not needed any more. Its mapped pages must have been punched."""
        if self.folder is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(str(region)))
        self.freed.append(region)

    def map(self, region: int, first: int, last: int, shift: int = 0) -> tuple[NDArray[np.uint8], mmap.mmap]:
        """Bytes first..last-1 of a region, as an array that is indexed by the offset *in the region*, plus `shift`.

        `first` is a multiple of the page size. The array pretends to begin `shift` bytes before the region; bytes
        before `first` are not mapped and must not be touched. So rows keep their numbers for ever while the mapping
        moves on.
        """
        if self._fd < 0:
            raise InternalError("the arena is closed")
        try:
            if self.folder is None:
                mapping = _mapped(self._fd, region * REGION, first, last)
            else:
                with self._file(region) as fd:
                    mapping = _mapped(fd, 0, first, last)
        except OSError as error:
            raise self._failed(error) from None
        return seen(mapping, first, last, shift), mapping

    def reserve(self, region: int, first: int, last: int, mapping: mmap.mmap, mapped_from: int) -> None:
        """Allocate the pages of bytes first..last-1 of a region, so that they can be touched through this mapping of
        it; allocated pages keep their contents. JobError if there is no room. Anonymous memory has no limit of its own,
        so nothing is done for it."""
        if self.folder is None or last <= first:
            return
        try:
            reach("arena: pages are reserved")
            if not _populated(mapping, first - mapped_from, last - first):
                with self._file(region) as fd:
                    os.posix_fallocate(fd, first, last - first)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM):
                raise self._failed(error) from None
            raise JobError(self._full(last - first)) from None

    def _failed(self, error: OSError) -> JobError:
        """The error to raise where the system cannot open, enlarge or map a file of regions."""
        if error.errno == errno.EFBIG and not limit_of(errno.EFBIG):
            return JobError("a column has outgrown its file: restart the job from its checkpoint")
        return JobError(f"cannot keep state in {self.folder or 'memory'}: {why(error)}")

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
        """Bytes that the arena takes from the host."""
        if self.folder is None:
            return os.fstat(self._fd).st_blocks * 512
        with os.scandir(self._fd) as files:
            return sum(file.stat(follow_symlinks=False).st_blocks for file in files) * 512

    @property
    def files(self) -> dict[str, int]:
        """The sizes of the files of regions and of the shelf."""
        if self.folder is None:
            return {}
        with os.scandir(self._fd) as files:
            found = {f.name: f for f in files if f.name.removesuffix(END).isdecimal()}
            return {name: file.stat(follow_symlinks=False).st_size for name, file in found.items()}

    def clear(self) -> None:
        """Remove all regions and files. Existing mappings keep their contents."""
        self.regions, self.freed = 0, []
        if self.folder is not None:
            self._shelf = Shelf(self.path(""), self.identity, self.folder)
            _empty(self._fd)

    def close(self) -> None:
        """Close the files. Existing mappings stay readable, but must not be written any more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


def _mapped(fd: int, start: int, first: int, last: int) -> mmap.mmap:
    if last > REGION:
        raise JobError("a column has outgrown its region: restart the job from its checkpoint")
    if start + last > os.fstat(fd).st_size:
        os.ftruncate(fd, start + last)
    return mmap.mmap(fd, last - first, offset=start + first)


def _locked(folder: str) -> int:
    """Open a folder, which is made if it does not exist, and lock it; returns its descriptor."""
    while True:
        try:
            os.mkdir(folder, 0o700)
        except FileNotFoundError:
            jobs = os.path.dirname(folder)
            raise JobError(f"the folder {jobs} with the state of slots was removed: the job has ended") from None
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
        os.close(fd)  # it was removed in between: the lock is on a folder without a name


def placed(folder: str) -> str:
    """Replace the environment variables in the name of a folder; JobError if one is not set."""
    found = os.path.expandvars(folder)
    if "$" in found:
        raise JobError(f"the folder of arenas is {folder}, but its environment variable is not set where a slot runs")
    return found


def _empty(fd: int) -> None:
    with os.scandir(fd) as files:
        for file in files:
            os.unlink(file.name, dir_fd=fd)


def remove(folder: str) -> None:
    """Delete an arena; JobError if it is in use."""
    folder = placed(folder)
    if os.path.isdir(folder):
        fd = _locked(folder)
        try:
            _empty(fd)
            os.rmdir(folder)
        finally:
            os.close(fd)


def seen(mapping: mmap.mmap, first: int, last: int, shift: int) -> NDArray[np.uint8]:
    """A mapping of bytes first..last-1 of a region, as an array (`Arena.map`)."""
    address = np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]
    return np.asarray(_MappedBytes(mapping, address - first - shift, last + shift))


def punch(mapping: mmap.mmap, first: int, last: int) -> None:
    """Release the pages wholly within first..last-1 of a mapping; they read as zeros afterwards."""
    page = mmap.PAGESIZE
    first, last = -(-first // page) * page, last // page * page
    if last > first:
        mapping.madvise(mmap.MADV_REMOVE, first, last - first)


def _populated(mapping: mmap.mmap, first: int, size: int) -> bool:
    """Ask the kernel to allocate the pages of a mapping, all at once: that takes less time than reserving them and
    touching them one by one. Returns False if the kernel is too old (before Linux 5.14) or has no room; the caller then
    reserves the pages, and learns which."""
    try:
        mapping.madvise(_POPULATE_WRITE, first, size)
    except OSError:
        return False
    return True


def touch(mapping: mmap.mmap) -> None:
    """Map all pages of a mapping at once: one by one, as they are written, takes several times as long. A kernel that
    cannot do this maps them one by one."""
    with contextlib.suppress(OSError):
        mapping.madvise(_POPULATE_READ)
