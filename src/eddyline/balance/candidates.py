"""The groups of a sender that may move, in the order in which they move, and the choice of those that fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.reports import Floats

Ints = NDArray[np.int64]

FILLED = 0.02
"""The share of a budget that may stay unused."""
AHEAD, MORE = 4.0, 256
"""How far the choice looks first: groups with this many times the budget, and some more. It looks at all groups if
that does not fill half of the budget."""


class Candidates:
    """The groups of one sender that have not been chosen yet."""

    def __init__(self, groups: Ints, weight: Floats, other: Floats) -> None:
        """`groups` in the order in which they move, with their weights in both measures."""
        self._groups, self._weights = groups, np.stack([weight, other])
        self._left = np.ones(groups.size, bool)
        self._sums = np.cumsum(weight)
        self._begin, self._lightest = 0, float(weight.min(initial=np.inf))

    def fitting(self, budget: float, other: float) -> Ints:
        """Positions of groups that together take no more than the budgets: each in order, if it still fits."""
        if self._lightest > budget:
            return np.empty(0, np.int64)
        budgets = np.array([budget, other])
        before = self._sums[self._begin - 1] if self._begin else 0.0
        end = int(np.searchsorted(self._sums, before + AHEAD * budget)) + MORE
        found = self._fitting(np.arange(self._begin, min(end, self._groups.size)), budgets)
        if end < self._groups.size and self.weight(found) < budget / 2:
            found = self._fitting(np.arange(self._begin, self._groups.size), budgets)
        return found

    def _fitting(self, some: Ints, budgets: Floats) -> Ints:
        some, rest, taken = some[self._left[some]], budgets.copy(), list[Ints]()
        while True:
            some = some[(self._weights[:, some] <= rest[:, None]).all(axis=0)]
            if not some.size:
                break
            sums = np.cumsum(self._weights[:, some], axis=1)
            fit = int((sums <= rest[:, None]).all(axis=0).sum())
            taken.append(some[:fit])
            rest -= sums[:, fit - 1]
            some = some[fit:]
            if rest[0] <= FILLED * budgets[0]:
                break
        return np.concatenate(taken) if taken else np.empty(0, np.int64)

    def single(self, above: float, below: float, other: float) -> Ints:
        """The position of the lightest group that is heavier than `above` and at most `below`, or none."""
        fits = self._left & (self._weights[0] > above) & (self._weights[0] <= below) & (self._weights[1] <= other)
        some = np.flatnonzero(fits)
        return some[[int(self._weights[0, some].argmin())]] if some.size else some

    def weight(self, positions: Ints) -> float:
        """The weight of groups in the measure that is balanced."""
        return float(self._weights[0, positions].sum())

    def other(self, positions: Ints) -> float:
        """The weight of groups in the other measure."""
        return float(self._weights[1, positions].sum())

    def take(self, positions: Ints) -> Ints:
        """The groups at these positions, which are chosen now."""
        self._left[positions] = False
        while self._begin < self._left.size and not self._left[self._begin]:
            self._begin += 1
        return self._groups[positions]
