"""Whether moves paid: each is compared with its prediction after some batches.

The gain of a move is by how much it lowers the more loaded of its two slots, in multiples of the mean of all slots. A
move pays if it brings at least a share `pays` of the predicted gain. One that does not pay is undone if that lowers the
more loaded slot: the sender gets back what the groups took there (memory: what they take now), and the receiver loses
what they take now. Otherwise the groups stay, for example because the sender's other groups have grown meanwhile. In
both cases the groups stay where they are for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.decided import Balanced, GroupMove, about
from eddyline.balance.manager_state import WatchedMove
from eddyline.balance.measure import Measure
from eddyline.balance.tuning import BalanceTuning
from eddyline.routing.decisions import Decision

WORSE = 0.05
"""The share by which going back must lower the more loaded slot."""


@dataclass(frozen=True)
class Verdict:
    """What came of one move."""

    watched: WatchedMove
    now: float
    """The load of the more loaded slot, in multiples of the mean."""
    paid: bool
    undo: GroupMove | None = None

    @property
    def words(self) -> str:
        """For the decision log."""
        one, groups = self.watched, len(self.watched.groups)
        came = "paid" if self.paid else "did not pay and is undone" if self.undo else "did not pay"
        return (
            f"the move of {groups} groups from slot {one.sender} to {one.receiver} {came}: {one.measure} of the more"
            f" loaded slot was {one.before:.2f} of the mean, predicted {one.predicted:.2f}, is {self.now:.2f}"
        )

    @property
    def decision(self) -> Decision:
        """For the decision log."""
        one = self.watched
        measured, expected = {"before": one.before, "now": self.now}, {"now": one.predicted}
        return Decision("balance", 0, self.words, "", measured, expected, about=about(one), paid=self.paid)


def verdicts(
    watched: Iterable[WatchedMove],
    measures: Sequence[Measure],
    places: NDArray[np.int32],
    movable: NDArray[np.bool_],
    slots: NDArray[np.bool_],
    free: NDArray[np.bool_],
    tuning: BalanceTuning,
) -> list[Verdict]:
    """What came of these moves. `slots` are those that count, `free` those that may take part in a move. A slot is in
    at most one undo."""
    by_name: dict[Balanced, Measure] = {measure.name: measure for measure in measures}
    found, used = list[Verdict](), set[int]()
    for one in watched:
        measure = by_name[one.measure]
        mean = float(measure.load[slots].mean()) if slots.any() else 0.0
        pair = measure.load[[one.sender, one.receiver]]
        now = float(pair.max() / mean) if mean > 0 else 1.0
        paid = one.before - now >= tuning.pays * (one.before - one.predicted)
        undo = None
        if not paid and free[[one.sender, one.receiver]].all() and not used & {one.sender, one.receiver}:
            undo = _undo(one, measure, mean, places, movable)
            used |= {one.sender, one.receiver} if undo else set()
        found.append(Verdict(one, now, paid, undo))
    return found


def _undo(
    one: WatchedMove, measure: Measure, mean: float, places: NDArray[np.int32], movable: NDArray[np.bool_]
) -> GroupMove | None:
    groups = np.array(one.groups)
    back = groups[(places[groups] == one.receiver) & movable[groups]]
    whole, some = float(measure.weight[groups].sum()), float(measure.weight[back].sum())
    there = some if one.measure == "memory" else one.amount * mean * (some / whole if whole > 0 else 0.0)
    sender, receiver = float(measure.load[one.sender]), float(measure.load[one.receiver])
    if not back.size or max(sender + there, receiver - some) >= (1 - WORSE) * max(sender, receiver):
        return None
    why = (
        f"it moved from slot {one.sender} and did not pay: {measure.name} of slot {one.receiver} is {receiver:.4g},"
        f" of slot {one.sender} {sender:.4g}; the groups took {there:.4g} there and take {some:.4g} here"
    )
    return GroupMove(tuple(back.tolist()), one.receiver, one.sender, one.measure, some, why, undoes=True)
