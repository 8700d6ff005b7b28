"""A clock that stands still until it is told to move, for everything that takes its clock from outside."""

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
        """Move forward; a clock that went back would break its users' invariants, so it is refused."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        self._now += seconds

    def sleep(self, seconds: float) -> None:
        """What a waiting user calls in place of `time.sleep`: the time passes at once."""
        self.advance(seconds)
