"""Lottery: a module gets a ticket for every tuple that it takes in, and returns one for every tuple that it puts out.

So modules that consume much and produce little hold most tickets and win most draws. Costs do not count, and tickets
fade with the evidence. Every module keeps at least `fewest_tickets` tickets (tuning.py): otherwise a module that once
produced much would never be tried again.
"""

from __future__ import annotations

import random

from eddyline.routing.policies.policy import Policy
from eddyline.routing.routing_arrays import Entry, Traffic
from eddyline.routing.tuning import DEFAULT, RoutingTuning


class Lottery(Policy):
    """Draws a step by its module's tickets."""

    def __init__(self, seed: int, tuning: RoutingTuning = DEFAULT) -> None:
        self._random, self._fewest = random.Random(seed), tuning.fewest_tickets

    def decide(self, entry: Entry) -> Traffic:
        """The step that wins the draw."""
        tickets = [max(t.module.tuples * (1.0 - t.module.selectivity), self._fewest) for t in entry.steps]
        return self._random.choices(entry.steps, tickets)[0]
