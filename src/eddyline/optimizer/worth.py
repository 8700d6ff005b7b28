"""Decides whether another plan is worth the change, and which way leads to it.

A plan is *better* if it takes less CPU by a good share, or if it is within the limits and the current plan is not. The
better plan is taken if three conditions hold. It saves more, while statistics stay the same, than the change costs;
this is not asked of a plan that keeps a limit. There is memory for both plans. The plan has not lost a trial. How long
statistics will stay the same is unknown: the model assumes as long as they have so far, and at least some windows.
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
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings

MICROS = 1e6


class Worth:
    """Judges plans of one query. Windows are in seconds; None if the life of a row does not end by time."""

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
        """Seconds that rows live: 0 for a table, None for a window in rows."""
        self._lateness = max((s.stream.lateness for s in sources if not s.stream.is_table), default=0) / MICROS
        self.limits = ResourceLimits(settings.cpu, None if settings.memory is None else float(settings.memory))
        self.trials = Trials(self._longest, tuning)

    def over(self, now: Cost, then: Cost) -> bool:
        """Whether the first cost is above a limit and the second is not."""
        return not self.limits.allow(now) and self.limits.allow(then)

    def is_better(self, now: Cost, then: Cost) -> bool:
        """Whether a plan is so much better that a change may pay."""
        return self.over(now, then) or then.cpu < (1.0 - self._tuning.gain) * now.cpu

    def lost(self, tree: Tree) -> bool:
        """Whether a tree was tried, lost, and must not be tried again yet."""
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
        """The reason why a better plan is not taken; empty if it is taken."""
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
        """End the trial; returns whether the plan on trial takes more CPU than the one before it did."""
        timing = self._timing
        return self.trials.verdict(1.0 / (1.0 - self._tuning.gain), timing.cpu, timing.seconds, timing.changes)
