"""What will be different in the next batch: which groups leave memory and are swept, and which slot has which group.

It is decided after a batch, from what slots reported, and is part of the commit. So a batch that runs again finds the
same. The spiller decides first (protocol/spiller.py). Then the placer decides, who knows what the spiller wants; it may
let further groups leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import NOBODY, SlotMap
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import COMBINED, Record


@dataclass(frozen=True)
class Adapted:
    """What is different in the next batch."""

    moves: Moves
    slot_map: SlotMap
    balance: ManagerState
    """What the distribution manager remembers."""


@dataclass(frozen=True)
class AfterBatch:
    """What is known when a batch is done."""

    ledger: Ledger
    records: Sequence[Record]
    live: int = 0
    """Rows in the log with which rows to come may join: those in memory, and those on disk."""
    pressure: Pressure = NO_PRESSURE

    @property
    def slots(self) -> list[Record]:
        """The records of slots."""
        return [record for record in self.records if record.slot != COMBINED]


Placer = Callable[[Adapted, AfterBatch], Adapted]
"""Decides which slot has which group in the next batch. It is given the map of this batch, and the moves that are
decided already, of which it takes none back."""


def stays(so_far: Adapted, after: AfterBatch) -> Adapted:
    """No group moves to another slot."""
    return so_far


def spilling_slots(moves: Moves, slot_map: SlotMap) -> NDArray[np.bool_]:
    """By slot whether groups of it leave memory or are swept. Every slot has groups of sources that follow.

    >>> from eddyline.balance.slot_map import SlotMap
    >>> spilling_slots(Moves(leave=(0,), sweep=(5,)), SlotMap(3, 6)).tolist()
    [True, False, True]
    >>> spilling_slots(Moves(leave=(6,)), SlotMap(3, 6)).tolist()
    [True, True, True]
    """
    groups = np.array((*moves.leave, *moves.sweep), np.int64)
    found = np.full(slot_map.slots, bool((groups >= slot_map.groups).any()))
    groups = groups[groups < slot_map.groups]
    found[slot_map.places[groups]] = True
    found[[sender for sender in slot_map.senders[groups].tolist() if sender != NOBODY]] = True
    found[[slot for key in slot_map.hot if key.group in groups for slot in key.slots]] = True
    return found


def accounts_that_move(records: Sequence[Record], before: SlotMap, after: SlotMap) -> bytes:
    """The accounts of the groups that have another slot in the next batch, an array of `spill.accounts.TABLE`."""
    moving, found = before.places != after.places, []
    for record in records if moving.any() else ():
        table = record.spillable.table
        table = table[table["group"] < before.groups]
        found.append(table[moving[table["group"]] & (before.places[table["group"]] == record.slot)].tobytes())
    return b"".join(found)
