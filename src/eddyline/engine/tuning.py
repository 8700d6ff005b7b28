"""The numbers that a slot can be tuned by, those of the packages below it included. None of them changes a result.

A tuning is passed to a slot when it is made, and to whatever makes slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.migration.tuning import DEFAULT as MIGRATION
from eddyline.migration.tuning import MigrationTuning
from eddyline.optimizer.tuning import DEFAULT as OPTIMIZER
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.state.tuning import DEFAULT as STATE
from eddyline.state.tuning import StateTuning


@dataclass(frozen=True)
class Tuning:
    """How a slot works, but not what it gives."""

    optimizer: OptimizerTuning = OPTIMIZER
    migration: MigrationTuning = MIGRATION
    state: StateTuning = STATE


DEFAULT = Tuning()
