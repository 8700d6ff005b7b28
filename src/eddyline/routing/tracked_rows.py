"""Tracked rows: which tuples of a slot are results of another slot, while partition groups are on a parallel track from
this slot to others (docs/design/relocation.md).

The slot has all rows of these groups. The receiver of a track has those that came since it began, so it makes the
results all of whose rows with a group are that *new*; this slot makes the others. A row is new if its number is at
least the one that its SteM had reached when the track began. Sources whose rows have no group do not count: every slot
has their rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.routing.packet import Packet
from eddyline.state.part import Part
from eddyline.state.rows import Rows

Ints = NDArray[np.int64]

_NO_ROW = np.iinfo(np.int64).max
"""The first new row of a group that is on no track."""


class TrackedRowsSnapshot(Snapshot, frozen=True):
    """By epoch that began with a track, the first new row of each source that counts."""

    begun: Mapping[int, Mapping[int, int]]


class TrackedRows(Part):
    """Tells new rows of groups on tracks from all others."""

    name, snapshot = "tracks", TrackedRowsSnapshot

    def __init__(self, rows: Mapping[int, Rows], groups: int) -> None:
        """`rows` are those of the sources whose rows are placed, in one of so many groups."""
        self._rows, self._groups = rows, groups
        self._begun: dict[int, dict[int, int]] = {}
        self._epochs: Mapping[int, int] = {}
        self._first: dict[int, Ints] = {}
        """By source the first new row of each group; empty if no group is on a track from this slot."""
        self._least: dict[int, int] = {}

    @property
    def on(self) -> bool:
        """Whether a group is on a track from this slot."""
        return bool(self._first)

    # Between two batches

    def begin(self, epoch: int) -> None:
        """Rows that are stored from now on came in this epoch or later."""
        self._begun.setdefault(epoch, {source: rows.stored for source, rows in self._rows.items()})

    def follow(self, epochs: Mapping[int, int]) -> None:
        """From now on these groups are on tracks from this slot, each since the epoch with which its track began."""
        self._epochs, used = epochs, set(epochs.values())
        self._begun = {epoch: first for epoch, first in self._begun.items() if epoch in used}
        self._first, self._least = {}, {}
        for source in self._rows if epochs else ():
            self._find_first(source)

    def _find_first(self, source: int) -> None:
        first = np.full(self._groups, _NO_ROW)
        first[list(self._epochs)] = [self._begun[epoch][source] for epoch in self._epochs.values()]
        self._first[source], self._least[source] = first, int(first.min())

    def renumber(self, source: int, kept: Ints, end: int) -> None:
        """Of the rows of a source only those with the numbers `kept` are left; their new numbers are the last ones
        before `end`, in the same order."""
        if source not in self._rows:
            return
        for first in self._begun.values():
            first[source] = end - kept.size + int(kept.searchsorted(first[source]))
        if self.on:
            self._find_first(source)

    # A batch

    def new(self, packet: Packet) -> NDArray[np.bool_]:
        """Which tuples have only new rows of groups on tracks, of the sources that count."""
        counted = [source for source in self._first if source in packet.rows]
        new = np.full(packet.size, bool(counted))
        for source in counted:
            new &= packet.rows[source] >= self._least[source]
        some = np.flatnonzero(new)
        if some.size:
            for source in counted:
                rows = packet.rows[source][some]
                new[some] &= rows >= self._first[source][self._rows[source].groups(rows)]
        return new

    def own(self, packet: Packet) -> Packet:
        """The complete tuples that are results of this slot."""
        return packet.kept(~self.new(packet))

    # Another process

    def saved(self) -> TrackedRowsSnapshot:
        """A snapshot for another process."""
        return TrackedRowsSnapshot(self._begun)

    def restore(self, saved: TrackedRowsSnapshot) -> None:
        """Restore from a snapshot; then `follow` tells the groups."""
        self._begun = {epoch: dict(first) for epoch, first in saved.begun.items()}
