"""Ctrl-C and SIGTERM: before a job runs they end the process at once, while it runs they ask it to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_at_once() -> None:
    """From here on they end the process with one line and status 130 or 143; nothing has been written yet, so nothing
    needs to be completed. (An exception would have to find its way out of half-made imports.)"""

    def end(number: int, frame: FrameType | None) -> None:
        _tell(b"eddyline: interrupted\n")
        os._exit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, end)


def _tell(text: bytes) -> None:
    """On standard error, past its buffer: the signal may have come while that was being written."""
    with suppress(OSError):
        os.write(2, text)


@contextmanager
def interrupts(make_way: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """They set the event the first time, and end the process the second time. `make_way` is called before a line about
    the first one is written to standard error."""
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
