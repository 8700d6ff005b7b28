"""Undo: a plan that took more than the one before it, in its trial, is left again (see trials.py)."""

from __future__ import annotations

from dataclasses import replace

from eddyline.optimizer.situation import Proposal, Situation


def undo(situation: Situation) -> Proposal | None:
    """The plan before, at the cost that was measured for it."""
    trial = situation.lost_trial
    if trial is None:
        return None
    found = situation.pricing.plan(trial.old)
    took = f"takes {situation.cpu:.3g} of a core, and {trial.cpu:.3g} was enough before it"
    why = f"undone: {situation.why}, which {took}"
    return Proposal(replace(found, cost=replace(found.cost, cpu=trial.cpu)), why, sure=True)
