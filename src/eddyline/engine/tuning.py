"""The numbers that tune a slot, including those of the packages below it. None of them changes a result.

A tuning is passed to a slot when it is made, and to everything that makes slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.migration.tuning import DEFAULT as MIGRATION
from eddyline.migration.tuning import MigrationTuning
from eddyline.optimizer.tuning import DEFAULT as OPTIMIZER
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.routing.tuning import DEFAULT as ROUTING
from eddyline.routing.tuning import RoutingTuning
from eddyline.state.tuning import DEFAULT as STATE
from eddyline.state.tuning import StateTuning


@dataclass(frozen=True)
class Tuning:
    """How a slot works; it does not change the results."""

    optimizer: OptimizerTuning = OPTIMIZER
    migration: MigrationTuning = MIGRATION
    routing: RoutingTuning = ROUTING
    state: StateTuning = STATE


DEFAULT = Tuning()
