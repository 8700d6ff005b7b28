"""The plan source of a slot, which decides the plan.

Between a commit and the next batch, a slot asks its plan source whether to change the plan; after every batch it
reports the work of the plan. The plan source only reads: the executor changes the plan. There are three plan sources:
the planner with the optimizer (planner.py), a plan that the user fixed, and random plans for tests
(lab/fuzz/random_plans.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from eddyline.engine.estimate import Estimate
from eddyline.engine.finished_batch import FinishedBatch
from eddyline.engine.planner_snapshot import PlannerSnapshot
from eddyline.migration.migration import Migration
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree
from eddyline.routing.eddy import Eddy
from eddyline.settings import Settings
from eddyline.state.part import Part
from eddyline.state.stem import SteM

How = Literal["at once", "moving state", "parallel track"]
"""How a plan is changed: at once, however long that takes, or by a migration while batches go on."""


@dataclass(frozen=True)
class NewPlan:
    """The plan to which a slot should change. If it is the current plan, a migration to another plan is given up."""

    tree: Tree
    how: How
    predicted: Mapping[str, float] = field(default_factory=dict)
    """The optimizer's predictions for the change (optimizer/migration_costs.py)."""


class Running(Protocol):
    """The part of a slot (Executor) that a plan source sees: the current plan at work."""

    @property
    def plan(self) -> Plan: ...

    @property
    def stems(self) -> Sequence[SteM]:
        """The SteMs of the sources, then the intermediate ones."""

    @property
    def built(self) -> list[int]:
        """Rows of each source that were built."""

    @property
    def eddy(self) -> Eddy: ...

    @property
    def migration(self) -> Migration | None:
        """The migration to another plan, if one is under way."""


class PlanSource(Part):
    """Decides which plan a slot runs; this one never wants another."""

    name, snapshot = "planner", PlannerSnapshot

    def next_plan(self, running: Running) -> NewPlan | None:
        """Between a commit and the next batch: the plan to change to. None: the current plan stays, or a migration
        under way continues."""
        return None

    def watch(self, running: Running, batch: FinishedBatch) -> None:
        """Take a finished batch into account."""

    def changed(self, running: Running) -> None:
        """Tell that the plan was changed, or that its state was loaded: the last measurements do not describe the
        current plan."""

    def estimate(self, running: Running) -> Estimate | None:
        """The estimate for the current plan; None if there is none."""
        return None


MakePlanSource = Callable[[Plan, Settings, Callable[[], float], OptimizerTuning], PlanSource]
"""Makes the plan source of a slot from its first plan, the settings, a clock of CPU seconds, and the tuning of the
optimizer."""


class FixedPlan(PlanSource):
    """The plan that the user fixed; None stands for the plan that the slot has already."""

    def __init__(self, tree: Tree | None, how: How = "moving state") -> None:
        """`how` is for a slot whose saved state has another plan."""
        self._tree, self._how = tree, how

    def next_plan(self, running: Running) -> NewPlan | None:
        moving = running.migration
        course = running.plan.tree if moving is None else moving.plan.tree
        return None if self._tree in (None, course) else NewPlan(self._tree, self._how)


def how_asked(settings: Settings, parallel: bool) -> How:
    """How a plan is changed by a strategy; at once if results may be held back as long as that takes."""
    if settings.pause_ms is None:
        return "at once"
    return "parallel track" if parallel else "moving state"
