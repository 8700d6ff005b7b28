"""PySpark's daemon, whose workers know all that a task needs when they start, and leave quietly.

Workers are forked from the daemon. PySpark's own imports nothing before that, since a process with threads must not be
forked; so each worker would import the engine. Here the daemon has it, without any thread: the two libraries that start
one when they are imported, NumPy's OpenBLAS and Arrow's jemalloc, are told not to.

Spark ends an idle worker (after a minute, or with the session) by closing its socket. PySpark's worker takes that for
an error of its task and writes it to the socket; with Unix sockets that fails at once, and the worker prints a
traceback of BrokenPipeError. Nobody is there to be told anything, so here it just ends. A worker whose socket is closed
while it works for a task is not spoken of either: Spark has said why it ended the task.

After every task PySpark looks for garbage among all objects of a worker, which with all modules that we need takes
longer than a small task. What has lived through some tasks, mostly modules and compiled kernels, is therefore left out
of that; garbage among it goes when it is looked at again, after 1, 2, 4, 8, ... tasks.

The session names this module as `spark.python.daemon.module`.
"""

from __future__ import annotations

import gc
import os
import socket
from itertools import count

from pyspark import daemon

NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}

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


def prepare() -> None:
    """Import what tasks import, and load a kernel, which sets Numba up."""
    os.environ.update(NO_THREADS)
    import numpy as np
    import pyspark.worker  # noqa: F401

    import eddyline.spark.tasks  # noqa: F401
    from eddyline.kernels.scan import first_at_least

    first_at_least(np.empty(0, np.int64), 0, 0, 0)
    os.register_at_fork(after_in_child=np.random.seed)  # else user functions of all workers would draw the same numbers
    gc.freeze()


if __name__ == "__main__":
    prepare()
    daemon.worker = worker
    daemon.manager()
