"""The resizer: how many slots the next batch has, where `slots` is auto and executors come and go.

A job wants a slot for each core. It follows a number of cores that is the same after PATIENCE batches in a row, so an
executor that is lost and soon replaced changes nothing. More cores count only if there are clearly more; fewer always
do, because with more slots than cores turns wait for each other. The groups of slots that are gone, and those for new
slots, move between two batches as any other group does (docs/design/relocation.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from eddyline.balance.reports import Floats, Loads
from eddyline.balance.spread import spread
from eddyline.protocol.adapted import Adapted, AfterBatch, Placer
from eddyline.protocol.slot_reports import slot_reports
from eddyline.routing.decisions import Decision

Cores = Callable[[], int | None]
"""How many cores all executors have now; None if that is not known."""

PATIENCE = 3
"""Batches in a row after which there must be the same number of cores."""
FEWEST = 2
"""The fewest slots. With one slot rows have no places, so groups could not move to a second one again."""
CLEARLY = 1.1
"""How many times as many cores as slots there must be, so that slots are added."""
IDLE = 0.01
"""The weight of a group without load, as a share of the mean."""


class Resizer:
    """Decides the number of slots of one job. While it stays the same, another placer decides where groups are."""

    def __init__(self, cores: Cores, placer: Placer, patience: int = PATIENCE) -> None:
        self._cores, self._placer, self._patience = cores, placer, patience
        self._wanted, self._batches = 0, 0
        """The number of slots that was wanted after the last batches, and how many these were."""
        self._decisions: list[Decision] = []

    def __call__(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        """What is different in the next batch."""
        slot_map, cores = so_far.slot_map, self._cores()
        wanted = slot_map.slots if cores is None else max(FEWEST, min(cores, slot_map.groups))
        if slot_map.slots <= wanted < CLEARLY * slot_map.slots:
            wanted = slot_map.slots
        self._batches = self._batches + 1 if wanted == self._wanted else 1
        self._wanted = wanted
        if wanted == slot_map.slots or self._batches < self._patience:
            return self._placer(so_far, after)
        resized = spread(slot_map, wanted, _weight(so_far, after))
        moving = int((resized.places != slot_map.places).sum())
        what = f"{wanted} slots in place of {slot_map.slots}: {moving} groups move"
        why = f"executors have had {cores} cores after {self._batches} batches"
        measured = {"cores": float(cores or 0), "slots": float(wanted), "groups": float(moving)}
        self._decisions.append(Decision("slots", 0, what, why, measured))
        return replace(so_far, slot_map=resized)

    def decisions(self) -> list[Decision]:
        """The decisions since the last call."""
        found, self._decisions = self._decisions, []
        return found


def _weight(so_far: Adapted, after: AfterBatch) -> Floats:
    """By group its CPU."""
    slot_map = so_far.slot_map
    cpu = Loads.of(slot_reports(so_far, after), slot_map.slots, slot_map.groups).group_cpu
    mean = float(cpu.mean())
    return np.maximum(cpu, IDLE * mean) if mean > 0 else np.ones_like(cpu)
