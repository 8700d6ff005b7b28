"""Faults in whichever process comes to their points: in the driver of a job on Spark, and in its workers.

A folder says what is to happen: a file `0007.todo` names a point and a fault. Who reaches the point first renames the
file, so that each fault happens once, and does it. Processes are armed by a module of the job (`module`), which all of
them import, as they do modules with user functions. Which points were reached is noted in the folder as well.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from eddyline import faults
from eddyline.errors import EddylineError

TODO, DONE, REACHED = ".todo", ".done", "reached"


class Struck(EddylineError):
    """A fault that was asked for."""


def _dies(root: Path, point: str) -> None:
    raise Struck(point)


def _disk_full(root: Path, point: str) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _torn(root: Path, point: str) -> None:
    """Only half of the newest segment gets written, and its writer dies."""
    file = max((root / "log").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    os.truncate(file, file.stat().st_size // 2)
    raise Struck(point)


def _zombie(root: Path, point: str) -> None:
    """A task of an old batch writes what nobody waits for, and what it never completes."""
    for folder in ("log", "small"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "00000001-0-zombie").write_bytes(b"whatever")
        (root / folder / ".tmp-zombie").write_bytes(b"what")


def _flipped(root: Path, point: str) -> None:
    """A bit flips in a segment that the newest commit names, and everything dies."""
    commit = max(p for p in (root / "commits").iterdir() if p.name.isdigit())
    named = json.loads(commit.read_bytes().partition(b"\n")[2])["log"]
    file = root / str(named[0]["name"])
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    raise Struck(point)


FAULTS: dict[str, Callable[[Path, str], None]] = {
    "dies": _dies,
    "disk full": _disk_full,
    "torn write": _torn,
    "late file of a zombie": _zombie,
    "flipped bit": _flipped,
}
"""What may happen at a point of a job with its checkpoint in a folder."""


def strike(folder: Path, point: str, fault: str) -> None:
    """The next one to reach a point meets a fault."""
    folder.mkdir(exist_ok=True)
    number = sum(1 for path in folder.iterdir() if path.suffix in (TODO, DONE))
    (folder / f"{number:04}{TODO}").write_text(json.dumps([point, fault]))


def module(folder: Path, checkpoint: Path) -> str:
    """The path of a module that arms every process that imports it."""
    path = folder / "armed_points.py"
    text = (
        f"from pathlib import Path\nfrom {__name__} import arm\narm(Path({str(folder)!r}), Path({str(checkpoint)!r}))\n"
    )
    folder.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def arm(folder: Path, checkpoint: Path) -> None:
    """From now on this process meets the faults of a folder, as long as that is there."""

    def reached(point: str) -> None:
        with contextlib.suppress(FileNotFoundError), (folder / REACHED).open("a", encoding="utf-8") as file:
            file.write(point + "\n")
        for todo in sorted(folder.glob(f"*{TODO}")):
            with contextlib.suppress(FileNotFoundError):
                where, fault = json.loads(todo.read_text())
                if where != point:
                    continue
                todo.rename(todo.with_suffix(DONE))  # somebody else may have been quicker
                FAULTS[fault](checkpoint, point)
                return

    faults.inject(reached)


def left(folder: Path) -> list[tuple[str, str]]:
    """Points and faults that nobody came to."""
    return [tuple(json.loads(path.read_text())) for path in sorted(folder.glob(f"*{TODO}"))]


def points_reached(folder: Path) -> set[str]:
    """The points that any process came to."""
    path = folder / REACHED
    return set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
