"""Benefit: takes the step with the most benefit over cost. The benefit is the value of the partial results that it
makes.

The value of a partial result is the share of the sources that it has: it is not an answer yet, but it can become one.
So tuples go where they soonest grow into answers. This is good for early answers, not for the total work: a step that
multiplies tuples looks beneficial. A step without fresh evidence is taken at the next decision.
"""

from __future__ import annotations

from eddyline.routing.policies.rank import Rank
from eddyline.routing.routing_arrays import Traffic


class Benefit(Rank):
    """The step with the most value made per second."""

    def rank(self, traffic: Traffic) -> float:
        """Value over cost, negative because less is better. Dividing by the number of sources would not change the
        order."""
        cost, selectivity = self._work.estimate(traffic.recent)
        return -selectivity * traffic.after[0].bit_count() / cost
