"""PySpark's daemon, whose workers leave quietly when nobody needs them any more.

Spark ends an idle worker (after a minute, or with the session) by closing its socket. PySpark's worker takes that for
an error of its task and writes it to the socket; with Unix sockets that fails at once, and the worker prints a
traceback of BrokenPipeError. Nobody is there to be told anything, so here it just ends. A worker whose socket is closed
while it works for a task is not spoken of either: Spark has said why it ended the task.

After every task PySpark looks for garbage among all objects of a worker, which with all modules that we need takes
longer than a small task. What has lived through some tasks, mostly modules and compiled kernels, is therefore left out
of that; garbage among it goes when it is looked at again, after 1, 2, 4, 8, ... tasks.

The session names this module as `spark.python.daemon.module`. It imports nothing that starts a thread: workers are
forked from it.
"""

from __future__ import annotations

import gc
import socket
from itertools import count

from pyspark import daemon

_worker, _tasks = daemon.worker, count(1)


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Tasks of one connection; whether it ended well."""
    try:
        code = _worker(sock, authenticated)
    except BrokenPipeError:
        return 1
    done = next(_tasks)
    if not done & (done - 1):
        gc.unfreeze()
        gc.collect()
        gc.freeze()
    return code


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
