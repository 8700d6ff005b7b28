"""Seconds in which this process ran: the clock of all time-outs.

A process that is stopped (SIGSTOP, a suspended machine) finds its deadlines passed when it goes on, though nobody was
late. So the clock is read every `TICK` seconds. If more time has passed between two readings, the process did not run
in between, or a call kept it busy; what is above `TICK` is left out of the clock, and no time-out sees it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

TICK, LATE = 0.25, 0.5
"""How often the clock is read at least, and how much later a busy machine may read it; in seconds."""


class RunningTime:
    """A clock that stands still between two readings that are too far apart.

    >>> times = iter([0.0, 0.2, 60.2, 60.4])
    >>> clock = RunningTime(lambda: next(times))
    >>> [round(clock.read(), 2) for _ in range(4)]
    [0.0, 0.2, 0.45, 0.65]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._last = float("inf")
        self._left_out = 0.0

    def read(self) -> float:
        """Seconds in which the process ran, since some moment."""
        with self._lock:
            now = self._clock()
            if now - self._last > TICK + LATE:
                self._left_out += now - self._last - TICK
            self._last = now
            return now - self._left_out


class _Ticking:
    """The clock of this process, and the thread that reads it; a forked process has its own."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.time = RunningTime()
        threading.Thread(target=self._tick, name="eddyline-clock", daemon=True).start()

    def _tick(self) -> None:
        while True:
            self.time.read()
            time.sleep(TICK)


_starting = threading.Lock()
_ticking: _Ticking | None = None


def running_seconds() -> float:
    """Seconds in which this process ran, since some moment."""
    global _ticking
    ticking = _ticking
    if ticking is None or ticking.process != os.getpid():
        with _starting:
            if _ticking is None or _ticking.process != os.getpid():
                _ticking = _Ticking()
            ticking = _ticking
    return ticking.time.read()


def _after_fork() -> None:
    """Another thread may have held the lock."""
    global _starting
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
