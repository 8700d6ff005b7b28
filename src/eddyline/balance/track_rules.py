"""Which slot maps with parallel tracks may follow each other.

A track goes on as it is, or ends: it is over, or it is given up, and any slot may have the group then. A slot never
gets a part of the rows that came before a track.
"""

from __future__ import annotations

from eddyline.balance.slot_map import NOBODY, SlotMap
from eddyline.errors import InternalError


def check_tracks(before: SlotMap, after: SlotMap, epoch: int) -> None:
    """Refuse (InternalError) a map of the next batch that changes a track; new tracks begin with this epoch."""
    old = (after.senders != NOBODY) & (after.epochs < epoch)
    columns = (after.places, before.places), (after.senders, before.senders), (after.epochs, before.epochs)
    if any((now[old] != was[old]).any() for now, was in columns):
        raise InternalError("a parallel track changes before it is over")
