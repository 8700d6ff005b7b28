"""The split as a process of its own does it: chunks of a stream in, parcels for slots out.

Counts go to one slot, which tells them on; late and dead rows go to the slot whose turn it is, which stages them. So a
task needs no way to the driver but its rows. The newest time of each stream goes to every slot: together they say what
the watermarks are after the batch, so every slot gives what these release in the batch itself, and all agree.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eddyline.counts import Counts
from eddyline.engine.tally import FilePlace, Tally
from eddyline.faults import reach
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.home import Home
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.parcel import CountsHead, Parcel, RejectedHead, of_shipment

REASON = "reason of death"
"""The last column of rows that the split found dead; those that a source could not read have one of their own."""

Packed = tuple[int, Parcel]
"""A slot, and a parcel for it."""


class Packer:
    """Packs the rows of one task; `finish` has the counts."""

    def __init__(self, home: Home, decision: BatchDecision, task: int) -> None:
        self._home, self._decision, self._slot = home, decision, task % decision.slots
        self._watermarks = home.watermarks(decision.watermarks)
        self._newest: dict[str, int] = {}
        self._tally = Tally(self._watermarks)
        self._errors = home.split.errors.count

    def at(self, place: FilePlace | None) -> None:
        """The next rows are those of a file, which has this place in the order of files."""
        self._tally.at(place)

    def rows(self, stream: str, batch: pa.RecordBatch) -> Iterator[Packed]:
        """Readable rows of a stream, or of a table."""
        split = self._home.split
        if split.streams[stream].is_table:
            self._tally.loaded(stream, batch.num_rows)
            yield from ((s.slot, of_shipment(s)) for s in split.split_table(stream, batch))
            return
        found = split.split(stream, batch, self._watermarks.late_before(stream), self._tally.newest(stream))
        self._tally.split(stream, found)
        if found.newest is not None:
            self._newest[stream] = max(found.newest, self._newest.get(stream, found.newest))
        for shipment in found.shipments:
            yield shipment.slot, of_shipment(shipment)
        if found.late.num_rows:
            yield self._slot, Parcel(RejectedHead(Outlet("late", stream)), found.late)
        if found.dead.num_rows:
            dead = found.dead.append_column(pa.field(REASON, pa.string()), found.reasons)
            yield self._slot, Parcel(RejectedHead(Outlet("dead", stream)), dead)

    def dead(self, stream: str, batch: pa.RecordBatch) -> Iterator[Packed]:
        """Rows that the source could not read, as text with their reasons."""
        self._tally.unreadable(stream, batch.num_rows, batch.column(-1)[0].as_py())
        yield self._slot, Parcel(RejectedHead(Outlet("dead", stream)), batch)

    def finish(self) -> Iterator[Packed]:
        """What was counted, and the newest times."""
        reach("split: everything is packed")
        counts = self._tally.counts + Counts(expression_errors=self._home.split.errors.count - self._errors)
        for slot in range(self._decision.slots):
            if slot == self._slot:
                yield slot, Parcel(CountsHead(self._newest, counts, self._tally.spans))
            elif self._newest:
                yield slot, Parcel(CountsHead(self._newest))
