"""A lock on a folder: one run at a time works in it.

The lock is on the folder itself, so it leaves no file, and the system releases it when its process dies: nothing has to
be taken over. It works on local disks; on a file system without such locks, every process gets it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os


class FolderTaken(Exception):
    """Another run has the lock; the text says which, as far as the system knows."""


class FolderLock:
    """A lock that this process may have on one folder."""

    def __init__(self) -> None:
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object has the lock."""
        return self._fd is not None

    def take(self, folder: str) -> None:
        """Lock a folder until `let_go` or the end of the process; FolderTaken if another run has the lock, OSError if
        the folder cannot be opened."""
        if self._fd is not None:
            return
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(fd)
            os.close(fd)
            raise FolderTaken(holder) from None
        except OSError:  # the file system has no such locks
            os.close(fd)
            return
        self._fd = fd

    def let_go(self) -> None:
        """Release the lock."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:
        self.let_go()


def _holder(fd: int) -> str:
    """Who has the lock on an open folder."""
    number = os.fstat(fd).st_ino
    with contextlib.suppress(OSError, ValueError), open("/proc/locks", encoding="ascii") as locks:
        for line in locks:
            words = line.split()
            if "->" not in words and words[1] == "FLOCK" and words[5].endswith(f":{number}") and int(words[4]) > 0:
                return "of this process" if int(words[4]) == os.getpid() else f"process {words[4]}"
    return "on another host or in another container"
