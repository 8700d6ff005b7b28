"""What happens inside a batch that takes long: progress goes on, and a stop does not wait for its end.

A stop takes effect between two batches if the batch in hand ends soon. Otherwise the batch is abandoned: nothing of it
was written or committed, so it is as if it had not begun, and a run that continues from a checkpoint reads it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

GRACE = 1.0
"""Seconds that a batch may go on after a stop was asked for."""
SHOWN, LOOK = 1.0, 0.05
"""Seconds between two calls of `show`, and between two looks at the clock's business."""


class Stopped(Exception):
    """The run was stopped: the batch in hand is abandoned."""


class InsideBatch:
    """Called during a batch with the share of its rows that are taken in."""

    def __init__(
        self, stop: Callable[[], bool], show: Callable[[float], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stop, self._show, self._clock = stop, show, clock
        self._asked: float | None = None
        self._on, self._look, self._next = False, 0.0, 0.0

    def begin(self) -> None:
        """A batch begins."""
        self._on, self._next = True, self._clock() + SHOWN

    def end(self) -> None:
        """Calls do nothing until the next batch."""
        self._on = False

    def __call__(self, share: float) -> None:
        """Raises Stopped if a stop was asked for some time ago."""
        now = self._clock()
        if not self._on or now < self._look:
            return
        self._look = now + LOOK
        if self._asked is None and self._stop():
            self._asked = now
        if self._asked is not None and now >= self._asked + GRACE:
            self._on = False
            raise Stopped
        if now >= self._next:
            self._next = now + SHOWN
            self._show(share)
