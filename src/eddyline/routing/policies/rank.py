"""Rank: takes the step with the least (selectivity - 1) / cost, both measured for the tuples of this signature.

For independent selections this order is optimal. With selectivities per signature it is the greedy order by conditional
selectivity, so correlated predicates do not mislead it. For joins whose fan-outs depend on each other it sees only one
step ahead. A step without fresh evidence is taken at the next decision, to get some.
"""

from __future__ import annotations

from eddyline.routing.policies.policy import Policy
from eddyline.routing.routing_arrays import Entry, Traffic
from eddyline.routing.statistics import Work
from eddyline.routing.tuning import DEFAULT, RoutingTuning


class Rank(Policy):
    """Takes the step with the least rank."""

    def __init__(self, work: Work, tuning: RoutingTuning = DEFAULT) -> None:
        self._work, self._evidence = work, tuning.rank_evidence

    def decide(self, entry: Entry) -> Traffic:
        """The first step that is not measured, or the one with the least rank."""
        for traffic in entry.steps:
            if traffic.recent.weight(self._work) < self._evidence:
                return traffic
        return min(entry.steps, key=self.rank)

    def rank(self, traffic: Traffic) -> float:
        """The rank of a step; less is better."""
        cost, selectivity = self._work.estimate(traffic.recent)
        return (selectivity - 1.0) / cost
