"""The boundaries at which a query with SLIDE, or with a window that has a borrowed name, has results.

The engine knows one rule: at boundary b a component counts if b - W < ts <= b, and b is emitted once the watermark is
greater than b. `[RANGE W SLIDE S]` is that, with window_end() = b. TUMBLE, HOP and CUMULATE count a row if
window_end() - W <= ts < window_end(), and are emitted once the watermark is window_end() or greater. Times are whole
microseconds, so that is the same rule at b = window_end() - 1. So their boundaries lie one microsecond (`gap`) before
the ends of their windows; only `end_of` adds it again, and expiry, panes, spilling and moves know no second case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", int, NDArray[np.int64])


@dataclass(frozen=True)
class Slide:
    """Boundaries that are `step` microseconds apart. Number n is at n * step + origin.

    >>> minute = Slide(60_000_000, 59_999_999, gap=1)  # [TUMBLE 1 MINUTE]
    >>> minute.first_from(60_000_000), minute.end_of(minute.first_from(60_000_000))
    (119999999, 120000000)
    """

    step: int
    origin: int = 0
    """The least boundary that is not negative, so that sums with it do not overflow."""
    gap: int = 0
    """window_end() is this much later than the boundary."""

    def at(self, number: T) -> T:
        """The time of a boundary."""
        return number * self.step + self.origin

    def number_from(self, time: T) -> T:
        """The number of the first boundary at or after a time."""
        below = self.number_upto(time)  # the negative of a floor of negatives would overflow at the least time
        first: T = below + (self.at(below) != time)
        return first

    def number_upto(self, time: T) -> T:
        """The number of the last boundary at or before a time."""
        return (time - self.origin) // self.step

    def first_from(self, time: T) -> T:
        """The first boundary at or after a time."""
        return self.at(self.number_from(time))

    def last_upto(self, time: T) -> T:
        """The last boundary at or before a time."""
        return self.at(self.number_upto(time))

    def end_of(self, boundary: T) -> T:
        """window_end() of the rows of a boundary."""
        return boundary + self.gap


def borrowed(size: int, step: int, offset: int) -> Slide:
    """The boundaries of windows that begin `step` apart, at `offset` since 1970 among others, and last `size`."""
    return Slide(step, (offset + size - 1) % step, gap=1)
