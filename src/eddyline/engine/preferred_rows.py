"""Preferred rows come first: they are stored, and so built and joined, before the other rows of a batch, and the keys
that they ask for go first in the line of an access module.

Only the order of work changes. A query with a ROWS window, and one with execution=total, keeps the order of its rows,
and there only keys go first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, mask
from eddyline.bound.expr import Expr, columns_of
from eddyline.bound.model import BoundQuery
from eddyline.engine.split import Shipment
from eddyline.plan.judges import Judges
from eddyline.routing.asker import Gather
from eddyline.routing.packet import Packet, in_parts

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class PreferredRows:
    """Judges rows and tuples by one preference. `rank` is larger for a later preference, and above 0."""

    query: BoundQuery
    judges: Judges
    rank: int
    keeps_order: bool
    """Whether rows stay in their order."""

    def first(self, shipments: Iterable[Shipment]) -> Iterator[Shipment]:
        """The preferred rows of all shipments, then the others."""
        if self.keeps_order:
            yield from shipments
            return
        later: list[Shipment] = []
        for shipment in shipments:
            preferred = self._judged(shipment.stream, shipment.batch)
            if preferred.any():
                yield shipment if preferred.all() else _some(shipment, preferred)
            if not preferred.all():
                later.append(_some(shipment, ~preferred) if preferred.any() else shipment)
        yield from later

    def in_order(self, stream: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a stream or table, the preferred ones first."""
        preferred = self._judged(stream, batch)
        if self.keeps_order or preferred.all() or not preferred.any():
            return batch
        return batch.take(pa.array(np.argsort(~preferred, kind="stable")))

    def _judged(self, stream: str, batch: pa.RecordBatch) -> Bools:
        """Which rows are preferred, for one source at least that reads them."""
        found = np.zeros(batch.num_rows, np.bool_)
        for source, condition in self.judges.items():
            of = self.query.sources[source].stream
            if of.name == stream:
                columns: dict[Expr, pa.Array] = {column: batch.column(column.name) for column in columns_of(condition)}
                found |= mask(condition, columns, batch.num_rows, ErrorCount())
        return found

    def ranked(self, packet: Packet, gather: Gather) -> list[tuple[int, Packet]]:
        """The tuples that have a preferred row, if there are any, then the others; both with their rank."""

        def judged(some: Packet) -> Bools:
            found = np.zeros(some.size, np.bool_)
            for source, condition in self.judges.items():
                if source in some.rows:
                    found |= mask(condition, gather(some, [condition]), some.size, ErrorCount())
            return found

        preferred = np.concatenate(list(in_parts(packet, judged)))
        parts = (self.rank, preferred), (0, ~preferred)
        return [(rank, packet.kept(some)) for rank, some in parts if some.any()]


def _some(shipment: Shipment, which: Bools) -> Shipment:
    build = shipment.build
    if build is not None:
        build = {source: None if mine is None else mine[which] for source, mine in build.items()}
    return Shipment(shipment.stream, shipment.slot, shipment.batch.filter(pa.array(which)), build)
