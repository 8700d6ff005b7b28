"""The reasons for moves, in words and numbers."""

from __future__ import annotations

import numpy as np

from eddyline.balance.decided import GroupMove
from eddyline.balance.measure import Measure
from eddyline.balance.pairing import Pair
from eddyline.balance.reports import Floats
from eddyline.balance.slot_map import SlotMap
from eddyline.setting_kinds import size_text

NOTHING = 1e-12
MOSTLY = 0.5
"""The share of a group in the load of its slot from which on the slot's load is mostly that group."""


def explained(measure: Measure, pair: Pair, predicted: Floats, mean: float, ratio: float) -> GroupMove:
    """A pair as a move with its reasons. `predicted` are the loads of all slots after all moves of the decision."""
    sender, receiver = float(measure.load[pair.sender]), float(measure.load[pair.receiver])
    then = float(predicted[pair.sender]), float(predicted[pair.receiver])
    first = "the most productive" if measure.name == "memory" else "those with the most CPU per byte"
    why = (
        f"{measure.name} of slot {pair.sender} is {_text(measure, sender)} and of slot {pair.receiver}"
        f" {_text(measure, receiver)}, {receiver / max(sender, NOTHING):.2f} of it, which is less than {ratio:g}; the"
        f" mean is {_text(measure, mean)}; groups with {_text(measure, pair.amount)} move, {first} first; then it"
        f" should be {_text(measure, then[0])} and {_text(measure, then[1])}"
    )
    measured = {"sender": sender, "receiver": receiver, "mean": mean, "sender_after": then[0]}
    groups = tuple(np.sort(pair.groups).tolist())
    return GroupMove(
        groups,
        pair.sender,
        pair.receiver,
        measure.name,
        pair.amount,
        why,
        measured={**measured, "receiver_after": then[1]},
        expected={"sender": then[0], "receiver": then[1]},
    )


def too_heavy(measure: Measure, slot_map: SlotMap, slot: int) -> str | None:
    """That the load of a slot is mostly one group, if it is."""
    groups = slot_map.groups_of(slot)
    weight, load = measure.weight[groups], float(measure.load[slot])
    share = float(weight.max(initial=0.0)) / max(load, NOTHING)
    if share < MOSTLY:
        return None
    return (
        f"slot {slot} has {_text(measure, load)} of {measure.name} and cannot give it away: group"
        f" {groups[weight.argmax()]} has {share:.0%} of it, and a group cannot be divided"
    )


def _text(measure: Measure, load: float) -> str:
    return size_text(round(load)) if measure.name == "memory" else f"{load:.3g} s"
