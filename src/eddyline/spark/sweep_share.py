"""How far the tasks of slots on this host are with their sweeps, for the driver, which waits for them in one Spark job.

Each slot has a file beside the arenas with the share of its sweep that is done; the driver adds them up now and then. A
second attempt of a task begins the file of its slot anew. The files are for display only, so a file that cannot be
written or read does not matter.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

_EVERY = 0.2
"""Seconds between two looks of the driver."""


def telling(folder: str, slot: int) -> Callable[[float], None]:
    """For the task of a slot: takes the shares of the sweep, one after the other."""
    done = 0.0

    def tell(share: float) -> None:
        nonlocal done
        done += share
        with contextlib.suppress(OSError), open(_file(folder, slot), "w", encoding="ascii") as file:
            file.write(str(done))

    return tell


@contextlib.contextmanager
def looking(folder: str, slots: int, watch: Callable[[float], None]) -> Iterator[None]:
    """For the driver: while the context lasts, `watch` gets the share of all sweeps that is done, in another thread."""
    for slot in range(slots):
        with contextlib.suppress(OSError):
            os.unlink(_file(folder, slot))
    over = threading.Event()

    def look() -> None:
        while not over.wait(_EVERY):
            watch(sum(_share(folder, slot) for slot in range(slots)) / slots)

    thread = threading.Thread(target=look, name="progress of a sweep", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _file(folder: str, slot: int) -> str:
    return f"{folder}/sweep-{slot}"


def _share(folder: str, slot: int) -> float:
    try:
        with open(_file(folder, slot), encoding="ascii") as file:
            return float(file.read() or 0)
    except (OSError, ValueError):  # not written yet
        return 0.0
