"""The reports of slots, as the distribution manager wants them (balance/reports.py), from their records of a batch.

Bytes on disk are estimated: the log has the rows that are in memory and those that are only on disk. Their difference
is shared out over the groups that have rows on disk, so the reports of all slots add up to it.

Rows that wait in the sources are a backlog if they are at least as many as the batch had: otherwise the next batch
takes all of them.
"""

from __future__ import annotations

import numpy as np

from eddyline.balance.reports import Floats, SlotReport, group_loads, shared_cpu
from eddyline.balance.slot_map import SlotMap
from eddyline.protocol.adapted import Adapted, AfterBatch, spilling_slots
from eddyline.protocol.record import Record
from eddyline.spill.accounts import KEPT

ROW_BYTES = 100
"""Bytes of a row in memory, where no row is there to tell."""
A_BATCH = (1 - KEPT) / KEPT
"""Results of a batch over decayed results, where as many come in each batch."""


def slot_reports(so_far: Adapted, after: AfterBatch, copies: float = 1.0) -> list[SlotReport]:
    """The reports of all slots after a batch, when these moves are decided. `copies` is how often a row of the log is
    in memory, if it is: a query may read a stream several times."""
    slot_map, slots, backlog = so_far.slot_map, after.slots, after.pressure.backlog
    spilling, disk = spilling_slots(so_far.moves, slot_map), on_disk(slot_map, after, copies)
    if backlog * len(slots) < sum(record.rows_in for record in slots):
        backlog = 0
    return [_report(r, slot_map, bool(spilling[r.slot]), disk[r.slot], backlog) for r in slots]


def _report(record: Record, slot_map: SlotMap, spilling: bool, disk: float, backlog: int) -> SlotReport:
    """The report of a slot about its groups. Those that are on a parallel track from it are the receiver's."""
    table = record.spillable.table
    table = table[table["group"] < slot_map.groups]
    cpu = shared_cpu(record.cpu, table["arrived"], table["results"])
    here = slot_map.places[table["group"]] == record.slot
    table, cpu = table[here], cpu[here]
    return SlotReport(
        record.slot,
        memory=record.held.bytes,
        growth=record.spillable.growth,
        cpu=record.cpu,
        backlog=backlog,
        rows_out=record.counts.rows_out,
        on_disk=round(disk),
        spilling=spilling,
        rows_in=record.rows_in,
        groups=group_loads(table["group"], table["rows"], table["bytes"], A_BATCH * table["results"], cpu),
    )


def on_disk(slot_map: SlotMap, after: AfterBatch, copies: float = 1.0) -> Floats:
    """By slot the bytes that rows of its groups would take in memory and that are only on disk."""
    out = np.array([group for group in after.ledger.generations.left if group < slot_map.groups], np.int64)
    if not out.size:
        return np.zeros(slot_map.slots)
    tables = [record.spillable.table for record in after.slots]
    leading = [table["group"] < slot_map.groups for table in tables]
    rows = sum(int(table["rows"][lead].sum()) for table, lead in zip(tables, leading, strict=True))
    follow = max(int(table["rows"][~lead].sum()) for table, lead in zip(tables, leading, strict=True))
    size, held = (sum(int(table[name].sum()) for table in tables) for name in ("bytes", "rows"))
    missing = max(0.0, copies * after.live - rows - follow) * (size / held if held else ROW_BYTES)
    shares: Floats = np.bincount(slot_map.places[out], minlength=slot_map.slots) / out.size
    return shares * missing
