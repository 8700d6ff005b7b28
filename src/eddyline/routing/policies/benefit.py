"""Benefit: the step with the most benefit over cost, where the benefit is the value of the partial results it makes.

A partial result is worth the share of the sources it already has: it is not an answer yet, but it can become one. So
tuples are sent where they soonest grow into answers, which is good for seeing answers early, not for the total work:
a step that multiplies tuples looks beneficial. A step without fresh evidence is taken at the next decision.
"""

from __future__ import annotations

from eddyline.routing.policies.policy import Policy
from eddyline.routing.policies.rank import LEAST_EVIDENCE
from eddyline.routing.routing_arrays import Entry, Traffic
from eddyline.routing.statistics import Work


class Benefit(Policy):
    """The step with the most value made per second."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def decide(self, entry: Entry) -> Traffic:
        """The first that is not measured, or the one of most benefit over cost."""
        moment = self._work.moment
        for traffic in entry.steps:
            if traffic.recent.weight(moment) < LEAST_EVIDENCE:
                return traffic
        return max(entry.steps, key=lambda t: self._benefit(t, entry.sources))

    def _benefit(self, traffic: Traffic, sources: int) -> float:
        cost, selectivity = self._work.estimate(traffic.recent)
        return selectivity * traffic.after[0].bit_count() / sources / cost
