"""Faults in the first process that reaches their points: the driver of a job on Spark, or one of its workers.

A folder holds the planned faults: a file `0007.todo` names a point and a fault. The first process that reaches the
point renames the file, so that each fault happens once, and then has the fault. Processes are armed by a module of the
job (`module`), which all of them import, like modules with user functions. The folder also records which points were
reached.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

from eddyline import faults
from eddyline.errors import EddylineError

TODO, DONE, REACHED = ".todo", ".done", "reached"


class Struck(EddylineError):
    """A planned fault."""


def _dies(root: Path, point: str) -> None:
    raise Struck(point)


def _disk_full(root: Path, point: str) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _torn(root: Path, point: str) -> None:
    """Cut the newest segment in half, as if its writer died while writing it, and die."""
    file = max((root / "log").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    os.truncate(file, file.stat().st_size // 2)
    raise Struck(point)


def _zombie(root: Path, point: str) -> None:
    """Leave files as a task of an old batch might write them: a whole segment that no commit names, and an unfinished
    one."""
    for folder in ("log", "small"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "00000001-0-zombie").write_bytes(b"whatever")
        (root / folder / ".tmp-zombie").write_bytes(b"what")


def _flipped(root: Path, point: str) -> None:
    """Flip a bit in a segment that the newest commit names, and die."""
    commit = max(p for p in (root / "commits").iterdir() if p.name.isdigit())
    named = json.loads(commit.read_bytes().partition(b"\n")[2])["log"]
    file = root / str(named[0]["name"])
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    raise Struck(point)


def _killed(root: Path, point: str) -> None:
    """The process dies at once, whatever it holds."""
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS: dict[str, Callable[[Path, str], None]] = {
    "dies": _dies,
    "disk full": _disk_full,
    "torn write": _torn,
    "late file of a zombie": _zombie,
    "flipped bit": _flipped,
    "killed": _killed,
}
"""The faults by name; each is called with the folder of the job's checkpoint and the point."""


def strike(folder: Path, point: str, fault: str) -> Path:
    """Plan a fault for the next process that reaches a point. Returns the file of the plan, which is gone when a
    process has reached the point."""
    folder.mkdir(exist_ok=True)
    number = sum(1 for path in folder.iterdir() if path.suffix in (TODO, DONE))
    plan = folder / f"{number:04}{TODO}"
    whole = plan.with_suffix(".new")
    whole.write_text(json.dumps([point, fault]))
    return whole.rename(plan)  # another process may look at any moment


def module(folder: Path, checkpoint: Path) -> str:
    """The path of a module that arms every process that imports it."""
    path = folder / "armed_points.py"
    text = (
        f"from pathlib import Path\nfrom {__name__} import arm\narm(Path({str(folder)!r}), Path({str(checkpoint)!r}))\n"
    )
    folder.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def arm(folder: Path, checkpoint: Path, watch: Callable[[str], None] = lambda point: None) -> None:
    """From now on this process has the faults planned in a folder, as long as the folder exists. `watch` is called at
    every point first."""

    def reached(point: str) -> None:
        watch(point)
        with contextlib.suppress(FileNotFoundError), (folder / REACHED).open("a", encoding="utf-8") as file:
            file.write(point + "\n")
        for todo in sorted(folder.glob(f"*{TODO}")):
            with contextlib.suppress(FileNotFoundError):
                where, fault = json.loads(todo.read_text())
                if where != point:
                    continue
                todo.rename(todo.with_suffix(DONE))  # another process may have been quicker
                FAULTS[fault](checkpoint, point)
                return

    faults.inject(reached)


def left(folder: Path) -> list[tuple[str, str]]:
    """The points and faults that no process has reached."""
    return [tuple(json.loads(path.read_text())) for path in sorted(folder.glob(f"*{TODO}"))]


def points_reached(folder: Path) -> set[str]:
    """The points that any process has reached."""
    path = folder / REACHED
    return set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
