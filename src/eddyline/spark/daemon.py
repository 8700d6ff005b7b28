"""PySpark's daemon, changed: its workers start with the engine already imported, and end without a traceback.

Workers are forked from the daemon. PySpark's own daemon imports nothing before, since a process with threads must not
be forked; so each worker would import the engine. This daemon imports the engine without starting a thread: the two
libraries that start one on import, NumPy's OpenBLAS and Arrow's jemalloc, are configured not to.

Spark ends an idle worker (after a minute, or with the session) by closing its socket. PySpark's worker takes that for
an error of its task and writes the error to the socket; with Unix sockets that fails at once, and the worker prints a
traceback of BrokenPipeError. Our worker just ends, because there is nobody to inform. It also ends silently if its
socket is closed during a task: Spark has reported why it ended the task.

After every task PySpark collects garbage among all objects of a worker, which with all our modules takes longer than a
small task. So objects that have survived some tasks, mostly modules and compiled kernels, are frozen: the collector
skips them. They are unfrozen and collected again after 1, 2, 4, 8, ... tasks.

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
    """Run the tasks of one connection; returns PySpark's exit status."""
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
    """Import the modules that tasks need, and load a kernel, which initialises Numba."""
    os.environ.update(NO_THREADS)
    import numpy as np
    import pyspark.worker  # noqa: F401

    import eddyline.spark.tasks  # noqa: F401
    from eddyline.kernels.scan import first_at_least

    first_at_least(np.empty(0, np.int64), 0, 0, 0)
    os.register_at_fork(after_in_child=np.random.seed)  # otherwise all workers would draw the same random numbers
    gc.freeze()


if __name__ == "__main__":
    prepare()
    daemon.worker = worker
    daemon.manager()
