"""Trials of new plans: a plan that takes more CPU than the plan before it is left again.

A trial lasts a window, and at least some batches. Then the CPU of the plan is compared with that of the plan before, as
measured when it was left. If statistics have changed meanwhile, the trial decides nothing. A tree that lost is not
taken again until statistics have changed, and not for some windows; their number doubles with each loss. So a slot does
not alternate between plans, whatever the model predicts. A tree that wins a trial has its losses forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eddyline.codec import Snapshot
from eddyline.optimizer.shapes import canonical, tree_of_text, tree_text
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.plan.tree import Tree


@dataclass(frozen=True)
class Trial:
    """A plan that replaced another, which took this CPU. `began` is the start in seconds of event time; None before
    it."""

    old: Tree
    new: Tree
    cpu: float
    changes: int
    began: float | None = None
    batches: int = 0


@dataclass(frozen=True)
class TrialVerdict:
    """What came of a trial: the CPU of the plan before, as measured when it was left, and of the plan on trial now."""

    paid: bool | None
    """None: statistics have changed meanwhile, so nobody can tell."""
    before: float
    now: float

    @property
    def measured(self) -> dict[str, float]:
        """The numbers, by name."""
        return {"cpu before": self.before, "cpu": self.now}

    @property
    def why(self) -> str:
        """The reason, in words and numbers."""
        took = f"{self.now:.3g} of a core, {self.before:.3g} before the change"
        if self.paid is None:
            return f"it decides nothing, because the data has changed meanwhile: the plan takes {took}"
        return f"the plan {'stays' if self.paid else 'is left again'}: it takes {took}"


@dataclass(frozen=True)
class Lost:
    """How often a tree lost, and when it may be taken again: after the time `until`, and once statistics have changed
    more than `changes` times."""

    times: int
    until: float
    changes: int


class TrialSnapshot(Snapshot, frozen=True):
    """A trial, with trees as text."""

    old: str
    new: str
    cpu: float
    changes: int
    began: float | None
    batches: int


class LostSnapshot(Snapshot, frozen=True):
    """A tree that lost."""

    tree: str
    times: int
    until: float
    changes: int


class TrialsSnapshot(Snapshot, frozen=True):
    """The current trial, and the trees that lost one."""

    now: TrialSnapshot | None
    lost: tuple[LostSnapshot, ...]


class Trials:
    """The trials of one slot. The longest window is `longest` seconds."""

    def __init__(self, longest: float, tuning: OptimizerTuning = DEFAULT) -> None:
        self._longest, self._tuning = longest, tuning
        self.now: Trial | None = None
        self._lost: dict[Tree, Lost] = {}

    def begin(self, old: Tree, new: Tree, cpu: float, changes: int) -> None:
        """Prepare the trial of a plan that was taken; `changes` is how often statistics have changed so far."""
        self.now = Trial(canonical(old), canonical(new), cpu, changes) if cpu > 0.0 else None

    def new_plan(self, tree: Tree, time: float) -> None:
        """Start the trial if the slot has changed to the plan on trial; cancel it otherwise."""
        trial = self.now
        self.now = replace(trial, began=time) if trial is not None and trial.new == canonical(tree) else None

    def batch(self) -> None:
        """Count a batch."""
        if self.now is not None and self.now.began is not None:
            self.now = replace(self.now, batches=self.now.batches + 1)

    def due(self, time: float) -> bool:
        """Whether the trial is over."""
        trial, tuning = self.now, self._tuning
        if trial is None or trial.began is None:
            return False
        is_long = time - trial.began >= tuning.trial_windows * self._longest
        return is_long and trial.batches >= tuning.trial_batches

    def verdict(self, limit: float, cpu: float, time: float, changes: int) -> bool:
        """End the trial. Returns whether the plan lost: whether it takes more than `limit` times the CPU of the one
        before."""
        trial, self.now = self.now, None
        assert trial is not None
        if trial.changes != changes:
            return False
        before = self._lost.pop(trial.new, None)
        if cpu <= limit * trial.cpu:
            return False
        times = 1 if before is None else before.times + 1
        self._lost[trial.new] = Lost(times, time + self._tuning.rest * self._longest * 2.0 ** (times - 1), changes)
        return True

    def lost(self, tree: Tree, time: float, changes: int) -> bool:
        """Whether a tree must not be taken now because it lost a trial."""
        known = self._lost.get(canonical(tree))
        return known is not None and (time < known.until or changes <= known.changes)

    def saved(self) -> TrialsSnapshot:
        """A snapshot for another process."""
        lost = self._lost.items()
        return TrialsSnapshot(
            now=None if self.now is None else _saved(self.now),
            lost=tuple(LostSnapshot(tree_text(tree), k.times, k.until, k.changes) for tree, k in lost),
        )

    def restore(self, saved: TrialsSnapshot) -> None:
        """Restore from a snapshot."""
        self.now = None if saved.now is None else _restored(saved.now)
        self._lost = {tree_of_text(known.tree): Lost(known.times, known.until, known.changes) for known in saved.lost}


def _saved(trial: Trial) -> TrialSnapshot:
    old, new = tree_text(trial.old), tree_text(trial.new)
    return TrialSnapshot(old, new, trial.cpu, trial.changes, trial.began, trial.batches)


def _restored(saved: TrialSnapshot) -> Trial:
    old, new = tree_of_text(saved.old), tree_of_text(saved.new)
    return Trial(old, new, saved.cpu, saved.changes, saved.began, saved.batches)
