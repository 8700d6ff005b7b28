"""Undo: go back from a plan that took more CPU in its trial than the plan before it (see trials.py)."""

from __future__ import annotations

from dataclasses import replace

from eddyline.optimizer.situation import Proposal, Situation


def undo(situation: Situation) -> Proposal | None:
    """The plan before, with its measured cost."""
    trial = situation.lost_trial
    if trial is None:
        return None
    found = situation.pricing.plan(trial.old)
    took = f"takes {situation.cpu:.3g} of a core, and {trial.cpu:.3g} was enough before it"
    why = f"undone: {situation.why}, which {took}"
    return Proposal(replace(found, cost=replace(found.cost, cpu=trial.cpu)), why, sure=True)
