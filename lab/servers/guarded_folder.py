"""A folder for a server, which does not outlive the process that made it, and neither does the server.

A server works in its folder: its current folder is in there. Beside the process that made the folder runs a guard,
this file as a program. The guard sees its parent change when that process has died, by whatever signal, and then kills
all that works in the folder, and removes it. So there is no moment at which a server runs unguarded, and it does not
matter how often it is killed and started again, or which processes it starts itself.

(A death signal by `prctl` would be less: it is bound to the thread that starts the server, and lost if the server
changes its user.)
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_LOOK = 0.2
"""Seconds between two looks at the parent."""


@contextlib.contextmanager
def guarded_folder(prefix: str) -> Iterator[Path]:
    """A new temporary folder until the end of the `with`. If this process dies before, the folder is removed within a
    second, and every process that works in it is killed."""
    folder = tempfile.mkdtemp(prefix=prefix)
    command = [sys.executable, "-I", "-S", __file__, folder, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True) as guard:
        try:
            yield Path(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            guard.kill()


def _working_in(folder: str) -> Iterator[int]:
    """The processes whose current folder is this one, or in it."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                place = os.readlink(f"/proc/{name}/cwd").removesuffix(" (deleted)")
                if f"{place}/".startswith(f"{folder}/"):
                    yield int(name)


def _guard(folder: str, parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    folder = os.path.realpath(folder)
    while workers := list(_working_in(folder)):
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK / 10)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _guard(sys.argv[1], int(sys.argv[2]))
