"""Plans that were taken are on trial: one that takes more CPU than the plan before it is left again.

A trial lasts a window, and some batches. What the plan takes then is compared with what the one before took when it was
left, if statistics are what they were; if they are not, nothing can be said. A tree that lost is not taken again until
statistics have changed, and for some windows, twice as many each time: whatever the model believes, a slot does not go
to and fro. One that won its trial is as good as any other again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eddyline.codec import Snapshot
from eddyline.optimizer.shapes import canonical, tree_of_text, tree_text
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.plan.tree import Tree


@dataclass(frozen=True)
class Trial:
    """A plan in place of another, which took this CPU; `began` is when, in seconds of event time, None before."""

    old: Tree
    new: Tree
    cpu: float
    changes: int
    began: float | None = None
    batches: int = 0


@dataclass(frozen=True)
class Lost:
    """How often a tree lost, and when it may be taken again: after this time, and once statistics have changed more
    often than this."""

    times: int
    until: float
    changes: int


class TrialSnapshot(Snapshot, frozen=True):
    """A trial; trees are texts."""

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
    """Of one slot; windows are `longest` seconds."""

    def __init__(self, longest: float, tuning: OptimizerTuning = DEFAULT) -> None:
        self._longest, self._tuning = longest, tuning
        self.now: Trial | None = None
        self._lost: dict[Tree, Lost] = {}

    def begin(self, old: Tree, new: Tree, cpu: float, changes: int) -> None:
        """Another plan was taken; `changes` is how often statistics have changed so far."""
        self.now = Trial(canonical(old), canonical(new), cpu, changes) if cpu > 0.0 else None

    def new_plan(self, tree: Tree, time: float) -> None:
        """The plan has been changed."""
        trial = self.now
        self.now = replace(trial, began=time) if trial is not None and trial.new == canonical(tree) else None

    def batch(self) -> None:
        """One more went through."""
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
        """Whether, in the trial that is over, the plan takes more than `limit` times what the one before took."""
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
        """Whether a tree is not to be taken now."""
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
        """Continue from a snapshot."""
        self.now = None if saved.now is None else _restored(saved.now)
        self._lost = {tree_of_text(known.tree): Lost(known.times, known.until, known.changes) for known in saved.lost}


def _saved(trial: Trial) -> TrialSnapshot:
    old, new = tree_text(trial.old), tree_text(trial.new)
    return TrialSnapshot(old, new, trial.cpu, trial.changes, trial.began, trial.batches)


def _restored(saved: TrialSnapshot) -> Trial:
    old, new = tree_of_text(saved.old), tree_of_text(saved.new)
    return Trial(old, new, saved.cpu, saved.changes, saved.began, saved.batches)
