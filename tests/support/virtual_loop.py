"""An event loop whose clock jumps: when all tasks wait for time, it is that time at once.

Code that sleeps for hours, retries and gives up at deadlines runs in milliseconds, in the same order. Real
input and output work, but take no time.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _Selector(selectors.DefaultSelector):
    """Does not wait for time: it says that the time has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            return super().select(None)
        found = super().select(0)
        if not found and timeout > 0:
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own, which begins at 0.

    >>> async def day() -> float:
    ...     await asyncio.sleep(86_400)
    ...     return asyncio.get_running_loop().time()
    >>> with asyncio.Runner(loop_factory=VirtualLoop) as runner:
    ...     round(runner.run(day()))
    86400
    """

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """The time on the loop's clock, in seconds."""
        return self._virtual.now
