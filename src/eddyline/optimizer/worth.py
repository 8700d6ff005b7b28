"""Whether another plan is worth the change, and which way leads there.

A plan is *better* that takes less CPU by a good share, or that is within the limits where the current plan is not.
The better plan is taken if it saves more, while statistics stay as they are, than the change takes (a limit does not
ask for that), if there is room for both plans, and if the plan did not lose a trial. How long statistics stay is not
known: the model assumes as long as they have stayed so far, and some windows at least.
"""

from __future__ import annotations

from math import inf

from eddyline.bound.model import WindowKind
from eddyline.optimizer.move import Move, MoveConditions, choose_move
from eddyline.optimizer.plans import Cost, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.timing import Timing
from eddyline.optimizer.trials import Trials
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree
from eddyline.settings import Settings, size_text

MICROS = 1e6


class Worth:
    """Of the plans of one query; windows are seconds, None where they are not what ends the life of a row."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        timing: Timing,
        windows: list[float | None],
        tuning: OptimizerTuning = DEFAULT,
    ) -> None:
        sources, self._settings, self._timing, self._tuning = plan.query.sources, settings, timing, tuning
        self._longest = max((w for w in windows if w is not None), default=0.0)
        self._lives = [
            0.0 if s.stream.is_table else None if s.window.kind is WindowKind.ROWS else window or inf
            for s, window in zip(sources, windows, strict=True)
        ]
        """Seconds, 0 for a table, None where rows are counted."""
        self._lateness = max((s.stream.lateness for s in sources if not s.stream.is_table), default=0) / MICROS
        self.limits = ResourceLimits(settings.cpu, None if settings.memory is None else float(settings.memory))
        self.trials = Trials(self._longest, tuning)

    def over(self, now: Cost, then: Cost) -> bool:
        """Whether a plan is above a limit and another is not."""
        return not self.limits.allow(now) and self.limits.allow(then)

    def is_better(self, now: Cost, then: Cost) -> bool:
        """Whether it is worth asking what a change takes."""
        return self.over(now, then) or then.cpu < (1.0 - self._tuning.gain) * now.cpu

    def lost(self, tree: Tree) -> bool:
        """Whether it was tried, and is not to be tried again yet."""
        return self.trials.lost(tree, self._timing.seconds, self._timing.changes)

    def move(self, pricing: Pricing, old: Tree, new: Tree) -> Move:
        """The way to another plan."""
        settings, timing = self._settings, self._timing
        pause = None if settings.pause_ms is None else settings.pause_ms / 1000.0
        lives = [
            (source.rows / source.rate if source.rate else 0.0) if life is None else life
            for life, source in zip(self._lives, pricing.model.workload.sources, strict=True)
        ]
        used = timing.cpu, float(timing.held), self.limits.memory
        return choose_move(pricing, old, new, MoveConditions(settings.migration, *used, lives, self._lateness, pause))

    def refused(self, now: Cost, then: Cost, tree: Tree, move: Move) -> str:
        """Why a better plan is not taken; empty if it is."""
        timing, costs, limit = self._timing, move.predicted, self.limits.memory
        if self._settings.migration == "off":
            return "migration=off"
        if self.lost(tree):
            return "it was worse when it was tried"
        if limit is not None and now.memory <= limit and costs.bytes > max(0.0, limit - timing.held):
            return f"no room for {size_text(int(costs.bytes))} beside the {size_text(timing.held)} that are held"
        horizon = max(self._tuning.stable * self._longest, timing.stable)
        saved = (now.cpu - then.cpu) * max(0.0, horizon - costs.duration)
        if not self.over(now, then) and saved < self._tuning.back * costs.seconds:
            return f"the change takes {costs.seconds:.3g} s of CPU and would save {saved:.3g} s in {horizon:.3g} s"
        return ""

    def verdict(self) -> bool:
        """Whether the plan on trial, which is over, takes more than the one before it did."""
        timing = self._timing
        return self.trials.verdict(1.0 / (1.0 - self._tuning.gain), timing.cpu, timing.seconds, timing.changes)
