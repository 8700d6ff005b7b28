"""Senders, receivers and the groups that move between them, for one measure.

004 moves half of the difference from the most to the least loaded slot. With two slots this brings both to the mean.
With more it brings the receiver above the mean and the next move takes it away again, so here a move ends at the mean
of all slots: it is never more than half of the difference. The most loaded slot gives to the least loaded one, then to
the next, until it is at the mean; then the second most loaded slot gives.

A group that is heavier than that may move alone if the more loaded of the two slots has less load afterwards. So no
receiver has as much load after a move as its sender had before. A sender whose groups are all too heavy is *stuck*: its
load is that of one group, or of groups that must stay. The others are then balanced without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.candidates import Candidates, Ints
from eddyline.balance.measure import Band, Measure
from eddyline.balance.reports import Floats

Mask = NDArray[np.bool_]

TRIES = 3
"""Receivers that are tried for a sender whose groups do not fit."""
BETTER = 0.1
"""The share of the difference by which a single group must lower the more loaded slot."""
ROUNDS = 4
"""How often stuck senders are left out and the others looked at again."""


@dataclass(frozen=True)
class Pair:
    """Groups that move from one slot to another."""

    sender: int
    receiver: int
    groups: Ints
    amount: float
    other: float
    """Their load in the measure that is not balanced."""


@dataclass(frozen=True)
class Pairing:
    """The pairs of a decision, and the senders that are stuck."""

    pairs: tuple[Pair, ...] = ()
    stuck: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rules:
    """What a decision has to keep to."""

    ratio: float
    """Theta_r for the first receiver of a sender."""
    stop: float
    """Theta_r for the next ones."""
    pairs: int
    """The most pairs."""
    least: float
    """The share of its load that a sender must lose."""


def paired(
    measure: Measure,
    other: Measure,
    places: NDArray[np.int32],
    movable: Mask,
    slots: Mask,
    free: Mask,
    rules: Rules,
) -> Pairing:
    """The pairs for one measure. `movable` are groups that may move, `slots` those that count, and `free` are slots
    that may take part in a move."""
    band, stuck = other.band(slots, rules.stop), list[int]()
    slots = slots.copy()
    for _ in range(ROUNDS):
        if not slots.any():
            break
        found = _Round(measure, other, band, places, movable, slots, free & slots, rules).run()
        stuck += found.stuck
        if found.pairs or not found.stuck:
            return Pairing(found.pairs, tuple(stuck))
        slots[list(found.stuck)] = False
    return Pairing((), tuple(stuck))


class _Round:
    """One pass over all senders."""

    def __init__(
        self,
        measure: Measure,
        other: Measure,
        band: Band,
        places: NDArray[np.int32],
        movable: Mask,
        slots: Mask,
        free: Mask,
        rules: Rules,
    ) -> None:
        self._measure, self._band, self._rules = measure, band, rules
        self._load, self._other = measure.load.copy(), other.load.copy()
        """Loads after the pairs so far."""
        self._mean = float(measure.load[slots].mean())
        self._to = min(self._mean, measure.full)
        self._senders = self._sorted(free & (measure.load > self._mean) & (measure.load >= measure.enough), -1)
        self._open = free & (measure.load < self._to)
        self._receivers = self._sorted(self._open, 1)
        self._groups = self._by_sender(places, movable)
        self._weights = measure.weight, other.weight
        self._pairs: list[Pair] = []

    def _sorted(self, slots: Mask, sign: int) -> list[int]:
        some = np.flatnonzero(slots)
        found: list[int] = some[np.argsort(sign * self._load[some], kind="stable")].tolist()
        return found

    def _by_sender(self, places: NDArray[np.int32], movable: Mask) -> dict[int, Ints]:
        """The groups that each sender may give away, in the order in which they move."""
        measure, sending = self._measure, np.zeros(self._load.size, bool)
        sending[self._senders] = True
        some = np.flatnonzero(movable & sending[places] & (measure.weight > 0))
        some = some[np.lexsort((-measure.first[some], places[some]))]
        ends = np.searchsorted(places[some], np.arange(self._load.size + 1))
        return {slot: some[ends[slot] : ends[slot + 1]] for slot in self._senders}

    def run(self) -> Pairing:
        """All senders in turn, until there are enough pairs."""
        stuck = []
        for sender in self._senders:
            if len(self._pairs) >= self._rules.pairs or not self._receivers:
                break
            if not self._groups[sender].size:
                continue
            if not self._measure.unbalanced(sender, self._receivers[0], self._load, self._rules.ratio):
                continue
            pairs, wanted = self._sent(sender)
            lost = sum(pair.amount for pair in pairs)
            if lost >= min(self._rules.least * self._measure.load[sender], wanted / 2) > 0:
                self._pairs += pairs
                self._receivers = self._sorted(self._open & (self._load < self._to), 1)
                continue
            stuck.append(sender)
            for pair in pairs:
                self._shift(pair, -1)
        return Pairing(tuple(self._pairs), tuple(stuck))

    def _sent(self, sender: int) -> tuple[list[Pair], float]:
        """The pairs of one sender, and the load that it wanted to lose."""
        pairs, failed, wanted = list[Pair](), 0, float(self._load[sender] - self._mean)
        groups = self._groups[sender]
        candidates = Candidates(groups, *(weight[groups] for weight in self._weights))
        for receiver in self._receivers:
            if failed == TRIES or len(self._pairs) + len(pairs) >= self._rules.pairs:
                break
            if not self._measure.unbalanced(sender, receiver, self._load, self._rules.stop):
                break
            pair = self._pair(sender, receiver, candidates)
            if pair is None:
                failed += 1
                continue
            self._shift(pair, 1)
            pairs.append(pair)
        return pairs, wanted

    def _pair(self, sender: int, receiver: int, candidates: Candidates) -> Pair | None:
        most, least = self._load[sender], self._load[receiver]
        budget = min(most - self._mean, self._room(receiver))
        other = min(self._band.high - self._other[receiver], self._other[sender] - self._band.low)
        other = other if other >= 0 else self._band.beyond * budget / self._mean
        if budget <= 0 or other < 0:
            return None
        chosen = candidates.fitting(budget, other)
        if (sum_of := candidates.weight(chosen)) < budget / 2:
            highest = min((1 - BETTER) * (most - least), self._measure.full - least)
            one = candidates.single(budget, highest, other)
            if one.size and max(most - candidates.weight(one), least + candidates.weight(one)) < most - sum_of:
                chosen = one
        if not chosen.size:
            return None
        weights = candidates.weight(chosen), candidates.other(chosen)
        return Pair(sender, receiver, candidates.take(chosen), *weights)

    def _shift(self, pair: Pair, sign: int) -> None:
        for loads, amount in ((self._load, pair.amount), (self._other, pair.other)):
            loads[pair.sender] -= sign * amount
            loads[pair.receiver] += sign * amount

    def _room(self, receiver: int) -> float:
        return float(self._to - self._load[receiver])


def after(loads: Floats, pairs: tuple[Pair, ...], other: bool = False) -> Floats:
    """The loads of slots after these pairs have moved their groups, in the measure or in the other one."""
    found = loads.copy()
    for pair in pairs:
        amount = pair.other if other else pair.amount
        found[pair.sender] -= amount
        found[pair.receiver] += amount
    return found
