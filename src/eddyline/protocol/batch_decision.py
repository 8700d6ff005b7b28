"""A batch decision: the work of one batch. It is durable before any slot begins; tasks read it from the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from eddyline.balance.slot_map import SlotMap
from eddyline.codec import as_json
from eddyline.engine.watermarks import Advanced, Reached
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.plan.preference import NO_PREFERENCE, Preference
from eddyline.protocol.ledger import Ledger, Moves

BatchKind = Literal["load", "rows", "end"]
"""A batch loads tables, takes rows of streams, or flushes everything that waits because the streams have ended."""


@dataclass(frozen=True)
class BatchDecision:
    """The work of one batch."""

    batch: int
    kind: BatchKind
    offsets: Any
    """Which rows the batch reads, in each source's own form."""
    watermarks: Reached
    """The watermarks of the commit before the batch."""
    slots: int
    merge: Mapping[int, tuple[str, ...]]
    """The segments of the log that each slot should merge."""
    ended: tuple[str, ...] = ()
    """Streams that end with this batch."""
    before: str = ""
    """The history of the commit before the batch."""
    after: str = ""
    """The history of the commit of the batch."""
    quiet: tuple[str, ...] = ()
    """Streams that had been silent for too long when the batch began. Those without a row in the batch are idle after
    it."""
    moves: Moves = field(default_factory=Moves)
    """What partition groups do before the batch."""
    ledger: Ledger = field(default_factory=Ledger)
    """What is known of groups on disk, after these moves."""
    map_before: SlotMap | None = None
    """The slot of each group in the batch before; None if groups cannot move."""
    slot_map: SlotMap | None = None
    """The slot of each group in this batch."""
    moved: bytes = b""
    """The accounts that groups which have moved had in their slots before, an array of `spill.accounts.TABLE`; results
    do not depend on it."""
    complete: Advanced | None = None
    """That of the commit before the batch."""
    attempts: Mapping[int, str] = field(default_factory=dict)
    """In a query with tables that are asked: by slot, the attempt at the batch before that was committed. Others may
    have got other answers in time."""
    pressure: Pressure = NO_PRESSURE
    """The pressure of the input on each slot, for its optimizer."""
    preference: Preference = NO_PREFERENCE
    """Which rows come first; results do not depend on it."""

    def begins_at(self, slot: int) -> str:
        """The history at which the turn of a slot begins."""
        return self.before + self.attempts.get(slot, "")

    @property
    def held(self) -> Advanced | None:
        """Results of rows after that may be missing, because groups are on disk or rows wait for answers. None if none
        is."""
        return self.ledger.held if self.complete is None else self.complete

    @cached_property
    def arrangement(self) -> tuple[str, str]:
        """Names the state of a slot that has got the groups of this batch: the history before it, and a digest of the
        slot map. A run with another number of slots has another map after the same history."""
        return self.before, sha256(as_json(self.slot_map)).hexdigest()[:16]
