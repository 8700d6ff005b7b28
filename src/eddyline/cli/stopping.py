"""Ctrl-C, SIGTERM and SIGHUP, from the first line of the program to the exit of the interpreter. Each leaves one line.

- Before a job runs: the process ends, "interrupted", status 130, 143 or 129. Nothing has been written yet, so nothing
  has to be completed.
- While it runs: it stops after the batch in hand, "stopped: ...", status 130, 143 or 129. A second signal raises
  KeyboardInterrupt, a third one ends the process.
- After the closing line: the process ends without another word, with the status of the command.

Other libraries print tracebacks when they are interrupted: Py4J, Spark's JVM, threads, the interpreter itself. So from
the first signal on standard error carries our own messages alone (`streams.only_notes`).

SIGHUP comes when a terminal or its connection is closed; under `nohup` it stays ignored.

This module imports little: until it has been imported, the signals raise KeyboardInterrupt with a traceback.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from eddyline.cli.streams import only_notes

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = 3.0
"""Seconds in which a child must end."""


def _handled() -> list[signal.Signals]:
    """The signals that this process handles: not those that it was started to ignore."""
    return [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]


class _Signals:
    """What a signal does at present."""

    def __init__(self) -> None:
        self.owner = 0
        """The process that handles the signals. A process that it has just forked has the handlers, too."""
        self.act: Callable[[int], None] = self.end
        self.status = 0
        """The exit status of a process whose work is done."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() == self.owner:
            self.act(number)

    def end(self, number: int) -> None:
        """End the process with one line. (An exception would be raised in the middle of imports.)"""
        _tell("eddyline: interrupted\n")
        only_notes()
        _end_children()
        os._exit(128 + number)

    def exit(self, number: int) -> None:
        """End the process: all that it had to say is said."""
        os._exit(self.status)


_signals = _Signals()


def end_at_once() -> None:
    """From now on the signals end the process with one line and status 130, 143 or 129."""
    if _signals.owner == 0:
        atexit.register(_ignore)  # the first one that is registered is called last
    _signals.owner, _signals.act = os.getpid(), _signals.end
    for number in _handled():
        signal.signal(number, _signals)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)  # `./run` blocks them until they are handled


def last_words() -> None:
    """The line that ends the command follows: from now on a signal adds none."""
    _signals.act = lambda number: None


def finished(status: int) -> None:
    """The command is done: from now on a signal ends the process with this status, without a word."""
    _signals.status, _signals.act = status, _signals.exit


@contextmanager
def interrupts(make_way: Callable[[str], None] = lambda hint: None) -> Iterator[StopAsked]:
    """Inside this context the first signal asks the job to stop, and `make_way` gets a hint for whoever waits at the
    terminal; the second one raises KeyboardInterrupt. In the process of a command this lasts until `last_words`."""
    stop = StopAsked(make_way)
    if _signals.owner:
        _signals.act = stop.ask
        yield stop
        return
    _signals.owner, _signals.act = os.getpid(), stop.ask
    before = {number: signal.signal(number, _signals) for number in _handled()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _signals.owner = 0


class StopAsked:
    """Whether the job was asked to stop."""

    def __init__(self, make_way: Callable[[str], None]) -> None:
        self._make_way, self._asked, self.number = make_way, threading.Event(), 0

    def ask(self, number: int) -> None:
        """Take a signal."""
        if self._asked.is_set():
            _signals.act = _signals.end
            raise KeyboardInterrupt
        self.number = number
        self._asked.set()
        self._make_way("stopping after the batch in hand (again: at once)")
        only_notes()

    def is_set(self) -> bool:
        """Whether a signal has come."""
        return self._asked.is_set()

    @property
    def status(self) -> int:
        """The exit status of a job that was stopped."""
        return 128 + self.number


def _end_children() -> None:
    """End the processes that this process has started, and remove their folder. A JVM that is starting ignores our
    signals (spark/gateway.py), and would notice that we are gone only when it has started, many seconds later, with our
    standard output still open. The folder is removed when the JVM has ended: until then it makes new files."""
    gateway = sys.modules.get("eddyline.spark.gateway")
    last = signal.SIGKILL if gateway is None else gateway.last_signal
    left = _children()
    for child in left:
        with suppress(OSError):
            os.kill(child, last)
    end = time.monotonic() + _PATIENCE
    while left and time.monotonic() < end:
        left = [child for child in left if not _ended(child)]
        time.sleep(0.01)
    if gateway is not None:
        gateway.remove_folder()


def _ended(child: int) -> bool:
    """Whether a child has ended."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def _children() -> list[int]:
    """The processes that this process has started; none where there is no /proc."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def _tell(text: str) -> None:
    """Write to standard error without its buffer: the signal may have come while the buffer was being written."""
    with suppress(OSError):
        os.write(2, text.encode())


def _ignore() -> None:
    """Ignore the signals for the rest of the exit, when the interpreter no longer handles them."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
