"""Random slot maps: before some batches, some partition groups move to other slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import Record

MOVE = 0.5
"""The share of batches before which groups move."""

done: Counter[str] = Counter()
"""The number of groups that moved, in this process."""


class RandomPlaces:
    """Draws the slot of each group before each batch."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def __call__(
        self, state: ManagerState, slot_map: SlotMap, ledger: Ledger, moves: Moves, records: Sequence[Record]
    ) -> tuple[SlotMap, ManagerState]:
        """The slot of each group in the next batch."""
        rng, share = self._rng, self._rng.choice([0.02, 0.3, 1.0])
        if rng.random() >= MOVE:
            return slot_map, state
        places = [rng.randrange(slot_map.slots) if rng.random() < share else p for p in slot_map.places.tolist()]
        done["moved"] += sum(new != old for new, old in zip(places, slot_map.places.tolist(), strict=True))
        return SlotMap.of(slot_map.slots, places), state
