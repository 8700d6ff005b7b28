"""The ledger of the groups on disk: which left when, what is missing, and how long rows must be kept for that.

It is part of each commit, and is the same for all slots: a group leaves, and is swept, in all of them in the same
batch. So a job can go on with any number of slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eddyline.engine.watermarks import Advanced
from eddyline.spill.generations import Generations


@dataclass(frozen=True)
class Moves:
    """What groups do before a batch: some are swept, then some leave memory."""

    leave: tuple[int, ...] = ()
    sweep: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.leave or self.sweep)


@dataclass(frozen=True)
class Ledger:
    """What is known of groups that have rows on disk."""

    epoch: int = 0
    """That of the rows of the batch (spill/generations.py)."""
    generations: Generations = field(default_factory=Generations)
    marks: Mapping[int, Advanced] = field(default_factory=dict)
    """For each epoch until which some group is clean: how far slots had advanced when it began."""

    def begin(self, moves: Moves, advanced: Advanced) -> Ledger:
        """The ledger of a batch that begins with these moves, when slots have advanced so far."""
        if not moves:
            return self
        epoch = self.epoch + 1
        generations = self.generations.swept(moves.sweep, epoch).leave(moves.leave, epoch)
        return Ledger(epoch, generations, {**self.marks, epoch: advanced})._pruned()

    def whole(self, groups: tuple[int, ...]) -> Ledger:
        """These groups have no row on disk any more that could join with anything."""
        return replace(self, generations=self.generations.whole(groups))._pruned() if groups else self

    def _pruned(self) -> Ledger:
        used = set(self.generations.clean.values())
        return replace(self, marks={epoch: mark for epoch, mark in self.marks.items() if epoch in used})

    @property
    def clean(self) -> int:
        """The epoch until which all groups are clean."""
        return min(self.generations.clean.values(), default=self.epoch)

    @property
    def held(self) -> Advanced | None:
        """How far slots had advanced when all groups were clean last: results of later rows may be missing. None if
        none is."""
        return self.marks.get(self.clean)
