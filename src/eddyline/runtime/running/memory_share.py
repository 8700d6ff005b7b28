"""The size that `memory=auto` stands for: a share of the host's memory, divided by the slots that run on the host.

The host's memory is as much as this process may use: the limit of a container or of a service counts, if it is smaller.
How much other programs use at the moment does not count, so a job that is started again gets the same size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from eddyline.settings import AUTO_MEMORY, Settings

SHARE = 0.4
"""The share of the host's memory that the state of all slots may take. The rest is for batches, results and sweeps, for
the processes themselves and, on Spark, for the JVM. It is below one half, the size that Linux gives to /dev/shm."""
FOLDER_SHARE = 0.8
"""The share of the file system of arenas that they may take: while rows leave, some columns are there twice."""


def with_memory(
    settings: Settings, slots: int, arenas: str | None = None, host: Callable[[], int] | None = None
) -> Settings:
    """The settings with a size in place of `memory=auto`, for a job with so many slots on this host. `arenas` is the
    folder of their state, if it is not in the process; `host` tells the host's memory.

    >>> with_memory(Settings(memory=AUTO_MEMORY), slots=4, host=lambda: 16_000_000_000).memory
    1600000000
    """
    if settings.memory != AUTO_MEMORY:
        return settings
    size = SHARE * (host or usable_memory)()
    if arenas is not None:
        size = min(size, FOLDER_SHARE * _size_of(arenas))
    return replace(settings, memory=max(1, int(size / slots)))


def usable_memory(root: Path = Path("/")) -> int:
    """The bytes of memory that this process may use. `root` is the folder in which /proc and /sys are."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([installed, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    for limit in group_files(root, "memory", "memory.max", "memory.limit_in_bytes"):
        if limit.isdigit():  # "max": no limit
            yield int(limit)


def group_files(root: Path, controller: str, name: str, old_name: str) -> Iterator[str]:
    """What a file says in each control group of this process, of both versions (`old_name` in the first). A container
    may see the name that its group has outside, so every folder up to the root of the hierarchy is looked at, whether
    or not it exists."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, file = root / "sys/fs/cgroup", name
        elif controller in controllers.split(","):
            top, file = root / "sys/fs/cgroup" / controller, old_name
        else:
            continue
        folder = top / path.strip("/")
        for some in (folder, *folder.parents):
            yield _read(some / file).strip()
            if some == top:
                break


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def _size_of(folder: str) -> int:
    """The size of the file system that a folder is in, or will be in."""
    path = Path(folder).absolute()
    while not path.exists():
        path = path.parent
    about = os.statvfs(path)
    return about.f_frsize * about.f_blocks
