"""The snapshot of a planner, for another process."""

from __future__ import annotations

from eddyline.codec import Snapshot
from eddyline.optimizer.optimizer import OptimizerSnapshot

Probes = dict[tuple[int, int], tuple[int, int]]
"""By (span, span of the SteM): tuples that probes took in and made."""
Selections = dict[int, tuple[int, int, float]]
"""By number: tuples that selections took in and let through, and the seconds that they took."""


class PlannerSnapshot(Snapshot, frozen=True):
    """The counts of a planner, and what its optimizer learned."""

    optimizer: OptimizerSnapshot
    rows: tuple[int, ...]
    probes: Probes
    selections: Selections
    slices: int
