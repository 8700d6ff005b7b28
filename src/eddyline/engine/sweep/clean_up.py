"""Clean-up: joins rows that come from the log, slice by slice, in an eddy of its own.

The SteMs of a slice are new ones, in an arena that is given back when the slice is done. The eddy stays, and with it
what it has learned. Each tuple is made once, by its last built component, as in any eddy. What is known of a result
(`Origin`) follows from its components, so the rule of `Generations` tells whether the result is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.expr import Expr
from eddyline.engine.gatherer import Gatherer
from eddyline.engine.slot import Slot
from eddyline.plan.plan import Plan
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet
from eddyline.routing.rows_windows import PlacesInWindow
from eddyline.routing.scope import Scope
from eddyline.state.arena import Arena
from eddyline.state.layout import Layout
from eddyline.state.stem import SteM

Ints = NDArray[np.int64]

_MOST = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Origin:
    """By tuple the last epoch in which a component came, the first in which one left memory, and the epoch until which
    its group is clean (spill/generations.py), as small numbers: there is one for each row of a slice."""

    came: NDArray[np.int32]
    left: NDArray[np.int32]
    clean: NDArray[np.int32]
    """Of a row of a source that follows it is the largest number: the rows that lead know it."""

    @staticmethod
    def of(came: Ints, left: Ints, clean: Ints) -> Origin:
        """That of rows with these epochs."""
        return Origin(*(np.minimum(epochs, _MOST).astype(np.int32) for epochs in (came, left, clean)))

    @property
    def new(self) -> NDArray[np.bool_]:
        """Which tuples have a component that came since their group was clean."""
        return self.came >= self.clean

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which results are missing."""
        return (self.came >= self.left) & self.new

    def take(self, which: Ints | NDArray[np.bool_] | slice) -> Origin:
        """Those of some tuples."""
        return Origin(self.came[which], self.left[which], self.clean[which])


def _one_after_the_other(parts: Sequence[Origin]) -> Origin:
    return Origin(*(np.concatenate([getattr(part, n) for part in parts]) for n in ("came", "left", "clean")))


@dataclass(frozen=True)
class JoinedRows:
    """Rows of one source: what a SteM keeps of them, and their origins."""

    values: Mapping[Expr, pa.Array]
    times: Ints
    origin: Origin
    places: Ints | None = None
    """Those in their stream, for a source with a ROWS window."""

    def only(self, which: NDArray[np.bool_]) -> JoinedRows:
        """Some of the rows."""
        if which.all():
            return self
        mask = pa.array(which)
        values = {expr: array.filter(mask) for expr, array in self.values.items()}
        places = None if self.places is None else self.places[which]
        return JoinedRows(values, self.times[which], self.origin.take(which), places)


@dataclass(frozen=True)
class ParkedTuples:
    """Tuples of several sources: by source what SteMs keep of their rows, the times of these and, if it has a ROWS
    window, their places; and the origins of the tuples."""

    rows: Mapping[int, tuple[Mapping[Expr, pa.Array], Ints, Ints | None]]
    origin: Origin


Park = Callable[[Sequence[SteM], Packet, Origin], None]
"""(SteMs by source, tuples, their origins): the tuples wait for the next stage of the sweep."""


