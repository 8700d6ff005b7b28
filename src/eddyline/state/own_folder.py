"""Folders that end with their owner: the arenas of a job, the temporary checkpoint of a job without one, the sockets of
Spark's Python processes.

The owner makes the folder for itself alone (mode 0700), under a name that cannot be guessed, and holds a lock on it.
The lock is shared, because the arenas on a host may belong to several processes. It ends with the process, however that
ends. So a folder without a lock has no owner, and the next start of any job of the same user removes it (`sweep`).
Locks work across containers, too, where a process number would not.

Invariant: a folder that is held is never swept. Between making a folder and locking it, a sweep may remove it. The
maker notices, because the name then refers to no folder or to another one, and makes it again. A folder is renamed
before its files are deleted: a process that knows the old name finds nothing there, and cannot add to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import time

from eddyline.errors import JobError

ARENAS, CHECKPOINT, JVM = "arenas", "checkpoint", "jvm"
"""The kinds of folders."""

_RANDOM, _FEW = 16, 4
"""Random bytes in a name, and in that of a folder with sockets: the path of a socket has at most 106 bytes."""

_PATIENCE = 5.0
"""Seconds for which a folder is emptied again and again. A process that still works in it may add files meanwhile, but
only until its own subfolder is gone. Mostly that takes one attempt; where files come as fast as they are deleted, as in
memory, it may take a hundred."""


def own_name(parent: str, kind: str) -> str:
    """A name for a new folder."""
    return f"{parent}/eddyline-{os.geteuid()}-{kind}-{secrets.token_hex(_FEW if kind == JVM else _RANDOM)}"


def host_memory() -> str:
    """The folder whose files are in memory; if there is none, the temporary folder."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


class OwnFolder:
    """One folder, which this process may hold."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1

    def hold(self) -> None:
        """Make the folder if it does not exist, and hold it until `remove` or the end of this process."""
        while self._fd < 0 or not is_at(self._fd, self.path):
            self.let_go()
            parent = os.path.dirname(self.path)
            os.makedirs(parent, 0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.path, 0o700)
                sweep(parent, but=self.path)
            with contextlib.suppress(FileNotFoundError):  # another process swept it in between
                self._fd = opened(self.path)
                with contextlib.suppress(OSError):  # a file system without locks, where no process can sweep it either
                    fcntl.flock(self._fd, fcntl.LOCK_SH)

    def let_go(self) -> None:
        """Unlock the folder, so that others may remove it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Delete the folder, if it is held here; a process that still works in it fails."""
        if self._fd >= 0:
            delete(self.path)
            self.let_go()

    def __del__(self) -> None:
        self.let_go()


def is_own(path: str) -> bool:
    """Whether a folder has a name that `own_name` gives to folders of this user.

    >>> is_own(own_name("/tmp", CHECKPOINT)), is_own("/tmp/checkpoint")
    (True, False)
    """
    random = rf"([0-9a-f]{{{2 * _FEW}}}|[0-9a-f]{{{2 * _RANDOM}}})"
    ours = rf"eddyline-{os.geteuid()}-({ARENAS}|{CHECKPOINT}|{JVM})-{random}"
    return re.fullmatch(ours, os.path.basename(path)) is not None


def sweep(parent: str, but: str = "") -> None:
    """Delete the folders of this user that no process holds."""
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            path = f"{parent}/{name}"
            if is_own(name) and path != but:
                with contextlib.suppress(OSError, JobError):
                    _delete_if_free(path)


def _delete_if_free(path: str) -> None:
    fd = opened(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_at(fd, path):
            delete(path)
    finally:
        os.close(fd)


def delete(path: str) -> None:
    """Delete a folder with everything in it, if it exists."""
    gone = f"{path.rpartition('-')[0]}-{secrets.token_hex(_RANDOM)}"
    with contextlib.suppress(OSError):
        os.rename(path, gone)
        end = time.monotonic() + _PATIENCE
        while os.path.lexists(gone) and time.monotonic() < end:
            shutil.rmtree(gone, ignore_errors=True)


def opened(path: str) -> int:
    """Open a folder that belongs to this user alone; JobError for any other."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except NotADirectoryError:
        raise JobError(f"{path} is a link or a file, but must be a folder: remove it") from None
    about = os.fstat(fd)
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
        os.close(fd)
        raise JobError(f"the folder {path} must belong to this user alone: remove it, or set another arena_dir")
    return fd


def is_at(fd: int, path: str) -> bool:
    """Whether a path still refers to the folder or file of this descriptor."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
