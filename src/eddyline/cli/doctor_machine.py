"""What `eddyline doctor` says about the machine: memory, cores, folders, limits, the network of this host, texts and
times. Folders are tried by writing a small file, which is removed."""

from __future__ import annotations

import locale
import os
import resource
import socket
import sys
import tempfile
import time
import zoneinfo
from collections.abc import Iterator
from pathlib import Path

from eddyline.cli.finding import Finding
from eddyline.errors import SettingError
from eddyline.runtime.running.memory_share import group_files, usable_memory
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings, likely_variable, unknown_variables
from eddyline.state.own_folder import host_memory

_LEAST_MEMORY, _LEAST_SHARED, _LEAST_DISK = 2 * 10**9, 512 * 10**6, 10**9
"""Bytes below which a place is said to be small. Spark's JVM alone may take 2 GB; Docker gives /dev/shm 64 MB."""
_LEAST_FILES = 1024
_PIECE = b"x" * 65536


def memory() -> Iterator[Finding]:
    """The memory that this process may use."""
    installed, usable = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), usable_memory()
    text = f"{size_text(usable)} usable"
    text += f" of {size_text(installed)}: a limit of the container or service" if usable < installed else ""
    if usable < _LEAST_MEMORY:
        todo = "Spark's JVM may take 2 GB by itself: give more, or use --engine local"
        yield Finding("memory", "warn", text, todo)
    else:
        yield Finding("memory", "ok", text)


def cores(root: Path = Path("/")) -> Iterator[Finding]:
    """The cores that this process may use. `root` is the folder in which /proc and /sys are."""
    installed, allowed = os.cpu_count() or 1, float(len(os.sched_getaffinity(0)))
    for limit in group_files(root, "cpu", "cpu.max", "cpu.cfs_quota_us"):
        quota, _, period = limit.partition(" ")
        if quota.isdigit():
            allowed = min(allowed, int(quota) / int(period or 100_000))
    text = (
        f"{allowed:g}" if allowed == installed else f"{allowed:g} of {installed}: a limit of the container or service"
    )
    few = allowed < 1
    yield Finding("cores", "warn" if few else "ok", text, "jobs are slow with less than one core" if few else "")


def shared_memory(settings: Settings) -> Iterator[Finding]:
    """The folder where the state of slots lives, on Spark."""
    place = os.path.expandvars(settings.arena_dir or host_memory())
    todo = "set arena_dir to a folder with more room, or give the container more: docker run --shm-size=2g"
    yield _folder("shared memory", place, _LEAST_SHARED, todo)


def disk(settings: Settings, checkpoint: str | None) -> Iterator[Finding]:
    """The folders for temporary files, for rows that leave memory, and for the checkpoint."""
    try:
        yield _folder("temporary", tempfile.gettempdir(), _LEAST_DISK, "free some, or set TMPDIR to another folder")
    except FileNotFoundError:
        yield Finding("temporary", "missing", "no folder for temporary files can be written", "set TMPDIR to one")
    if settings.spill_dir is not None:
        yield _folder("spill_dir", settings.spill_dir, _LEAST_DISK, "free some, or set spill_dir to another folder")
    if checkpoint is not None and "://" in checkpoint:
        yield Finding("checkpoint", "warn", f"{checkpoint} is not a folder of this machine, and was not tried")
    elif checkpoint is not None:
        yield _folder("checkpoint", checkpoint, _LEAST_DISK, "free some, or take another folder")


def _folder(name: str, place: str, least: int, todo: str) -> Finding:
    """Whether a folder, or the one in which it will be made, can be written and has room."""
    there = os.path.abspath(place)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    try:
        about = os.statvfs(there)
        with tempfile.NamedTemporaryFile(dir=there, prefix="eddyline-doctor-") as file:
            file.write(_PIECE)
            file.flush()
    except OSError as error:
        return Finding(name, "wrong", f"{place} cannot be written: {error.strerror}", todo)
    free = about.f_bavail * about.f_frsize
    text = (
        f"{place}: {size_text(free)} free of {size_text(about.f_blocks * about.f_frsize)}" if free else f"{place}: full"
    )
    return Finding(name, "warn", text, todo) if free < least else Finding(name, "ok", text)


def limits() -> Iterator[Finding]:
    """How many files may be open, and whether /proc is there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    text = "no limit" if soft == resource.RLIM_INFINITY else f"{soft} may be open"
    few = soft != resource.RLIM_INFINITY and soft < _LEAST_FILES
    todo = "ulimit -n 4096" if hard == resource.RLIM_INFINITY or hard >= 4096 else "raise the limit of this service"
    yield Finding("files", "warn", text, todo) if few else Finding("files", "ok", text)
    if not os.path.isdir("/proc/self/fd"):
        yield Finding("/proc", "missing", "state and Spark need it", "mount -t proc proc /proc")


def network(settings: Settings) -> Iterator[Finding]:
    """Whether processes of this host can reach each other, and the port for metrics."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(5)
            with socket.create_connection(server.getsockname(), timeout=5):
                server.accept()[0].close()
        yield Finding("loopback", "ok", "127.0.0.1 answers")
    except OSError as error:
        text = f"127.0.0.1 does not answer ({error.strerror or error}), by which Spark's processes find each other"
        yield Finding("loopback", "wrong", text, "ip link set lo up")
    if settings.metrics_port:
        try:
            socket.create_server(("127.0.0.1", settings.metrics_port)).close()
            yield Finding("metrics_port", "ok", f"{settings.metrics_port} is free")
        except OSError as error:
            text = f"{settings.metrics_port} cannot be used: {error.strerror}"
            yield Finding("metrics_port", "wrong", text, "take another port, or stop what uses it")


def texts() -> Iterator[Finding]:
    """The encoding of what is printed and of names of files, and time zones."""
    encodings = {
        "names of files": sys.getfilesystemencoding(),
        "texts": locale.getpreferredencoding(False),
        "output": getattr(sys.stdout, "encoding", None) or "none",
    }
    others = [f"{what} {name}" for what, name in encodings.items() if name.lower().replace("-", "") != "utf8"]
    if others:
        yield Finding("encoding", "warn", f"not UTF-8: {', '.join(others)}", "set PYTHONUTF8=1 or LC_ALL=C.UTF-8")
    else:
        yield Finding("encoding", "ok", "UTF-8")
    try:
        zoneinfo.ZoneInfo("Europe/Berlin")
        text = f"{time.tzname[0]} here; Eddyline reads and prints times without a zone as UTC"
        yield Finding("time zone", "ok", text)
    except zoneinfo.ZoneInfoNotFoundError:
        yield Finding("time zone", "missing", "no names of time zones are known", "pip install tzdata")


def variables(wrong: SettingError | None) -> Iterator[Finding]:
    """Environment variables and options that set something."""
    unknown = unknown_variables(os.environ)
    if wrong is not None:
        yield Finding("settings", "wrong", str(wrong))
    elif unknown:
        likely = [f"did you mean {v}?" for name in unknown if (v := likely_variable(name)) is not None]
        yield Finding("settings", "warn", f"no setting: {', '.join(unknown)}", " ".join(likely) or "unset them")
    else:
        set_ = sorted(name for name in os.environ if name.startswith("EDDYLINE_"))
        yield Finding("settings", "ok", ", ".join(set_) if set_ else "none in the environment")