class CleanUp:
    """Joins the rows of some sources, one slice after the other."""

    def __init__(
        self,
        slot: Slot,
        plan: Plan,
        layouts: Mapping[int, Layout],
        rows_windows: Mapping[int, PlacesInWindow],
        park: Park | None,
        rows: int,
    ) -> None:
        """The sources are those with layouts: all of an operator of the plan, or a single one. `park` takes their
        tuples; without it they are results, and the missing ones of them go to those of the slot. So many `rows` are
        built before the eddy runs."""
        self._slot, self._plan, self._layouts, self._park, self._rows = slot, plan, layouts, park, rows
        self._origins: dict[int, list[Origin]] = {}
        self._arena = Arena(tuning=slot.tuning.state)
        self._empty = SteM(self._arena, Layout(False, False, (), (), (), ()))
        self.stems = [self._empty for _ in plan.query.sources]
        span = frozenset((sum(1 << source for source in layouts),))
        rest = slot.executor.eddy.clock, Scope(given=span, operators=span), slot.tuning.routing
        self._eddy = Eddy(plan, self.stems, rows_windows, slot.settings, slot.errors, self._complete, *rest)
        self._gatherer = Gatherer(self._gather, slot.results, self.stems, slot.tuning.engine.result_rows)
        self.results = 0
        """The missing results that were made."""

    def begin(self, sources: Collection[int]) -> None:
        """These sources get new SteMs; the rows that they had are gone."""
        arena = Arena(tuning=self._slot.tuning.state)
        for source in sources:
            self.stems[source] = SteM(arena, self._layouts[source])
            self._origins.pop(source, None)
        self._eddy.enter(self._eddy.scope)

    def end(self) -> None:
        """Everything is joined. Let go of all rows: otherwise their memory would wait until Python looks for cycles of
        objects."""
        self._flush()
        self.stems[:] = [self._empty] * len(self.stems)
        self._origins.clear()
        self._eddy.enter(self._eddy.scope)

    def close(self) -> None:
        """There are no more slices."""
        self.stems.clear()
        self._eddy.close()
        self._arena.close()

    def store(self, source: int, *parts: JoinedRows) -> None:
        """Store rows; they are not built yet."""
        for rows in parts:
            if rows.times.size:
                self.stems[source].rows.append(rows.values, rows.times, rows.places)
            self._origins.setdefault(source, []).append(rows.origin)

    def build(self, source: int) -> None:
        """Build the stored rows of a source; they do not probe."""
        rows = self.stems[source].waiting
        self.stems[source].build(self._eddy.number, rows)
        self._eddy.number += rows

    def feed(self, source: int) -> None:
        """Build the stored rows of a source, and let them probe."""
        while left := self.stems[source].waiting:
            self._eddy.build(source, min(left, self._rows))
            self._eddy.run()

    def pass_on(self, source: int) -> None:
        """The stored rows of the only source are the tuples."""
        rows = np.arange(self.stems[source].rows.stored)
        if rows.size:
            self._complete(Packet({source: rows}, (1 << source, 0), np.zeros(1, np.int64), rows.size))

    def probe(self, tuples: ParkedTuples) -> None:
        """Let tuples of several sources probe the others."""
        sources, number, size = list(tuples.rows), self._eddy.number, tuples.origin.came.size
        self.begin(sources)
        for source, of_source in tuples.rows.items():
            self.stems[source].rows.append(*of_source)
            self.stems[source].build(number, size)
        self._origins[sources[0]] = [tuples.origin]
        span = sum(1 << source for source in sources)
        signature = span, self._plan.done[span] if len(sources) > 1 else 0
        self._eddy.begin(Packet(dict.fromkeys(sources, np.arange(size)), signature, np.array([number]), size))
        self._eddy.number += size
        self._flush()

    def _flush(self) -> None:
        self._eddy.flush()
        self._gatherer.flush()

    def _complete(self, packet: Packet) -> None:
        for parts in self._origins.values():
            if len(parts) > 1:
                parts[:] = [_one_after_the_other(parts)]
        (rows, origin), *others = ((packet.rows[source], parts[0]) for source, parts in self._origins.items())
        found = origin.take(rows)
        for rows, origin in others:
            np.maximum(found.came, origin.came[rows], out=found.came)
            np.minimum(found.left, origin.left[rows], out=found.left)
            np.minimum(found.clean, origin.clean[rows], out=found.clean)
        if self._park is not None:
            self._park(self.stems, packet, found)
        elif count := int(np.count_nonzero(missing := found.missing)):
            self.results += count
            self._gatherer.add(packet.kept(missing))

    def _gather(self, packet: Packet) -> dict[Expr, pa.Array]:
        return self._eddy.gather(packet, self._plan.gathered)
