"""Benefit: the step with the most benefit over cost, where the benefit is the value of the partial results it makes.

A partial result is worth the share of the sources it already has: it is not an answer yet, but it can become one. So
tuples are sent where they soonest grow into answers, which is good for seeing answers early, not for the total work:
a step that multiplies tuples looks beneficial. A step without fresh evidence is taken at the next decision.
"""

from __future__ import annotations

from eddyline.routing.policies.rank import Rank
from eddyline.routing.routing_arrays import Traffic


class Benefit(Rank):
    """The step with the most value made per second."""

    def rank(self, traffic: Traffic) -> float:
        """Value over cost, negative because less is better. The share of the sources is a factor of all: it is left
        out."""
        cost, selectivity = self._work.estimate(traffic.recent)
        return -selectivity * traffic.after[0].bit_count() / cost
