"""How long a batch waits for rows that have not arrived.

With `batch_rows=auto` a batch is complete `batch_seconds` after its first row arrived, full or not. With a number it is
complete when it is full: then the cut into batches, and with it which rows are late, is the same in every run. With
`idle_timeout` or `--follow` a silent stream may never fill a batch, so `batch_seconds` bounds the wait there, too. A
stop from outside ends every wait. Time in which the process did not run counts for no wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from eddyline.running_time import running_seconds

_LOOK_EVERY = 0.05
"""Seconds between two checks for a stop. New rows are noticed at once."""


class Waited(Protocol):
    """Something to wait for."""

    def ready(self) -> bool:
        """Whether waiting is over."""


class Waiting:
    """The waiting of one run. `begin` starts a batch; `seconds` is how long the batch has waited so far."""

    def __init__(
        self,
        patience: float | None = None,
        stop: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = running_seconds,
    ) -> None:
        self.changed = threading.Condition()
        self.seconds = 0.0
        self._patience, self._stop, self._clock = patience, stop, clock
        self._deadline: float | None = None

    def begin(self) -> None:
        """Starts a new batch."""
        self.seconds, self._deadline = 0.0, None

    def until_ready(self, one: Waited, begun: Callable[[], bool] = lambda: False) -> bool:
        """Waits for one. Returns False if a stop is asked for, or if the batch has waited too long; that time counts
        from the moment when it has `begun`."""
        if one.ready():
            return True
        began = now = self._clock()
        with self.changed:
            while not one.ready() and not self._stop():
                if self._deadline is None and self._patience is not None and begun():
                    self._deadline = now + self._patience
                left = _LOOK_EVERY if self._deadline is None else self._deadline - now
                if left <= 0:
                    break
                self.changed.wait(min(left, _LOOK_EVERY))
                now = self._clock()
        self.seconds += now - began
        return one.ready()
