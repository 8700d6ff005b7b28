"""A command that is watched: its wall time, the CPU time and the memory of its whole process tree, and its last line.

CPU time is what the kernel counts for children that were waited for. Orphans of the tree become our children
meanwhile (Linux' child subreaper), so a JVM that outlives its parent counts too. Memory is the largest sum of
proportional set sizes, looked at twice a second: shared pages count once.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EVERY = 0.5
_SUBREAPER = 36
_GRACE = 20.0
"""Seconds for processes that end after the command."""


@dataclass(frozen=True)
class Watched:
    """How a command ran. `told` is what its JSON lines said, later values in place of earlier ones; `error` is empty if
    it ended well."""

    wall: float
    cpu: float
    memory: int
    told: Mapping[str, Any]
    error: str
    timed_out: bool


def watched(command: Sequence[str], limit: float, environment: Mapping[str, str]) -> Watched:
    """Run a command to its end, or for at most `limit` seconds."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)
    before, begin, memory = _children_cpu(), time.perf_counter(), 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdout=out, stderr=errors, stdin=subprocess.DEVNULL, env={**os.environ, **environment},
            start_new_session=True,
        )  # fmt: skip
        timed_out = False
        try:
            while not _ended(process):
                memory = max(memory, sum(_memory(pid) for pid in _tree(process.pid)))
                if time.perf_counter() - begin > limit:
                    timed_out = True
                    break
        finally:
            wall = time.perf_counter() - begin
            _finish(process, at_once=process.poll() is None)
            ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 0, 0, 0, 0)
        out.seek(0)
        errors.seek(0)
        told: dict[str, Any] = {}
        for line in out.read().decode(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                told |= json.loads(line) if line.startswith("{") else {}
        said = errors.read().decode(errors="replace").strip().splitlines()
    error = "" if process.returncode == 0 or timed_out else (said[-1] if said else f"status {process.returncode}")
    return Watched(wall, _children_cpu() - before, memory, told, error, timed_out)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_EVERY)
    except subprocess.TimeoutExpired:
        return False
    return True


def _finish(process: subprocess.Popen[bytes], at_once: bool) -> None:
    """Wait for all processes of the tree; kill those that stay."""
    until = time.perf_counter() + (0 if at_once else _GRACE)
    while pids := [pid for pid in {process.pid, *_tree(process.pid)} if _alive(pid)]:
        if time.perf_counter() > until:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if process.returncode is None:
            process.poll()
        _reap(process.pid)
        time.sleep(0.05)
    process.wait()


def _reap(but: int) -> None:
    """Wait for orphans that were given to us, so that their time counts."""
    for pid in _children().get(os.getpid(), []):
        if pid != but and _session(pid) == but:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _alive(pid: int) -> bool:
    return bool(stat := _stat(pid)) and not (stat[0] == "Z" and int(stat[1]) != os.getpid())


def _session(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[3]) if stat else 0


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))):
            children.setdefault(int(stat[1]), []).append(int(name))
    return children


def _tree(root: int) -> set[int]:
    """The processes below a process, and all others of its session."""
    children, found, todo = _children(), set[int](), [root]
    todo += [pid for pids in children.values() for pid in pids if pid != root and _session(pid) == root]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, [])
    return found


def _memory(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
