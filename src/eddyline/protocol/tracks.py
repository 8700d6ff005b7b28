"""A slot's side of the parallel tracks that begin in it: from which row on rows are new, and which groups are on tracks
(docs/design/relocation.md). Both follow from the slot map, so a slot that is rebuilt from the log finds the same."""

from __future__ import annotations

from eddyline.balance.slot_map import SlotMap
from eddyline.engine.slot import Slot
from eddyline.spill.generations import NEVER


def begin_tracks(slot: Slot, slot_map: SlotMap | None, number: int, epoch: int) -> None:
    """All rows that come to the slot from now on came in this epoch or later: note it for the tracks from this slot
    that have begun by then."""
    for track in () if slot_map is None else slot_map.tracks:
        if track.sender == number and track.epoch <= epoch and slot.executor.tracked is not None:
            slot.executor.tracked.begin(track.epoch)


def follow_tracks(slot: Slot, slot_map: SlotMap | None, number: int, epoch: int = NEVER) -> None:
    """Tell the slot which groups are on tracks from it that have begun by this epoch."""
    if slot.executor.tracked is not None:
        tracks = () if slot_map is None else slot_map.tracks
        mine = [track for track in tracks if track.sender == number and track.epoch <= epoch]
        slot.executor.tracked.follow({group: track.epoch for track in mine for group in track.groups})
