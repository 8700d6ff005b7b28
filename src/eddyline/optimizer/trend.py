"""Tells whether a queue grows steadily, as opposed to a jump.

The last batches are divided into parts of a few batches each, and each part must be larger than the one before. A jump
makes at most two parts larger than the one before, so it does not count; neither does a queue that grows and shrinks.
"""

from __future__ import annotations

from itertools import pairwise

from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning


class Trend:
    """The trend of the sizes of one queue, batch by batch.

    >>> trend = Trend([10.0 * 1.1**n for n in range(12)])
    >>> trend.steady, Trend([10.0] * 6 + [40.0] * 6).steady
    (True, False)
    """

    def __init__(self, sizes: list[float] | None = None, tuning: OptimizerTuning = DEFAULT) -> None:
        self.sizes = sizes or []
        self._each, self._grows = tuning.trend_batches, tuning.grows
        self._all = tuning.trend_parts * tuning.trend_batches

    def add(self, size: float) -> None:
        """Add the size of the queue in one more batch."""
        self.sizes = [*self.sizes[1 - self._all :], size]

    @property
    def steady(self) -> bool:
        """Whether the queue has grown from each part to the next."""
        parts = [sum(self.sizes[at : at + self._each]) for at in range(0, len(self.sizes), self._each)]
        return len(self.sizes) == self._all and all(self._grows * a < b for a, b in pairwise(parts))
