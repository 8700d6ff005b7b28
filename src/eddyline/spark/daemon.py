"""PySpark's daemon, whose workers leave quietly when nobody needs them any more.

Spark ends an idle worker (after a minute, or with the session) by closing its socket. PySpark's worker takes that for
an error of its task and writes it to the socket; with Unix sockets that fails at once, and the worker prints a
traceback of BrokenPipeError. Nobody is there to be told anything, so here it just ends. A worker whose socket is closed
while it works for a task is not spoken of either: Spark has said why it ended the task.

The session names this module as `spark.python.daemon.module`. It imports nothing that starts a thread: workers are
forked from it.
"""

from __future__ import annotations

import socket

from pyspark import daemon

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Tasks of one connection; whether it ended well."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
