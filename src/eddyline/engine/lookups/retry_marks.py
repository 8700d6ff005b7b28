"""Asked again: which tuples were there before a table was asked again.

A key may be asked again, after its lookup failed or after its answer was forgotten because it is old. Tuples that came
before that are dead, or were joined with the first answer. So the rows of the second answer join only tuples that came
later. A *mark* is such a moment. It is always the beginning of a batch, and is named by the number of that batch, so it
means the same after the state was rebuilt from the log, which tells in which batch each row came. In memory a mark is
the number of rows that each source had then. Answers are forgotten before a batch, and only when no tuple waits, so all
results of the rows before that mark are made. The mark of a failure is the end of its batch.

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
from eddyline.plan.bounds import FOREVER
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
    base: int
    watermarks: Mapping[int, int]


@dataclass
class AskedAgain:
    """The marks that matter, and the rows that were asked for at each."""

    counts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By mark, the number of rows that each source had. There is none for mark 0, before which nothing came, and none
    for the end of the batch that goes on."""
    rows: dict[int, list[AskedAt]] = field(default_factory=dict)
    """By source, in order, the rows that were asked for at marks other than 0."""
    base: int = 0
    """The mark at which answers were last forgotten: any key that is asked after it may have been answered before."""
    watermarks: dict[int, int] = field(default_factory=dict)
    """By mark, the query's watermark then. In a query with a ROWS window rows come when the watermark passes them."""

    def forget(self, batch: int, counts: Sequence[int], watermark: int | None) -> None:
        """Answers are forgotten before a batch, when sources have so many rows."""
        self.base, self.counts[batch], self.watermarks[batch] = batch, tuple(counts), _known(watermark)

    def load(self, batch: int, counts: Sequence[int]) -> None:
        """The rows of a batch are loaded next; so many came before, of sources whose rows do not wait."""
        self.counts[batch] = tuple(counts)

    def released(self, by_source: Mapping[int, Sequence[int]], counts: Sequence[int]) -> None:
        """All rows are loaded, so many. By source whose rows wait for the watermark, the number of those that came
        before each mark of `watermarks`, in order."""
        if not by_source:
            return
        known = {mark: list(self._at(mark, counts)) for mark in sorted(self.watermarks)}
        for source, of_marks in by_source.items():
            for before, number in zip(known.values(), of_marks, strict=True):
                before[source] = number
        self.counts = {mark: tuple(before) for mark, before in known.items()}

    def note(self, source: int, first: int, last: int, mark: int) -> None:
        """These rows were asked for at a mark."""
        if mark and last > first:
            self.rows.setdefault(source, []).append(AskedAt(first, last, mark))

    def own(self, packet: Packet) -> Packet:
        """The tuples all of whose rows are grounded. Those of a partial result lack some sources."""
        marks = {source: self._of(source, packet.rows[source]) for source in self.rows if source in packet.rows}
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

    def end(
        self, counts: Sequence[int], watermark: int | None, live: Mapping[int, int], asked: Collection[int]
    ) -> None:
        """Sources have so many rows when a batch ends. Keep what matters: rows from the first one on that is live, by
        source, and the marks at which something was asked for that is there or is still to come."""
        rows = {s: [some for some in of if some.last > live[s]] for s, of in self.rows.items()}
        self.rows = {source: some for source, some in rows.items() if some}
        used = {*asked, self.base, *(some.mark for of in self.rows.values() for some in of)} - {0}
        self.counts = {mark: self._at(mark, counts) for mark in used}
        self.watermarks = {mark: self.watermarks.get(mark, _known(watermark)) for mark in used}

    def passed(self, live: Mapping[int, int]) -> int:
        """The last mark before which no row of a stream came that is live; by stream, its first live row. Each tuple
        has a row of a stream, so all tuples to come have one that came after it."""
        marks = (mark for mark, counts in self.counts.items() if all(counts[s] <= first for s, first in live.items()))
        return max(marks, default=0)

    def _at(self, mark: int, counts: Sequence[int]) -> tuple[int, ...]:
        """The number of rows that each source had at a mark. One of which nothing is known is as the next one: no row
        came in between. After the last one that is known there are as many rows as now."""
        later = [known for known in self.counts if known >= mark]
        return self.counts[min(later)] if later else tuple(counts)

    def copy(self) -> AskedAgain:
        """A copy."""
        return AskedAgain.of(self.saved())

    def saved(self) -> AskedAgainSnapshot:
        """A snapshot for another process."""
        rows = {source: tuple(of) for source, of in self.rows.items()}
        return AskedAgainSnapshot(dict(self.counts), rows, self.base, dict(self.watermarks))

    @staticmethod
    def of(saved: AskedAgainSnapshot) -> AskedAgain:
        """From a snapshot."""
        rows = {source: list(of) for source, of in saved.rows.items()}
        return AskedAgain(dict(saved.counts), rows, saved.base, dict(saved.watermarks))


def _known(watermark: int | None) -> int:
    """A watermark as a time: rows below it came before."""
    return -FOREVER if watermark is None else watermark
