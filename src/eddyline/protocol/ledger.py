"""The ledger of the groups on disk: which left when, what is missing, and how long rows must be kept for that.

It is part of each commit, and is the same for all slots: a group leaves, and is swept, in all of them in the same
batch. So a job can go on with any number of slots.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from eddyline.engine.watermarks import Advanced
from eddyline.plan.bounds import FOREVER
from eddyline.spill.generations import Generations

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Moves:
    """What groups do before a batch: some are swept, then some leave memory."""

    leave: tuple[int, ...] = ()
    sweep: tuple[int, ...] = ()
    cool: tuple[int, ...] = ()
    """Those that leave and stay out: their rows leave as they come (spill/generations.py)."""
    warm: tuple[int, ...] = ()
    """Cold ones whose rows stay in memory again, if all results that they are part of are swept."""

    def __bool__(self) -> bool:
        return bool(self.leave or self.sweep)


@dataclass(frozen=True)
class Released:
    """In which epochs rows came into memory, in a query with a ROWS window: a row comes when the query's watermark
    passes its time.

    >>> some = Released(until=9, marks=((3, None), (4, 5), (6, 5), (7, 8)))
    >>> some.came(np.array([4, 5, 7, 8])).tolist()
    [3, 6, 6, 7]
    """

    until: int
    """Rows from this time on still wait."""
    marks: tuple[tuple[int, int | None], ...]
    """Some epochs, in order, and the query's watermark when each began."""

    def came(self, times: Ints) -> Ints:
        """By row the last of these epochs that had begun when the row came, 0 if none had. The rows that come in an
        epoch are those from the watermark at its beginning up to, and without, that at its end."""
        epochs = np.array([0, *(epoch for epoch, _ in self.marks)])
        began = np.array([-FOREVER if used is None else used for _, used in self.marks], np.int64)
        found: Ints = epochs[began.searchsorted(times, side="right")]
        return found

    def wait(self, times: Ints) -> NDArray[np.bool_]:
        """Which rows still wait."""
        return times >= self.until


@dataclass(frozen=True)
class Ledger:
    """What is known of groups that have rows on disk."""

    epoch: int = 0
    """That of the rows of the batch (spill/generations.py)."""
    generations: Generations = field(default_factory=Generations)
    marks: Mapping[int, Advanced] = field(default_factory=dict)
    """How far slots had advanced when an epoch began: for those until which a group is clean, or in which it left."""

    def begin(self, moves: Moves, advanced: Advanced, leading: int, tracks: bool = False) -> Ledger:
        """The ledger of a batch that begins with these moves, or with parallel `tracks`, when slots have advanced so
        far. Groups below `leading` lead (plan/spill_axis.py)."""
        if not moves and not tracks:
            return self
        epoch = self.epoch + 1
        generations = self.generations.swept(moves.sweep, epoch).warm(moves.warm, epoch)
        generations = generations.leave(moves.leave, epoch, leading).cool(moves.cool)
        return Ledger(epoch, generations, {**self.marks, epoch: advanced})._pruned()

    def settled(
        self,
        streams: Callable[[int], Collection[str]],
        horizon: Callable[[Advanced, Advanced | None], Mapping[str, int]],
        leading: int,
    ) -> Ledger:
        """The ledger without groups that have no row on disk any more that could join with anything. Rows on disk are
        not newer than their streams (`streams` of a group) were when the group left last. By the `horizon`
        (`Home.horizon`) a row of a leading group is needed while a row to come may join with it, once all earlier
        results are made; a row of another group also while a result with it may be missing. Rows of a table are needed
        for ever."""
        needed = {epoch: horizon(self.marks[epoch], None) for epoch in set(self.generations.clean.values())}
        all_clean, held = self.clean, {} if self.held is None else horizon(self.held, self.held)

        def whole(group: int, left: int) -> bool:
            if group in self.generations.cold:
                return False
            clean = self.generations.clean.get(group, all_clean)
            since, newest = needed[clean] if group < leading else held, self.marks[left].newest
            gone = (since.get(stream, -FOREVER) > newest.get(stream, -FOREVER) for stream in streams(group))
            return clean >= left and all(gone)

        groups = [group for group, left in self.generations.left.items() if whole(group, left[-1])]
        return replace(self, generations=self.generations.whole(groups, leading))._pruned() if groups else self

    def _pruned(self) -> Ledger:
        left = (epoch for epochs in self.generations.left.values() for epoch in epochs)
        used = {*self.generations.clean.values(), *left}
        return replace(self, marks={epoch: mark for epoch, mark in self.marks.items() if epoch in used})

    def released(self, until: int | None) -> Released:
        """In which epochs rows came, if rows wait for the query's watermark, which is `until`."""
        marks = tuple(sorted((epoch, mark.used) for epoch, mark in self.marks.items()))
        return Released(-FOREVER if until is None else until, marks)

    @property
    def clean(self) -> int:
        """The epoch until which all groups are clean."""
        return min(self.generations.clean.values(), default=self.epoch)

    @property
    def held(self) -> Advanced | None:
        """How far slots had advanced when all groups were clean last: results of later rows may be missing. None if
        none is."""
        return self.marks.get(self.clean)
