"""Fixed: always the first step of the plan: selections as soon as they can be evaluated, in the order they are
written, then sources in the order of FROM. A static plan."""

from __future__ import annotations

from eddyline.routing.policies.policy import Policy
from eddyline.routing.routing_arrays import Entry, Traffic


class Fixed(Policy):
    """The first step."""

    def decide(self, entry: Entry) -> Traffic:
        """The first."""
        return entry.steps[0]
