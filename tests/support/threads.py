"""Threads that a test may have left behind."""

from __future__ import annotations

import threading


def started_threads() -> set[threading.Thread]:
    """The living threads that Python started, without the one that reads the clock for the whole process. A library's
    own thread that has called Python once, as those of DuckDB and librdkafka do, stays in `threading.enumerate` as a
    dummy."""
    some = {thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}
    return {thread for thread in some if thread.name != "eddyline-clock"}
