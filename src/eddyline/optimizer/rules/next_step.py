"""Next step: continue a change for which there was no room at once (see move.py)."""

from __future__ import annotations

from eddyline.optimizer.situation import Proposal, Situation


def next_step(situation: Situation) -> Proposal | None:
    """The target of the change whose first steps are done."""
    if situation.goal is None:
        return None
    return Proposal(situation.pricing.plan(situation.goal), situation.why)
