"""What the distribution manager decides: groups that move to another slot, and slots that are forced to spill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from eddyline.routing.decisions import Decision

Balanced = Literal["memory", "cpu"]
"""The measure in which slots are balanced."""

SHOWN = 8
"""The most moves of one batch that the decision log lists one by one."""


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
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def decision(self) -> Decision:
        """For the decision log."""
        what = f"{len(self.groups)} groups move from slot {self.sender} to slot {self.receiver}, for {self.measure}"
        measured = {"groups": float(len(self.groups)), "amount": self.amount, **self.measured}
        return Decision("undo-move" if self.undoes else "move", 0, what, self.why, measured)


@dataclass(frozen=True)
class ForcedSpill:
    """A slot lets its least productive groups leave memory before the next batch, at least `bytes` of them."""

    slot: int
    bytes: int
    why: str

    @property
    def decision(self) -> Decision:
        """For the decision log."""
        what = f"slot {self.slot} is forced to spill {self.bytes} bytes"
        return Decision("force-spill", 0, what, self.why, {"bytes": float(self.bytes)})


@dataclass(frozen=True)
class Decided:
    """The decisions after a batch. No slot is in a move and in a forced spill."""

    moves: tuple[GroupMove, ...] = ()
    spills: tuple[ForcedSpill, ...] = ()
    notes: tuple[str, ...] = ()
    """What was found and changes nothing: a move that paid, a slot whose load is one group."""

    @property
    def busy(self) -> frozenset[int]:
        """Slots of a move. They must not spill at the same boundary (004, section 6: one adaptation at a time)."""
        return frozenset(slot for move in self.moves for slot in (move.sender, move.receiver))

    @property
    def decisions(self) -> list[Decision]:
        """For the decision log: of many moves the first ones, and a line about the others."""
        found = [move.decision for move in self.moves[:SHOWN]]
        if more := self.moves[SHOWN:]:
            count, slots = sum(len(move.groups) for move in more), len({move.sender for move in more})
            what, measured = f"{count} more groups move from {slots} slots", {"groups": float(count)}
            found.append(Decision("move", 0, what, "for the same reasons", measured))
        found += [spill.decision for spill in self.spills]
        return found + [Decision("balance", 0, note, "") for note in self.notes[:SHOWN]]
