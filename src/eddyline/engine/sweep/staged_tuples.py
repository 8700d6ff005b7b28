"""Tuples of a sweep that wait on disk for its next stage.

The next stage joins them with the rows of one more source, by a key; they wait in the order of the groups of that key.
Of each component they have what is still needed, and they have their origins. Tuples with and without a new component
wait apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.expr import Expr
from eddyline.engine.sweep.clean_up import Origin, ParkedTuples
from eddyline.engine.sweep.spill_file import Parked
from eddyline.plan.partition_groups import CODES, key_groups, within_group
from eddyline.plan.spill_axis import Follow
from eddyline.routing.packet import Packet
from eddyline.state.layout import Layout
from eddyline.state.stem import SteM
from eddyline.state.stores.store import TooMuchText

Ints = NDArray[np.int64]


class UnfinishedTuples:
    """Tuples that a source that follows is joined with."""

    def __init__(
        self, follow: Follow, groups: int, layouts: Mapping[int, Layout], folder: str | None, most: int, rows: int
    ) -> None:
        """`layouts` tell by source what is still needed of the rows of tuples. At most about `most` bytes are collected
        before they are parked, and so many `rows` are read at a time."""
        self._follow, self._groups, self._layouts, self._rows = follow, groups, layouts, rows
        self._columns = [(source, expr) for source, layout in layouts.items() for expr in layout.needed]
        self._counted = [source for source, layout in layouts.items() if layout.ordinal]
        self._parked = {new: Parked(folder, most) for new in (False, True)}

    def layouts(self, then: UnfinishedTuples | None) -> dict[int, Layout]:
        """What SteMs keep of the rows of tuples, which may wait again after the next stage."""
        if then is None:
            return dict(self._layouts)
        return {source: replace(layout, stored=layout.needed) for source, layout in self._layouts.items()}

    def add(self, stems: Sequence[SteM], packet: Packet, origin: Origin) -> None:
        """Tuples of rows in these SteMs."""
        try:
            arrays = [stems[source].rows.gather(expr, packet.rows[source]) for source, expr in self._columns]
        except TooMuchText:
            if packet.size < 2:
                raise
            for half in np.array_split(np.arange(packet.size), 2):
                self.add(stems, packet.take(half), origin.take(half))
            return
        groups = np.zeros(packet.size, np.int64)
        if self._follow.partner_on is not None:
            at = self._columns.index((self._follow.partner, self._follow.partner_on))
            groups = key_groups(arrays[at], self._groups)
        arrays += [pa.array(stems[source].rows.times.values[packet.rows[source]]) for source in self._layouts]
        arrays += [pa.array(stems[source].rows.ordinals(packet.rows[source])) for source in self._counted]
        arrays += [pa.array(numbers) for numbers in (origin.came, origin.left, origin.clean)]
        batch, new = pa.RecordBatch.from_arrays(arrays, [str(n) for n in range(len(arrays))]), origin.new
        for which in (False, True):
            if new.all() if which else not new.any():
                self._parked[which].add(batch, groups)
            elif (some := new == which).any():
                self._parked[which].add(batch.filter(pa.array(some)), groups[some])

    def finish(self) -> None:
        """No more tuples are added."""
        for parked in self._parked.values():
            parked.finish()

    def has(self, groups: Ints) -> bool:
        """Whether tuples of these groups, which are neighbours in order, wait."""
        return any(True for new in (False, True) for _ in self._batches(groups, new))

    def _batches(self, groups: Ints, new: bool) -> Iterator[pa.RecordBatch]:
        return self._parked[new].rows(int(groups[0]), int(groups[-1]) + 1)

    def tuples(self, groups: Ints, new: bool) -> Iterator[ParkedTuples]:
        """The tuples of these groups, which are neighbours in order, with or without a new component."""
        some, rows = list[pa.RecordBatch](), 0
        for batch in self._batches(groups, new):
            some.append(batch)
            rows += batch.num_rows
            if rows >= self._rows:
                yield from self._unparked(some)
                some, rows = [], 0
        if some:
            yield from self._unparked(some)

    def codes(self, groups: Ints) -> Iterator[NDArray[np.uint32]]:
        """Codes of the keys by which the next stage joins the tuples of these groups; there are such keys."""
        assert self._follow.partner_on is not None
        at = self._columns.index((self._follow.partner, self._follow.partner_on))
        for batch in (batch for new in (False, True) for batch in self._batches(groups, new)):
            yield within_group(key_groups(batch.column(at), self._groups * CODES), self._groups)

    def _unparked(self, some: Sequence[pa.RecordBatch]) -> Iterator[ParkedTuples]:
        table = pa.Table.from_batches(some).unify_dictionaries() if len(some) > 1 else pa.Table.from_batches(some)
        for batch in table.combine_chunks().to_batches(self._rows):
            yield self._tuples_of(batch)

    def _tuples_of(self, batch: pa.RecordBatch) -> ParkedTuples:
        values: dict[int, dict[Expr, pa.Array]] = {source: {} for source in self._layouts}
        for (source, expr), array in zip(self._columns, batch.columns, strict=False):
            values[source][expr] = array
        numbers = [column.to_numpy() for column in batch.columns[len(self._columns) :]]
        times, numbers = dict(zip(self._layouts, numbers, strict=False)), numbers[len(self._layouts) :]
        places, numbers = dict(zip(self._counted, numbers, strict=False)), numbers[len(self._counted) :]
        rows = {source: (values[source], times[source], places.get(source)) for source in self._layouts}
        return ParkedTuples(rows, Origin(*numbers))

    def close(self) -> None:
        """Give back the room on disk."""
        for parked in self._parked.values():
            parked.close()
