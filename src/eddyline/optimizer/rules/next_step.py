"""Next step: a change for which there was no room at once goes on (see move.py)."""

from __future__ import annotations

from eddyline.optimizer.situation import Proposal, Situation


def next_step(situation: Situation) -> Proposal | None:
    """The plan that the first step was taken for."""
    if situation.goal is None:
        return None
    return Proposal(situation.pricing.plan(situation.goal), situation.why)
