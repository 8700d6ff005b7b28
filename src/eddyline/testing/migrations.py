"""Slots that change their plans at random: at once, by moving states, on a parallel track, or beginning and giving up.

In place of what the optimizer proposes, so it happens wherever a slot does it: in one process, in a simulation of the
batch protocol, with wind-back and crashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from eddyline.engine.slot import Slot
from eddyline.plan.grouped import refusal
from eddyline.testing.trees import GROUPED, random_tree

BEGIN, GIVE_UP = 0.6, 0.05
"""The shares of batches before which a migration is begun, if there is none, and given up, if there is one."""

done: Counter[str] = Counter()
"""Migrations that came to their end in this process, by how; and how many were begun to a plan that groups."""


@contextmanager
def migrations(seed: int | None) -> Iterator[None]:
    """As long as it lasts; None changes nothing."""
    if seed is None:
        yield
        return
    rng, before = Random(seed), Slot.replan

    def replan(slot: Slot) -> None:
        migration = slot.migration
        if migration is None:
            if len(slot.query.sources) > 1 and rng.random() < BEGIN:
                grouped = GROUPED if refusal(slot.query) is None else 0.0
                tree = random_tree(rng, len(slot.query.sources), slot.plan.edges, grouped=grouped)
                done["begun to a plan that groups"] += any(t.grouped for t in tree.below())
                how = rng.choice(["at once", "moving state", "moving state", "parallel track", "parallel track"])
                if how == "at once":
                    slot.set_plan(tree)
                    done[how] += 1
                else:
                    slot.migrate(tree, how == "parallel track")
        elif rng.random() < GIVE_UP:
            slot.give_up()
            done["given up"] += 1
        elif migration.is_ready:
            done["parallel track" if migration.parallel else "moving state"] += 1
            slot.change_plan()

    setattr(Slot, "replan", replan)  # noqa: B010
    try:
        yield
    finally:
        setattr(Slot, "replan", before)  # noqa: B010
