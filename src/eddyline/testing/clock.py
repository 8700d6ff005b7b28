"""A clock that moves only when a test moves it, for all code that takes its clock as an argument."""

from __future__ import annotations


class ManualClock:
    """A settable clock, in seconds; calling it gives the time, as `time.monotonic` does.

    >>> clock = ManualClock(5.0)
    >>> clock.advance(2.5)
    >>> clock()
    7.5
    >>> clock.sleep(1.0)  # nobody waits
    >>> clock()
    8.5
    """

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward. Moving back is refused, because it would break the invariants of the clock's users."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        self._now += seconds

    def sleep(self, seconds: float) -> None:
        """The replacement for `time.sleep`: the clock moves at once, and nothing waits."""
        self.advance(seconds)
