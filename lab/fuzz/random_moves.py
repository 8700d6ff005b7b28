"""Random moves of partition groups: some leave memory, some of these stay out, some that have left are swept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from eddyline.balance.slot_map import SlotMap
from eddyline.engine.watermarks import Advanced
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import Record
from eddyline.spill.policy import POLICIES

LEAVE, SWEEP, WARM = 0.7, 0.3, 0.3
"""The shares of batches before which groups leave and are swept, and of cold groups that get warm then."""

done: Counter[str] = Counter()
"""The number of groups that left, were swept, got cold, and were whole again, in this process."""


class RandomMoves:
    """Draws the moves before each batch."""

    def __init__(self, rng: Random, groups: int) -> None:
        self._rng, self._groups, self._cool = rng, groups, rng.choice([0, 0.5, 1])

    def __call__(
        self, ledger: Ledger, advanced: Advanced, records: Sequence[Record], logged: int, slot_map: SlotMap | None
    ) -> Moves:
        rng, out = self._rng, list(ledger.generations.clean)
        share = rng.choice([0.1, 0.5, 1.0])
        leave = [g for g in range(self._groups) if rng.random() < share] if rng.random() < LEAVE else []
        some = rng.choice([len(out), rng.randint(1, len(out))]) if out else 0
        sweep = rng.sample(out, some) if rng.random() < SWEEP else []
        cool = [g for g in leave if g not in ledger.generations.cold and rng.random() < self._cool]
        warm = [g for g in ledger.generations.cold if rng.random() < WARM]
        done["left"] += len(leave)
        done["swept"] += len(sweep)
        done["cooled"] += len(cool)
        return Moves(tuple(leave), tuple(sorted(sweep)), tuple(cool), tuple(warm))


def little_memory(seed: int) -> dict[str, Any]:
    """Settings with which groups leave memory because there is little of it."""
    rng = Random(f"memory {seed}")
    return {
        "memory": rng.choice([1, 500, 2000, 5000]),
        "spill_policy": rng.choice(list(POLICIES)),
        "spill_share": rng.choice([0.1, 0.3, 1.0]),
        "spill_delay": rng.choice([None, None, 1e-6, 1.0, 60.0]),
    }


def random_moves(seed: int | None, groups: int = 256) -> RandomMoves | None:
    """Moves of this seed; None without one."""
    return None if seed is None else RandomMoves(Random(f"moves {seed}"), groups)
