"""What the distribution manager decides: groups that move to another slot, and slots that are forced to spill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from eddyline.balance.hot_key import HotKey
from eddyline.balance.slot_map import SlotMap
from eddyline.routing.decisions import Decision

Balanced = Literal["memory", "cpu"]
"""The measure in which slots are balanced."""

MoveWay = Literal["moving-state", "parallel-track"]
"""How groups move (way.py)."""

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
    expected: Mapping[str, float] = field(default_factory=dict)
    way: MoveWay = "moving-state"
    why_so: str = ""
    """Why it is made in this way; empty as long as nobody has chosen."""

    @property
    def decision(self) -> Decision:
        """For the decision log."""
        by = f" by {self.way.replace('-', ' ')}" if self.why_so else ""
        slots = f"from slot {self.sender} to slot {self.receiver}"
        what = f"{len(self.groups)} groups move {slots}{by}, for {self.measure}"
        why = f"{self.why};{by}: {self.why_so}" if by else self.why
        measured = {"groups": float(len(self.groups)), "amount": self.amount, **self.measured}
        kind = "undo-move" if self.undoes else "move"
        return Decision(kind, 0, what, why, measured, self.expected, about=about(self))


class Moved(Protocol):
    """Groups that moved or will move."""

    @property
    def groups(self) -> Sequence[int]:
        """The groups."""

    @property
    def sender(self) -> int:
        """The slot that had them."""

    @property
    def receiver(self) -> int:
        """The slot that gets them."""


def about(move: Moved) -> str:
    """The name of a move, by which its verdict finds it."""
    return f"move of {len(move.groups)} groups from {move.groups[0]} on, {move.sender} to {move.receiver}"


def ended_tracks(before: SlotMap, after: SlotMap) -> list[Decision]:
    """For the decision log: the parallel tracks that are over in the next batch."""
    found, going = list[Decision](), {group for track in after.tracks for group in track.groups}
    for track in before.tracks:
        if over := [group for group in track.groups if group not in going]:
            slots = f"from slot {track.sender} to slot {after.slot_of(over[0])}"
            what = f"the parallel track of {len(over)} groups {slots} is over"
            why = "no row that came before it began can join with a row to come"
            found.append(Decision("track-over", 0, what, why, {"groups": float(len(over))}))
    return found


@dataclass(frozen=True)
class KeyShare:
    """A key is shared by several slots from the next batch on, or not any more."""

    key: HotKey
    is_shared: bool
    why: str
    measured: Mapping[str, float] = field(default_factory=dict)
    spread: str = ""
    """The name of the source whose rows are spread."""

    @property
    def decision(self) -> Decision:
        """For the decision log. The code of an integer key is the key."""
        name = f"the key with code {self.key.code}"
        if not self.is_shared:
            return Decision("unshare", 0, f"slot {self.key.slots[0]} has {name} alone again", self.why, self.measured)
        slots = ", ".join(map(str, self.key.slots))
        what = f"slots {slots} share {name}: rows of {self.spread} are spread, others go to all of them"
        return Decision("share", 0, what, self.why, self.measured)


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
        return Decision("force-spill", 0, what, self.why, {"bytes": float(self.bytes)}, slot=self.slot)


@dataclass(frozen=True)
class Decided:
    """The decisions after a batch. No slot is in a move and in a forced spill. Where a key begins or ends to be shared,
    no group moves."""

    moves: tuple[GroupMove, ...] = ()
    spills: tuple[ForcedSpill, ...] = ()
    shares: tuple[KeyShare, ...] = ()
    notes: tuple[str, ...] = ()
    """What was found and changes nothing: a slot whose load is one group."""
    verdicts: tuple[Decision, ...] = ()
    """What came of earlier moves."""

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
        found += [spill.decision for spill in self.spills] + [share.decision for share in self.shares]
        found += self.verdicts[:SHOWN]
        return found + [Decision("balance", 0, note, "") for note in self.notes[:SHOWN]]
