"""An event loop whose clock stands still while the process does not run.

A process that is stopped (SIGSTOP, a suspended machine) finds its deadlines passed when it goes on, though nobody was
late: answers wait in its sockets, or were never asked for. So the loop wakes up every `TICK` seconds, and reads its
clock then. If more time has passed between two readings, the process did not run in between, or a call kept the loop
busy; what is above `TICK` is left out of the clock, and no timer sees it.
"""

from __future__ import annotations

import asyncio
import time

TICK, _LATE = 0.25, 0.5
"""How often the clock is read at least, and how much later a busy machine may wake the loop up; in seconds."""


class RunningLoop(asyncio.SelectorEventLoop):
    """See above."""

    _left_out = 0.0
    _read = float("inf")
    _ticks = False

    def time(self) -> float:
        """Seconds in which the process ran."""
        now = time.monotonic()
        if now - self._read > TICK + _LATE:
            self._left_out += now - self._read - TICK
        self._read = now
        return now - self._left_out

    def run_forever(self) -> None:
        """Run until `stop`."""
        if not self._ticks:
            self._ticks = True
            self.call_soon(self._tick)
        super().run_forever()

    def _tick(self) -> None:
        self.call_later(TICK, self._tick)
