"""Slots that are forced to spill, at random, and a balancer that moves groups and forces slots whenever it may."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count
from random import Random

from eddyline.balance.decided import ForcedSpill
from eddyline.balance.tuning import BalanceTuning
from eddyline.protocol.adapted import Adapted, AfterBatch, Placer
from eddyline.protocol.balancer import Balancer, Force
from eddyline.protocol.ledger import Moves
from eddyline.protocol.record import Record
from eddyline.spill.policy import leaving

FORCE = 0.5
"""The share of batches before which a slot is forced to spill."""
LIMITS = (200, 1000, 5000)
"""Bytes that the eager balancer believes to be the memory of a slot."""
EAGER = BalanceTuning(
    interval=0.0,
    patience=1,
    rest=0.0,
    long_rest=0.0,
    trial_batches=1,
    memory_max=0.01,
    memory_min=0.5,
    cpu_max=0.0,
    hot=0.3,
    cool=0.2,
    larger=1.0,
    cool_patience=1,
    times=1.0,
)

done: Counter[str] = Counter()
"""The number of groups that were forced to leave, at random or by a balancer, in this process."""


class RandomForce:
    """Draws slots that are forced to spill, after another placer has decided."""

    def __init__(self, seed: int, first: Placer) -> None:
        self._rng, self._first = Random(f"force {seed}"), first

    def __call__(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        """The least productive groups of a slot leave; some of them stay out."""
        so_far, rng, cold = self._first(so_far, after), self._rng, after.ledger.generations.cold
        if rng.random() >= FORCE:
            return so_far
        moves, groups = so_far.moves, so_far.slot_map.groups
        tables = [record.spillable.table for record in after.slots]
        table, cooling = rng.choice([table for table in tables if table.size] or tables), rng.choice([0, 0.5, 1])
        table = table[table["group"] < groups]
        some = leaving("productivity", table, rng.choice([1, 200, 1 << 40]), groups)["group"].tolist()
        new = [group for group in some if group not in moves.leave]
        cool = [group for group in new if group not in cold and rng.random() < cooling]
        done["drawn"] += len(new)
        moves = replace(moves, leave=tuple(sorted((*moves.leave, *new))), cool=tuple(sorted((*moves.cool, *cool))))
        return replace(so_far, moves=moves)


def then_eagerly(seed: int, first: Placer, force: Force) -> Placer:
    """The decisions of a placer, and on top of them those of a balancer that moves groups and forces slots to spill
    whenever it may; `force` is the spiller's. As in a job, the balancer is not asked when the number of slots
    changes."""
    ticks = count(0.0, 1.0)

    def counted(moves: Moves, record: Record, spill: ForcedSpill) -> Moves:
        found = force(moves, record, spill)
        done["decided"] += len(found.leave) - len(moves.leave)
        return found

    limit = Random(f"balancer {seed}").choice(LIMITS)
    balancer = Balancer(limit, lambda: next(ticks), EAGER, "active-disk", counted)

    def placer(so_far: Adapted, after: AfterBatch) -> Adapted:
        found = first(so_far, after)
        return found if found.slot_map.slots != so_far.slot_map.slots else balancer(found, after)

    return placer
