"""A plan source that changes plans at random: at once, by moving state, on a parallel track, or with a migration that
is given up.

Tests pass it to the slots that they make: in one process, and in a simulation of the batch protocol with wind-back and
crashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from eddyline.engine.estimate import Estimate
from eddyline.engine.finished_batch import FinishedBatch
from eddyline.engine.plan_source import How, MakePlanSource, NewPlan, PlanSource, Running
from eddyline.engine.planner import plan_source
from eddyline.engine.planner_snapshot import PlannerSnapshot
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.grouped import refusal
from eddyline.plan.plan import Plan
from eddyline.settings import Settings
from lab.fuzz.trees import GROUPED, random_tree

BEGIN, GIVE_UP = 0.6, 0.05
"""The shares of batches before which a migration is begun, if there is none, and given up, if there is one."""
WAYS: tuple[How, ...] = ("at once", "moving state", "moving state", "parallel track", "parallel track")

done: Counter[str] = Counter()
"""The number of migrations completed in this process, by strategy, and of those begun to a plan that groups."""


class RandomPlans(PlanSource):
    """Proposes random plans in place of another plan source, which still watches the slot."""

    def __init__(self, rng: Random, other: PlanSource) -> None:
        self._rng, self._other = rng, other

    def next_plan(self, running: Running) -> NewPlan | None:
        plan, moving, rng = running.plan, running.migration, self._rng
        if moving is not None:
            if rng.random() < GIVE_UP:
                done["given up"] += 1
                return NewPlan(plan.tree, "at once")
            if moving.is_ready:
                done["parallel track" if moving.parallel else "moving state"] += 1
            return None
        sources = len(plan.query.sources)
        if sources < 2 or rng.random() >= BEGIN:
            return None
        tree = random_tree(rng, sources, plan.edges, grouped=GROUPED if refusal(plan.query) is None else 0.0)
        done["begun to a plan that groups"] += any(t.grouped for t in tree.below())
        how = rng.choice(WAYS)
        done["at once"] += how == "at once"
        return NewPlan(tree, how)

    def watch(self, running: Running, batch: FinishedBatch) -> None:
        self._other.watch(running, batch)

    def changed(self, running: Running) -> None:
        self._other.changed(running)

    def estimate(self, running: Running) -> Estimate | None:
        return self._other.estimate(running)

    def saved(self) -> PlannerSnapshot | None:
        saved: PlannerSnapshot | None = self._other.saved()
        return saved

    def restore(self, saved: PlannerSnapshot) -> None:
        self._other.restore(saved)


def random_plans(seed: int | None) -> MakePlanSource:
    """A factory for the plan sources of slots, which share one random generator; without a seed, the factory of the
    settings."""
    if seed is None:
        return plan_source
    rng = Random(seed)

    def make(plan: Plan, settings: Settings, clock: Callable[[], float], tuning: OptimizerTuning) -> PlanSource:
        return RandomPlans(rng, plan_source(plan, settings, clock, tuning))

    return make
