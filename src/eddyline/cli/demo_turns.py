"""Two runs that take turns: while one handles a batch, the other waits.

So load that comes and goes on the machine meets both of them alike, and so do a JVM and caches that are cold. The clock
of a run stands still while the run waits: its rates are those that it would have alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LOOK = 0.1
"""Seconds between two looks whether the runs are to stop."""


class Turns:
    """Gives the turn to run 0 first. A run calls `wait` before it begins, `pass_on` after a batch, and `leave` at its
    end. Once `stop()` is true, nobody waits."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        self._stop = stop
        self._changed = threading.Condition()
        self._whose = 0
        self._left = False
        """Whether a run has left: the other one no longer waits."""
        self._waited = [0.0, 0.0]
        self._since: list[float | None] = [None, None]

    def seconds(self, run: int) -> float:
        """The clock of a run, as `time.perf_counter` without the time in which it waited."""
        with self._changed:
            since = self._since[run]
            return (time.perf_counter() if since is None else since) - self._waited[run]

    def wait(self, run: int) -> None:
        """Wait for the turn."""
        with self._changed:
            begin = self._since[run] = time.perf_counter()
            while not (self._whose == run or self._left or self._stop()):
                self._changed.wait(_LOOK)
            self._since[run] = None
            self._waited[run] += time.perf_counter() - begin

    def pass_on(self, run: int) -> None:
        """Give the turn to the other run, and wait until it comes back."""
        with self._changed:
            self._whose = 1 - run
            self._changed.notify_all()
        self.wait(run)

    def leave(self) -> None:
        """A run has ended: the other one goes on alone."""
        with self._changed:
            self._left = True
            self._changed.notify_all()
