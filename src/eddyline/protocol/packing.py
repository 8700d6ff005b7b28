"""The packer, which does the split in a task: chunks of a stream in, parcels for slots out.

A task sends its counts and its late and dead rows to one slot. That slot adds the counts to its record and stages the
rows, so a task needs no other way to the driver. A task sends the newest time of each stream to every slot. So all
slots compute the same watermarks after the batch, and emit the results that these release in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from eddyline.engine.split import Shipment
from eddyline.engine.tally import FilePlace, Tally
from eddyline.faults import reach
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.home import Home
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.parcel import CountsHead, Parcel, RejectedHead, of_shipment

REASON = "reason of death"
"""The last column of rows that the split found dead. Rows that a source could not read bring a column of their own."""

Packed = tuple[int, Parcel]
"""A slot, and a parcel for it."""


class Packer:
    """Packs the rows of one task; `finish` packs the counts."""

    def __init__(
        self, home: Home, decision: BatchDecision, task: int, pack: Callable[[Shipment], Parcel] = of_shipment
    ) -> None:
        """`pack` is `Parcel` if the slots are in this process."""
        self._home, self._decision, self._slot, self._pack = home, decision, task % decision.slots, pack
        home.place(decision.slot_map)
        self._watermarks = home.watermarks(decision.watermarks)
        self._newest: dict[str, int] = {}
        self._tally = Tally(self._watermarks)
        self._errors = home.split.errors.count

    def at(self, place: FilePlace | None) -> None:
        """Tell that the next rows come from the file with this place in the order of files; None: from no file."""
        self._tally.at(place)

    def rows(self, stream: str, batch: pa.RecordBatch) -> Iterator[Packed]:
        """Pack readable rows of a stream or of a table."""
        split = self._home.split
        if split.streams[stream].is_table:
            self._tally.loaded(stream, batch.num_rows)
            yield from ((s.slot, self._pack(s)) for s in split.split_table(stream, batch))
            return
        found = split.split(stream, batch, self._watermarks.late_before(stream), self._tally.newest(stream))
        self._tally.split(stream, found)
        if found.newest is not None:
            self._newest[stream] = max(found.newest, self._newest.get(stream, found.newest))
        for shipment in found.shipments:
            yield shipment.slot, self._pack(shipment)
        if found.late.num_rows:
            yield self._slot, Parcel(RejectedHead(Outlet("late", stream)), found.late)
        if found.dead.num_rows:
            dead = found.dead.append_column(pa.field(REASON, pa.string()), found.reasons)
            yield self._slot, Parcel(RejectedHead(Outlet("dead", stream)), dead)

    def dead(self, stream: str, batch: pa.RecordBatch) -> Iterator[Packed]:
        """Pack rows that the source could not read, as text with their reasons."""
        self._tally.unreadable(stream, batch.num_rows, batch.column(-1)[0].as_py())
        yield self._slot, Parcel(RejectedHead(Outlet("dead", stream)), batch)

    def finish(self) -> Iterator[Packed]:
        """Pack the counts and the newest times."""
        reach("split: everything is packed")
        counts = replace(self._tally.counts, expression_errors=self._home.split.errors.count - self._errors)
        for slot in range(self._decision.slots):
            if slot == self._slot:
                sketch = self._home.split.sketch
                keys = () if sketch is None else sketch.take()
                yield slot, Parcel(CountsHead(self._newest, counts, self._tally.spans, keys))
            elif self._newest:
                yield slot, Parcel(CountsHead(self._newest))
