"""A control group of Linux that limits the memory of the processes in it, the pages of their files included.

The group lies below the group of this process, so a limit that this process has stays in force. Both versions of
control groups are tried; it needs the right to make a folder there, which mostly only root has.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_PATIENCE = 5.0
"""Seconds until a group can be removed after its last process has ended."""


class NoGroup(Exception):
    """No group can be made here."""


@contextlib.contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """The folder of a new group with this limit, in bytes, which is removed at the end. Raises NoGroup."""
    folder, name = place()
    group = folder / f"eddyline-bench-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise NoGroup(f"{group}: {error.strerror}") from None
    try:
        try:
            (group / name).write_text(str(limit))
        except OSError as error:
            raise NoGroup(f"{group / name}: {error.strerror}") from None
        yield group
    finally:
        end = time.monotonic() + _PATIENCE
        while group.exists() and time.monotonic() < end:
            with contextlib.suppress(OSError):  # the kernel still counts a process that has ended
                group.rmdir()
            time.sleep(0.01)


def inside(group: Path, command: Sequence[str]) -> list[str]:
    """The command that runs a command in a group."""
    return ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(group), *command]


def place(root: Path = Path("/")) -> tuple[Path, str]:
    """The folder of the group of this process, and the name of the file with its limit. `root` is the folder in which
    /proc and /sys are. Raises NoGroup."""
    top = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                return top / "memory" / path.strip("/"), "memory.limit_in_bytes"
            if controllers == "" and (top / "cgroup.controllers").exists():
                return top / path.strip("/"), "memory.max"
    raise NoGroup("there are no control groups of memory here")
