"""What steps did lately: tuples in, tuples out, seconds, all fading.

Evidence fades in two ways: by newer evidence (after HALF_TUPLES tuples the old ones count half) and by age (after
HALF_ROWS rows built in the slot, whoever they were for). The first makes a busy step follow drift closely, the second
makes what was seen long ago by a step that few tuples reach count for little.

A *module* is a step taken by tuples of any signature. Its `Level` is its selectivity and cost of now, learned from all
of them; a signature's own evidence says by which factor its tuples differ from that level, as they do when predicates
are correlated. So when a module drifts, what is known about it drifts along in every signature, also in those that
nobody visits, and the factors, which change little, are remembered. Where nearly all tuples of a module have one
signature its factor is not learned: what changes there is the level.

Time is noisy: one call that was interrupted must not look like an expensive operator. So a call counts with at most
SURPRISE times what is believed; a real change gets through in a call or two.
"""

from __future__ import annotations

import numpy as np

HALF_TUPLES = 4096
HALF_ROWS = 16384
SURPRISE = 4.0
FIXED = 50e-6
"""The most seconds that are taken for the fixed cost of a call."""
LEAST_SHARE = 0.2
"""However small the packets, so much of the time of a call counts for its tuples."""
TINY = 1e-12
"""Nothing is free."""


class Recent:
    """Fading totals. `moment` is the number of rows built in the slot when they were last added to."""

    __slots__ = ("calls", "moment", "produced", "seconds", "tuples")

    def __init__(self) -> None:
        self.tuples = self.produced = self.seconds = self.calls = 0.0
        self.moment = 0

    def add(self, tuples: int, produced: int, seconds: float, moment: int) -> None:
        """One call."""
        if self.tuples > 0.0:
            believed = self.seconds / self.tuples * tuples
            seconds = min(seconds, SURPRISE * believed + FIXED)
            keep = 0.5 ** (tuples / HALF_TUPLES + (moment - self.moment) / HALF_ROWS)
            self.tuples *= keep
            self.produced *= keep
            self.seconds *= keep
            self.calls *= keep
        self.tuples += tuples
        self.produced += produced
        self.seconds += seconds
        self.calls += 1.0
        self.moment = moment

    def weight(self, moment: int) -> float:
        """How many tuples the evidence is worth now."""
        return float(self.tuples * 0.5 ** ((moment - self.moment) / HALF_ROWS))


class Level:
    """The selectivity and the cost of a module now; `tuples` is what the evidence is worth."""

    __slots__ = ("cost", "moment", "selectivity", "tuples")

    def __init__(self) -> None:
        self.tuples = self.selectivity = self.cost = 0.0
        self.moment = 0

    def add(self, tuples: float, selectivity: float, cost: float, moment: int) -> None:
        """What a call said about it, with the factors of its signature taken out."""
        if self.tuples > 0.0:
            cost = min(cost, SURPRISE * self.cost + FIXED / tuples)
            self.tuples *= 0.5 ** (tuples / HALF_TUPLES + (moment - self.moment) / HALF_ROWS)
        share = tuples / (self.tuples + tuples)
        self.tuples += tuples
        self.selectivity += share * (selectivity - self.selectivity)
        self.cost += share * (cost - self.cost)
        self.moment = moment


class Factors:
    """By how much the tuples of one signature differ from a module's level: what came and what the level expected."""

    __slots__ = ("cost", "expected_cost", "expected_produced", "produced", "tuples")

    def __init__(self) -> None:
        self.tuples = self.produced = self.expected_produced = self.cost = self.expected_cost = 0.0

    def add(self, tuples: float, produced: float, cost: float, level: Level) -> None:
        """What so many tuples made and cost."""
        keep = 0.5 ** (tuples / HALF_TUPLES)
        self.tuples = self.tuples * keep + tuples
        self.produced = self.produced * keep + produced
        self.expected_produced = self.expected_produced * keep + tuples * level.selectivity
        self.cost = self.cost * keep + tuples * cost
        self.expected_cost = self.expected_cost * keep + tuples * level.cost

    def of(self, level: Level, prior: float) -> tuple[float, float]:
        """(selectivity, cost) factors; `prior` tuples without a difference are added to the evidence."""
        more, dearer = prior * level.selectivity + TINY, prior * level.cost + TINY
        return (self.produced + more) / (self.expected_produced + more), (self.cost + dearer) / (
            self.expected_cost + dearer
        )


class Work:
    """What the whole eddy did: rows built, seconds worked, and what a call costs whatever it does."""

    def __init__(self) -> None:
        self.moment = 0
        """Rows built in the slot."""
        self.seconds = 0.0
        self.calls = 0
        self.passed = np.zeros(1, np.int64)
        """Rows that probes looked at and that were too new to match."""
        self.fixed = FIXED
        """The fixed cost of a call: the least that any call took."""

    def add(self, seconds: float) -> None:
        """One call of a module."""
        self.seconds += seconds
        self.calls += 1
        self.fixed = min(self.fixed, seconds)

    def cost(self, tuples: float, seconds: float, calls: float) -> float:
        """Seconds a tuple, without the fixed cost of calls."""
        return max(seconds - calls * self.fixed, LEAST_SHARE * seconds) / tuples + TINY

    def estimate(self, recent: Recent) -> tuple[float, float]:
        """(cost, selectivity): seconds a tuple, tuples out for one in."""
        return self.cost(recent.tuples, recent.seconds, recent.calls), recent.produced / recent.tuples
