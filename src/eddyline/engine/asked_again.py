"""Asked again: which tuples were there before a table was asked again.

A key may be asked again, after its lookup failed or after its answer was forgotten because it is old. Tuples that came
before that are dead, or were joined with the first answer. So the rows of the second answer join only tuples that came
later. A mark is such a moment, as the number of rows that each source had then. Answers are forgotten only when no
tuple waits, so all results of the rows before that mark are made.

A row of an answer is *grounded* in a tuple if it was asked for at no mark, or if another component of the tuple, which
is a row of a stream or is grounded itself, came after the mark at which it was asked for. A tuple is made if all its
rows are grounded. Two answers that came again cannot ground each other: their tuple with an old row of a stream was
made before, or is dead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eddyline.codec import Snapshot
from eddyline.routing.packet import Packet

Bools = NDArray[np.bool_]


class AskedAt(Snapshot, frozen=True):
    """Rows first..last-1 of a source were asked for at a mark."""

    first: int
    last: int
    mark: int


class AskedAgainSnapshot(Snapshot, frozen=True):
    """The marks, and the rows that were asked for at them."""

    counts: Mapping[int, tuple[int, ...]]
    rows: Mapping[int, tuple[AskedAt, ...]]
    newest: int
    base: int


@dataclass
class AskedAgain:
    """The marks that matter, and the rows that were asked for at each."""

    counts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By mark, the number of rows that each source had. There is none for mark 0, before which nothing came."""
    rows: dict[int, list[AskedAt]] = field(default_factory=dict)
    """By source, in order, the rows that were asked for at marks other than 0."""
    newest: int = 0
    """The last mark."""
    base: int = 0
    """The mark at which answers were last forgotten: any key that is asked after it may have been answered before."""

    def add(self, counts: Sequence[int]) -> int:
        """Sources have so many rows now, and something will be asked again; returns the mark."""
        self.newest += 1
        self.counts[self.newest] = tuple(counts)
        return self.newest

    def note(self, source: int, first: int, last: int, mark: int) -> None:
        """These rows were asked for at a mark."""
        if mark and last > first:
            self.rows.setdefault(source, []).append(AskedAt(first, last, mark))

    def own(self, packet: Packet) -> Packet:
        """The tuples all of whose rows are grounded."""
        marks = {source: self._of(source, packet.rows[source]) for source in self.rows}
        grounded = {source: mark == 0 for source, mark in marks.items()}
        while True:
            changed = False
            for source, mark in marks.items():
                found = grounded[source].copy()
                for number in np.unique(mark[~found]).tolist():
                    which = np.flatnonzero(~found & (mark == number))
                    found[which] = self._later(packet, which, self.counts[number], source, grounded)
                changed |= bool((found != grounded[source]).any())
                grounded[source] = found
            if not changed:
                break
        keep = np.ones(packet.size, np.bool_)
        for some in grounded.values():
            keep &= some
        return packet.kept(keep)

    def _of(self, source: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The marks at which rows were asked for."""
        known = self.rows[source]
        place = np.searchsorted([asked.first for asked in known], rows, side="right") - 1
        ends, marks = np.array([asked.last for asked in known]), np.array([asked.mark for asked in known])
        return np.where((place >= 0) & (rows < ends[place]), marks[place], 0)

    @staticmethod
    def _later(
        packet: Packet, which: NDArray[np.int64], counts: Sequence[int], but: int, grounded: Mapping[int, Bools]
    ) -> Bools:
        """Which of these tuples have a grounded component of another source that came after so many rows."""
        found = np.zeros(which.size, np.bool_)
        for source, rows in packet.rows.items():
            if source >= 0 and source != but:
                later = rows[which] >= counts[source]
                found |= later if source not in grounded else later & grounded[source][which]
        return found

    def prune(self, live: Mapping[int, int], asked: Collection[int]) -> None:
        """Drop what matters no longer: rows before the first that is live, by source, and marks at which nothing was
        asked for that is there or is still to come."""
        rows = {s: [some for some in of if some.last > live[s]] for s, of in self.rows.items()}
        self.rows = {source: some for source, some in rows.items() if some}
        used = {*asked, self.base, *(some.mark for of in self.rows.values() for some in of)}
        self.counts = {mark: counts for mark, counts in self.counts.items() if mark in used}

    def copy(self) -> AskedAgain:
        """A copy."""
        return AskedAgain(
            dict(self.counts), {source: list(of) for source, of in self.rows.items()}, self.newest, self.base
        )

    def saved(self) -> AskedAgainSnapshot:
        """A snapshot for another process."""
        return AskedAgainSnapshot(
            self.counts, {source: tuple(of) for source, of in self.rows.items()}, self.newest, self.base
        )

    @staticmethod
    def of(saved: AskedAgainSnapshot) -> AskedAgain:
        """From a snapshot."""
        return AskedAgain(
            dict(saved.counts), {source: list(of) for source, of in saved.rows.items()}, saved.newest, saved.base
        )
