"""CPU seconds that a slot spends on a batch: the measured price of its plan, which corrects the optimizer's
predictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CpuMeter:
    """Adds up the CPU seconds of one batch.

    The CPU time of the thread is counted, so that other work of the machine does not count against a plan. If a test
    passes in its own clock, that clock stands for the CPU time too.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = time.thread_time if clock is time.perf_counter else clock
        self._spent = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Add the seconds of the block."""
        begin = self.clock()
        yield
        self._spent += self.clock() - begin

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Leave the seconds of the block out, within a block that is counted."""
        begin = self.clock()
        yield
        self._spent -= self.clock() - begin

    def take(self) -> float:
        """The seconds so far; counting begins again."""
        spent, self._spent = self._spent, 0.0
        return spent
