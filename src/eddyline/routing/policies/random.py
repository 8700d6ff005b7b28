"""Random: draws a step at every decision."""

from __future__ import annotations

import random

from eddyline.routing.policies.policy import Policy
from eddyline.routing.routing_arrays import Entry, Traffic


class Random(Policy):
    """Draws any allowed step."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def decide(self, entry: Entry) -> Traffic:
        """A random step."""
        return entry.steps[self._random.randrange(len(entry.steps))]
