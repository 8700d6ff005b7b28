"""How long a batch waits for rows that are not there yet.

With `batch_rows=auto` a batch is handed over `batch_seconds` after its first row came, full or not. With a number it is
handed over when it is full: the cut into batches, and with it which rows are late, is then the same every time; but not
with `idle_timeout`, which would wait in vain for the rows of a silent stream. A stop asked for from outside ends every
wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

_LOOK_EVERY = 0.05
"""Seconds between two looks at whether a stop was asked for; rows that come are noticed at once."""


class Waited(Protocol):
    """What can be waited for."""

    def ready(self) -> bool:
        """Whether it is there."""


class Waiting:
    """The waiting of one run; `begin` starts a batch, `seconds` is how long it has waited since."""

    def __init__(self, patience: float | None = None, stop: Callable[[], bool] = lambda: False) -> None:
        self.changed = threading.Condition()
        self.seconds = 0.0
        self._patience, self._stop = patience, stop
        self._deadline: float | None = None

    def begin(self) -> None:
        """A new batch."""
        self.seconds, self._deadline = 0.0, None

    def until_ready(self, one: Waited, begun: Callable[[], bool] = lambda: False) -> bool:
        """Waits for one; False if that takes too long for this batch, counted since it has `begun`, or at a stop."""
        if one.ready():
            return True
        began = now = time.monotonic()
        with self.changed:
            while not one.ready() and not self._stop():
                if self._deadline is None and self._patience is not None and begun():
                    self._deadline = now + self._patience
                left = _LOOK_EVERY if self._deadline is None else self._deadline - now
                if left <= 0:
                    break
                self.changed.wait(min(left, _LOOK_EVERY))
                now = time.monotonic()
        self.seconds += now - began
        return one.ready()
