"""The ledger of the groups on disk: which left when, what is missing, and how long rows must be kept for that.

It is part of each commit, and is the same for all slots: a group leaves, and is swept, in all of them in the same
batch. So a job can go on with any number of slots.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from eddyline.engine.watermarks import Advanced
from eddyline.plan.bounds import FOREVER
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
    """How far slots had advanced when an epoch began: for those until which a group is clean, or in which it left
    last."""

    def begin(self, moves: Moves, advanced: Advanced) -> Ledger:
        """The ledger of a batch that begins with these moves, when slots have advanced so far."""
        if not moves:
            return self
        epoch = self.epoch + 1
        generations = self.generations.swept(moves.sweep, epoch).leave(moves.leave, epoch)
        return Ledger(epoch, generations, {**self.marks, epoch: advanced})._pruned()

    def settled(self, streams: Collection[str], horizon: Callable[[Advanced], Mapping[str, int]]) -> Ledger:
        """The ledger without groups that have no row on disk any more that could join with a row to come. Rows on disk
        are not newer than their stream was when the group left last; `horizon` says which are needed when slots have
        advanced so far. `streams` are those whose rows leave; rows of a table among them are needed for ever."""
        clean, needed = self.generations.clean, {epoch: horizon(mark) for epoch, mark in self.marks.items()}

        def gone(group: int, left: int) -> bool:
            if clean[group] < left:
                return False
            newest, since = self.marks[left].newest, needed[clean[group]]
            return all(since.get(stream, -FOREVER) > newest.get(stream, -FOREVER) for stream in streams)

        groups = tuple(group for group, left in self.generations.left.items() if gone(group, left[-1]))
        return replace(self, generations=self.generations.whole(groups))._pruned() if groups else self

    def _pruned(self) -> Ledger:
        used = {*self.generations.clean.values(), *(epochs[-1] for epochs in self.generations.left.values())}
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
