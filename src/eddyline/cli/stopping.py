"""Ctrl-C and SIGTERM: before a job runs, they end the process at once; while it runs, they ask the job to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_at_once() -> None:
    """From now on the signals end the process with one line and status 130 or 143. Nothing has been written yet, so
    nothing must be completed. (An exception would be raised in the middle of imports.) A JVM that is starting gets
    SIGHUP, at which it removes its files and ends: it ignores the other signals (spark/gateway.py), and would notice
    that we are gone only when it has started, many seconds later, with our standard output still open. Under `nohup` it
    ignores SIGHUP too, and gets SIGKILL."""
    last = signal.SIGKILL if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else signal.SIGHUP

    def end(number: int, frame: FrameType | None) -> None:
        _tell(b"eddyline: interrupted\n")
        for child in _children():
            with suppress(OSError):
                os.kill(child, last)
        os._exit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, end)


def _children() -> list[int]:
    """The processes that this process has started; none where there is no /proc."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def _tell(text: bytes) -> None:
    """Write to standard error without its buffer: the signal may have come while the buffer was being written."""
    with suppress(OSError):
        os.write(2, text)


@contextmanager
def interrupts(make_way: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """Inside this context the first signal sets the event, and the second ends the process. `make_way` is called before
    the line about the first signal is written to standard error."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        make_way()
        _tell(b"\nstopping after the batch in hand (again: at once)\n")

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
