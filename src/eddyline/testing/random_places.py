"""Random slot maps: before some batches, some partition groups move to other slots."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from eddyline.balance.slot_map import SlotMap
from eddyline.protocol.adapted import Adapted, AfterBatch

MOVE = 0.5
"""The share of batches before which groups move."""

done: Counter[str] = Counter()
"""The number of groups that moved, in this process."""


class RandomPlaces:
    """Draws the slot of each group before each batch."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def __call__(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        """The slot of each group in the next batch."""
        rng, share, slot_map = self._rng, self._rng.choice([0.02, 0.3, 1.0]), so_far.slot_map
        if rng.random() >= MOVE:
            return so_far
        places = [rng.randrange(slot_map.slots) if rng.random() < share else p for p in slot_map.places.tolist()]
        done["moved"] += sum(new != old for new, old in zip(places, slot_map.places.tolist(), strict=True))
        return replace(so_far, slot_map=SlotMap.of(slot_map.slots, places))
