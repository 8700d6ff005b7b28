"""Spark's Python workers leave quietly when nobody needs them any more.

Spark ends an idle worker (after a minute, or with the session) by closing its socket. PySpark's worker takes that for
an error of its task and writes it to the socket; with Unix sockets that fails at once, and the daemon that it was
forked from prints a traceback of BrokenPipeError. Nobody is there to be told anything, so here it just ends. A worker
whose socket is closed while it works for a task is not spoken of either: Spark has said why it ended the task.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

Worker = Callable[[socket.socket, bool], int]


def leave_quietly() -> None:
    """In a worker that was forked from PySpark's daemon: its next wait for a task ends quietly. Elsewhere nothing."""
    daemon = sys.modules["__main__"]
    worker: Worker | None = getattr(daemon, "worker", None)
    if worker is not None and getattr(daemon, "manager", None) is not None and "leave" not in worker.__name__:
        daemon.worker = _leaving(worker)  # type: ignore[attr-defined]


def _leaving(worker: Worker) -> Worker:
    def leave(sock: socket.socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except BrokenPipeError:
            return 1

    return leave
