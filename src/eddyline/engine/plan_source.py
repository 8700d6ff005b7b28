"""Where the plans of a slot come from.

A slot asks its plan source between a commit and the next batch whether to change the plan, and tells it after every
batch what the plan did. The plan source only reads: the executor changes the plan. There are three of them: the planner
with the optimizer (planner.py), a plan that the user fixed, and random plans for tests (testing/random_plans.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from eddyline.engine.estimate import Estimate
from eddyline.engine.planner_snapshot import PlannerSnapshot
from eddyline.migration.migration import Migration
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree
from eddyline.routing.eddy import Eddy
from eddyline.settings import Settings
from eddyline.state.stem import SteM

How = Literal["at once", "moving state", "parallel track"]
"""How a plan is changed: at once, however long that takes, or by a migration while batches go on."""


@dataclass(frozen=True)
class NewPlan:
    """The plan that a slot is to change to; its current plan ends a migration to another."""

    tree: Tree
    how: How
    predicted: Mapping[str, float] = field(default_factory=dict)
    """The optimizer's predictions for the change (optimizer/migration_costs.py)."""


class Running(Protocol):
    """What a plan source sees of a slot (Executor): the current plan at work."""

    @property
    def plan(self) -> Plan: ...

    @property
    def stems(self) -> Sequence[SteM]:
        """Those of the sources, then the intermediate ones."""

    @property
    def eddy(self) -> Eddy: ...

    @property
    def migration(self) -> Migration | None:
        """To another plan, while it goes on."""


class PlanSource(Protocol):
    """Decides which plan a slot runs."""

    def next_plan(self, running: Running) -> NewPlan | None:
        """Between a commit and the next batch: the plan to change to. With None the current plan stays or, if there is
        a migration, that goes on."""

    def watch(self, running: Running, watermarks: Mapping[str, int | None], held: int, seconds: float) -> None:
        """A batch went through. The slot then held `held` bytes, and the batch took `seconds` CPU seconds."""

    def changed(self, running: Running) -> None:
        """The plan was changed, or its state was loaded: what was done last says nothing of the current plan."""

    def estimate(self, running: Running) -> Estimate | None:
        """What is believed of the current plan, if there is anything."""

    def saved(self) -> PlannerSnapshot | None:
        """What was learned, for another process."""

    def restore(self, saved: PlannerSnapshot | None) -> None:
        """Restore what another process learned; None if its plan source learned nothing."""


MakePlanSource = Callable[[Plan, Settings, Callable[[], float], OptimizerTuning], PlanSource]
"""Makes the plan source of a slot from its first plan, the settings, a clock that tells CPU seconds, and the tuning of
the optimizer."""


class FixedPlan:
    """The plan that the user fixed; None stands for the plan that the slot has."""

    def __init__(self, tree: Tree | None, how: How = "moving state") -> None:
        """`how` is for a slot whose state was left under another plan."""
        self._tree, self._how = tree, how

    def next_plan(self, running: Running) -> NewPlan | None:
        moving = running.migration
        course = running.plan.tree if moving is None else moving.plan.tree
        return None if self._tree in (None, course) else NewPlan(self._tree, self._how)

    def watch(self, running: Running, watermarks: Mapping[str, int | None], held: int, seconds: float) -> None:
        pass

    def changed(self, running: Running) -> None:
        pass

    def estimate(self, running: Running) -> Estimate | None:
        return None

    def saved(self) -> None:
        return None

    def restore(self, saved: PlannerSnapshot | None) -> None:
        pass


def how_asked(settings: Settings, parallel: bool) -> How:
    """By which strategy a plan is changed; at once if results may be held back as long as it takes."""
    if settings.pause_ms is None:
        return "at once"
    return "parallel track" if parallel else "moving state"
