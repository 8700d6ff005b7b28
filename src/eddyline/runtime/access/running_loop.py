"""An event loop whose clock stands still while the process does not run (running_time.py).

The loop wakes up every `TICK` seconds and reads its clock. So its timers see no time in which the process was stopped:
answers wait in its sockets, or were never asked for.
"""

from __future__ import annotations

import asyncio

from eddyline.running_time import TICK, RunningTime


class RunningLoop(asyncio.SelectorEventLoop):
    """See above."""

    _ticks = False

    def __init__(self) -> None:
        self._running_time = RunningTime()
        super().__init__()

    def time(self) -> float:
        """Seconds in which the process ran."""
        return self._running_time.read()

    def run_forever(self) -> None:
        """Run until `stop`."""
        if not self._ticks:
            self._ticks = True
            self.call_soon(self._tick)
        super().run_forever()

    def _tick(self) -> None:
        self.call_later(TICK, self._tick)
