"""Threads that a test may have left behind."""

from __future__ import annotations

import threading


def started_threads() -> set[threading.Thread]:
    """The living threads that Python started. A library's own thread that has called Python once, as those of DuckDB
    and librdkafka do, stays in `threading.enumerate` as a dummy."""
    return {thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}
