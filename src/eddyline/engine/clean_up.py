"""Clean-up: the results that are missing because rows were on disk when others came.

Rows of some groups come from the log into SteMs of their own, beside views of SteMs whose rows are all in memory, and
go round an eddy of their own. Rows that were there when the group was last clean are built first, without probing:
what they have among themselves is known. Each result is made once, by its last built component, as in any eddy, and
given if it is missing by the rule of `Generations`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Expr
from eddyline.engine.gatherer import Gatherer
from eddyline.engine.slot import Slot
from eddyline.plan.plan import plan_of
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet
from eddyline.spill.generations import NEVER, Generations
from eddyline.state.arena import Arena
from eddyline.state.stem import SteM
from eddyline.state.view import View

Ints = NDArray[np.int64]

SLICE = 1 << 16
"""Rows that are built before the eddy runs."""

ROW_BYTES = 96
"""Bytes of a row in a clean-up beside its values: times, groups, epochs, codes of keys, indexes."""


@dataclass(frozen=True)
class RowsFromLog:
    """What a SteM keeps of rows of one source, their groups, the epochs in which they came, and their sub-partitions
    (sweep.py)."""

    values: Mapping[Expr, pa.Array]
    times: Ints
    groups: Ints
    came: Ints
    parts: Ints

    def only(self, which: NDArray[np.bool_]) -> RowsFromLog:
        """Some of the rows."""
        if which.all():
            return self
        mask = pa.array(which)
        values = {expr: array.filter(mask) for expr, array in self.values.items()}
        return RowsFromLog(values, *(part[which] for part in self._numbers))

    def slice(self, first: int, last: int) -> RowsFromLog:
        """Rows first..last-1."""
        values = {expr: array.slice(first, last - first) for expr, array in self.values.items()}
        return RowsFromLog(values, *(part[first:last] for part in self._numbers))

    @property
    def _numbers(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.times, self.groups, self.came, self.parts

    @property
    def nbytes(self) -> int:
        """About the bytes that a clean-up needs for them: the values are here and in a SteM, until all are stored."""
        values: int = sum(array.nbytes for array in self.values.values())
        return 2 * values + ROW_BYTES * self.times.size


class CleanUp:
    """Makes the missing results of some groups of a slot."""

    def __init__(
        self,
        slot: Slot,
        generations: Generations,
        read: Collection[int],
        relieve: Callable[[], None] = lambda: None,
    ) -> None:
        """`read` are the sources whose rows come from the log; those of the others are all in memory. `relieve` is
        called when there may be many results."""
        executor = slot.executor
        assert executor.spill_axis is not None
        self._axis, self._read = executor.spill_axis, read
        self._slot, self._generations, self._relieve = slot, generations, relieve
        self._plan, self._arena = plan_of(slot.query), Arena(tuning=slot.tuning.state)
        self._sources = range(len(slot.query.sources))
        self._stems = [self._stem(source) for source in self._sources]
        clock = executor.eddy.clock
        self._eddy = Eddy(self._plan, self._stems, {}, slot.settings, ErrorCount(), self._complete, clock)
        self._gatherer = Gatherer(self._gather, slot.results, self._stems, slot.tuning.engine.result_rows)
        self._came = {s: self._epochs_in_memory(s) for s in self._sources if s not in read}
        self.results = 0
        """The missing results that were made."""
        self._left: dict[int, Ints] = {}
        self._clean: Ints = np.empty(0, np.int64)

    def _stem(self, source: int) -> SteM | View:
        stem, layout = self._slot.executor.stems[source], self._plan.layouts[source]
        if source in self._read:
            return SteM(self._arena, layout)
        return View(self._arena, stem, layout.indexes, stem.rows.min_live, fed=True)

    def _epochs_in_memory(self, source: int) -> Ints:
        """The epoch of each row of a source whose rows are all in memory, from its first live row on."""
        stem, epochs = self._slot.executor.stems[source], self._slot.executor.epochs
        rows = np.arange(stem.rows.min_live, stem.built)
        firsts = np.array([epoch.first[source] for epoch in epochs], np.int64)
        numbers = np.array([-1, *(epoch.number for epoch in epochs)], np.int64)
        found: Ints = numbers[firsts.searchsorted(rows, side="right")]
        return found

    def run(self, given: Mapping[int, Sequence[RowsFromLog]], groups: Ints) -> None:
        """Rows of these groups, on disk and in memory, are given for each source that leads, and rows of others whose
        rows come from the log; the missing results that have rows of these alone go to those of the slot."""
        new: list[tuple[int, int]] = []
        since = min(self._generations.clean[g] for g in groups.tolist())
        for source, parts in given.items():
            new.append((source, self._store(source, parts, since)))
        for source in self._sources:
            if source not in given:
                came = self._came[source]
                known = int(np.count_nonzero(came < since))  # they came in this order
                self._stems[source].build(0, known)
                self._stems[source].commit()
                new.append((source, came.size - known))
        for source, count in new:
            self._feed(source, count)
        self._eddy.flush()
        self._gatherer.flush()

    def close(self) -> None:
        """Let go of the rows: otherwise their memory would wait until Python looks for cycles of objects. The clean-up
        cannot be used any more."""
        self._eddy.close()
        self._stems.clear()
        self._arena.close()
        self._came.clear()
        self._left.clear()
        self._clean = np.empty(0, np.int64)

    def _feed(self, source: int, count: int) -> None:
        stem = self._stems[source]
        while count:
            now = min(count, SLICE)
            if isinstance(stem, View):
                self._eddy.start(stem, (1 << source, 0), now)
            else:
                self._eddy.build(source, now)
            self._eddy.run()
            self._relieve()
            count -= now

    def _store(self, source: int, parts: Sequence[RowsFromLog], since: int) -> int:
        """Store rows, those first that were there when their group was last clean, and build those; returns how many
        others there are. Of a source that follows, those that came before the epoch `since`, in which the first of the
        groups was clean."""
        stem, past, leads = self._stems[source], 0, self._axis.has(source)
        came: list[Ints] = []
        left: list[Ints] = []
        clean: list[Ints] = []
        for new in (False, True):
            for part in parts:
                clean_at = self._generations.clean_of(part.groups) if leads else since
                some = part.only((part.came >= clean_at) == new)
                if some.times.size:
                    stem.rows.append(some.values, some.times, None)
                    came.append(some.came)
                    left.append(self._generations.left_at(some.groups, some.came))
                    clean.append(self._generations.clean_of(some.groups))
            if not new:
                past = stem.rows.stored
                stem.build(0, past)
                stem.commit()
        nothing = np.empty(0, np.int64)
        self._came[source] = np.concatenate([nothing, *came])
        self._left[source] = np.concatenate([nothing, *left])
        if leads:
            self._clean, self._placed = np.concatenate([nothing, *clean]), source
        return stem.rows.stored - past

    def _complete(self, packet: Packet) -> None:
        came, left = np.zeros(packet.size, np.int64), np.full(packet.size, NEVER)
        for source in self._sources:
            rows = packet.rows[source]
            first = self._stems[source].prober.first
            np.maximum(came, self._came[source][rows - first], out=came)
            if source in self._left:
                np.minimum(left, self._left[source][rows], out=left)
        clean = self._clean[packet.rows[self._placed]]
        missing = (came >= left) & (came >= clean)
        if found := int(np.count_nonzero(missing)):
            self.results += found
            self._gatherer.add(packet.kept(missing))

    def _gather(self, packet: Packet) -> dict[Expr, pa.Array]:
        return self._eddy.gather(packet, self._plan.gathered)
