"""Generations: which rows of a partition group are on disk, and which results are still missing.

Time is divided into *epochs*: a new one begins with each batch before which a group leaves memory or is swept. A row
comes in one epoch. If its group leaves memory at the beginning of a later epoch, the row is on disk from then on; what
comes to the group afterwards is its next generation. While a group is *cold*, its rows leave as they come: they are
logged and nothing else. Groups of the sources that lead are numbered first; results are swept by them (`SpillAxis`,
plan/spill_axis.py).

The rule (docs/design/spill.md): a result is made while running if and only if all its components were in memory when
the last of them came,

    max(came) < min(left)

A sweep of the group at the beginning of epoch `clean` made all the others whose components had come before it. So a
result is still missing if and only if

    max(came) >= min(left)  and  max(came) >= clean
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
"""The epoch at which rows leave that are in memory."""

_EPOCHS = 1 << 40
"""More epochs than there will ever be: a group and an epoch make one number."""


@dataclass(frozen=True)
class Generations:
    """When the groups that have rows on disk left memory, and until when they are clean.

    >>> some = Generations({7: (3, 5)}, {7: 3})
    >>> some.left_at(np.array([7, 7, 7, 8]), np.array([2, 4, 5, 0])).tolist() == [3, 5, NEVER, NEVER]
    True
    >>> some.cool((7,)).left_at(np.array([7, 7, 7]), np.array([4, 5, 6])).tolist()
    [5, 5, 6]
    """

    left: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By group the epochs at whose beginning it left memory, in order."""
    clean: Mapping[int, int] = field(default_factory=dict)
    """By leading group: all results are made whose components came before this epoch."""
    cold: Mapping[int, int] = field(default_factory=dict)
    """By cold group the epoch since which it is cold: it left memory then."""

    @cached_property
    def _moments(self) -> Ints:
        """The groups and the epochs at which they left, as one number each, in order."""
        return np.array(sorted(g * _EPOCHS + e for g, epochs in self.left.items() for e in epochs), np.int64)

    @cached_property
    def _clean_epochs(self) -> Ints:
        """By group until when it is clean; the last element is for groups that never left."""
        epochs = np.full(max(self.clean, default=-1) + 2, NEVER)
        epochs[list(self.clean)] = list(self.clean.values())
        return epochs

    @cached_property
    def _cold_since(self) -> Ints:
        """By group since when it is cold; the last element is for groups that are not."""
        epochs = np.full(max(self.cold, default=-1) + 2, NEVER)
        epochs[list(self.cold)] = list(self.cold.values())
        return epochs

    def left_at(self, groups: Ints, came: Ints) -> Ints:
        """The epoch in which each row left memory, by its group and the epoch in which it came."""
        since = self._cold_since
        warm = came < since[np.minimum(groups, since.size - 1)]
        if warm.all():
            return self._left_later(groups, came)
        left = came.copy()
        left[warm] = self._left_later(groups[warm], came[warm])
        return left

    def _left_later(self, groups: Ints, came: Ints) -> Ints:
        """The same for rows that came into memory."""
        moments = self._moments
        if not moments.size or not groups.size:
            return np.full(groups.size, NEVER)
        at = moments.searchsorted(groups * _EPOCHS + came, side="right")
        found = moments[np.minimum(at, moments.size - 1)]
        here = (at < moments.size) & (found // _EPOCHS == groups)
        return np.where(here, found % _EPOCHS, NEVER)

    def is_cold(self, groups: Ints) -> NDArray[np.bool_]:
        """Which of these groups are cold."""
        since = self._cold_since
        here: NDArray[np.bool_] = since[np.minimum(groups, since.size - 1)] != NEVER
        return here

    def clean_of(self, groups: Ints) -> Ints:
        """By row the epoch until which its group is clean. A group that never left misses nothing."""
        epochs = self._clean_epochs
        found: Ints = epochs[np.minimum(groups, epochs.size - 1)]
        return found

    def on_disk(self, groups: Ints, came: Ints) -> NDArray[np.bool_]:
        """Which rows are on disk now, by their groups and the epochs in which they came."""
        if not self.left:
            return np.zeros(groups.size, np.bool_)
        here: NDArray[np.bool_] = self.left_at(groups, came) != NEVER
        return here

    def leave(self, groups: tuple[int, ...], epoch: int, leading: int) -> Generations:
        """These groups leave memory at the beginning of an epoch; groups below `leading` lead. A leading group that was
        clean of itself is clean until then: from now on it may miss results, if it leaves, or if another source's rows
        leave."""
        groups = tuple(g for g in groups if g not in self.cold)  # nothing of a cold group is in memory
        left = {**self.left, **{g: (*self.left.get(g, ()), epoch) for g in groups}}
        affected = groups if max(groups, default=0) < leading else range(leading)
        return replace(self, left=left, clean={**dict.fromkeys(affected, epoch), **self.clean})

    def cool(self, groups: Iterable[int]) -> Generations:
        """These groups, which have left memory, stay out: their rows leave as they come."""
        return replace(self, cold={**{g: self.left[g][-1] for g in groups}, **self.cold})

    def warm(self, groups: Iterable[int], epoch: int) -> Generations:
        """The rows of these groups stay in memory from an epoch on, at whose beginning all results that may have a row
        of them were swept; of others they do not. All earlier rows of them left before: which of them left when does
        not matter any more, because their results are made."""
        clean = min(self.clean.values(), default=epoch)
        ready = [g for g in groups if g in self.cold and self.clean.get(g, clean) == epoch]
        cold = {g: since for g, since in self.cold.items() if g not in ready}
        return replace(self, left={**self.left, **dict.fromkeys(ready, (epoch,))}, cold=cold)

    def swept(self, groups: tuple[int, ...], epoch: int) -> Generations:
        """All results of these leading groups are made whose components came before an epoch. Of the times at which a
        group left, the last one before all of its results are clean matters, and those after it."""
        clean = {**self.clean, **dict.fromkeys(groups, epoch)}
        least = min(clean.values(), default=epoch)

        def kept(group: int, epochs: tuple[int, ...]) -> tuple[int, ...]:
            done = sum(e <= clean.get(group, least) for e in epochs)
            return epochs[max(0, done - 1) :]

        return replace(self, left={g: kept(g, epochs) for g, epochs in self.left.items()}, clean=clean)

    def whole(self, groups: Collection[int], leading: int) -> Generations:
        """These groups have no row on disk any more that could join with anything. Groups that lead and never left are
        clean of themselves when all others are whole."""
        left = {g: epochs for g, epochs in self.left.items() if g not in groups}
        follow = any(g >= leading for g in left)
        return replace(self, left=left, clean={g: epoch for g, epoch in self.clean.items() if g in left or follow})
