"""Whether a queue grows steadily: a trend that holds, not a jump.

The last batches are taken in PARTS parts of EACH, and every part must have more than the one before. A jump makes at
most two parts larger than the one before, so it is no trend; nor is what grows and falls.
"""

from __future__ import annotations

from itertools import pairwise

PARTS, EACH = 4, 3
"""Batches are compared so many at a time, and so many times."""

GROWS = 1.1
"""How much more a part must have than the one before."""


class Trend:
    """Of the sizes of one queue, batch by batch.

    >>> trend = Trend([10.0 * 1.1**n for n in range(12)])
    >>> trend.steady, Trend([10.0] * 6 + [40.0] * 6).steady
    (True, False)
    """

    def __init__(self, sizes: list[float] | None = None) -> None:
        self.sizes = sizes or []

    def add(self, size: float) -> None:
        """What was in the queue in one more batch."""
        self.sizes = [*self.sizes[1 - PARTS * EACH :], size]

    @property
    def steady(self) -> bool:
        """Whether it has grown all the time."""
        parts = [sum(self.sizes[at : at + EACH]) for at in range(0, len(self.sizes), EACH)]
        return len(self.sizes) == PARTS * EACH and all(GROWS * a < b for a, b in pairwise(parts))
