"""What the distribution manager decides: groups that move to another slot, and slots that are forced to spill."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Balanced = Literal["memory", "cpu"]
"""The measure in which slots are balanced."""


@dataclass(frozen=True)
class GroupMove:
    """Groups move from one slot to another before the next batch."""

    groups: tuple[int, ...]
    sender: int
    receiver: int
    measure: Balanced
    amount: float
    """The load that moves: bytes, or CPU seconds a batch."""
    why: str
    """The reasons, in words and numbers."""
    undoes: bool = False
    """Whether it takes back a move that did not pay."""


@dataclass(frozen=True)
class ForcedSpill:
    """A slot lets its least productive groups leave memory before the next batch, at least `bytes` of them."""

    slot: int
    bytes: int
    why: str


@dataclass(frozen=True)
class Decided:
    """The decisions after a batch. No slot is in a move and in a forced spill."""

    moves: tuple[GroupMove, ...] = ()
    spills: tuple[ForcedSpill, ...] = ()
    notes: tuple[str, ...] = field(default=())
    """What was found and changes nothing: a move that paid, a slot whose load is one group."""

    @property
    def busy(self) -> frozenset[int]:
        """Slots of a move. They must not spill at the same boundary (004, section 6: one adaptation at a time)."""
        return frozenset(slot for move in self.moves for slot in (move.sender, move.receiver))
