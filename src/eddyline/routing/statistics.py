"""What steps did lately: tuples in, tuples out, seconds, all fading.

Evidence fades in two ways: by newer evidence (after HALF_TUPLES tuples the old ones count half) and by age (after
HALF_ROWS rows built in the slot, whoever they were for). The first makes a busy step follow drift closely, the second
makes what was seen long ago by a step that few tuples reach count for little.

A *module* is a step taken by tuples of any signature; its `Level` is its current selectivity and cost, learned from all
of them.

Time is noisy: one call that was interrupted must not look like an expensive operator.
"""

from __future__ import annotations

import math

import numpy as np

from eddyline.codec import Snapshot

HALF_TUPLES = 2048
HALF_ROWS = 16384
SURPRISE = 4.0
FIXED = 50e-6
"""The most seconds that are taken for the fixed cost of a call."""
LEAST_SHARE = 0.2
"""However small the packets, so much of the time of a call counts for its tuples."""
TINY = 1e-12
"""Nothing is free."""
ENOUGH, LONG = 50, 30_000.0
"""Tuples from which on a call may surprise, and that are remembered to compare it with."""
TENTH = 0.1
CLEARLY, DEARER = 3.5, 2.0
"""A surprise: so many standard errors off in selectivity, or a cost so many times as high or low."""
COSTS, LARGE, SOME, BLUR, TELLING = 5, 256, 48, 1e-5, 150e-6
"""Packets whose costs are compared; the fewest tuples of a packet, and of a sample, to tell a cost by; seconds by which
the time of a call may be off whatever it does, and that are so many that this does not matter."""
NEVER, FRESH = -(1 << 60), 131072
"""What told a cost longer ago than FRESH rows does not count."""


class RecentSnapshot(Snapshot, frozen=True):
    """Fading totals."""

    tuples: float
    produced: float
    seconds: float
    calls: float
    moment: int


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

    def weight(self, work: Work) -> float:
        """How many tuples the evidence is worth now. That of the slice before is as new as any can be."""
        age = max(0, work.moment - self.moment - work.slice_rows)
        return float(self.tuples * 0.5 ** (age / HALF_ROWS))

    def saved(self) -> RecentSnapshot:
        """A snapshot for another process."""
        return RecentSnapshot(self.tuples, self.produced, self.seconds, self.calls, self.moment)

    def restore(self, saved: RecentSnapshot) -> None:
        """Continue from a snapshot."""
        self.tuples, self.produced, self.seconds = saved.tuples, saved.produced, saved.seconds
        self.calls, self.moment = saved.calls, saved.moment


class ReferenceSnapshot(Snapshot, frozen=True):
    """The long memory of a step, and what it did in the current slice."""

    tuples: float
    produced: float
    slice_tuples: int
    slice_produced: int
    slices: int


class Reference:
    """What a step did since it last did something else: the long memory against which drift is noticed.

    Packets of a selection are compared one by one; those of a probe slice by slice of the input, because what a tuple
    finds depends on its place in the slice: the first ones meet older rows, the last ones miss what is not built yet.
    """

    __slots__ = ("_produced", "_slices", "_tuples", "produced", "tuples")

    def __init__(self) -> None:
        self.tuples = self.produced = 0.0
        self._tuples = self._produced = self._slices = 0

    def probed(self, tuples: int, produced: int, slices: int, joined: bool) -> bool:
        """Add a packet of a probe; whether the last slice was a surprise. Tuples that are joined already have rows in
        common, so that fewer of them tell something: they count a tenth."""
        surprise = False
        if slices != self._slices:
            part = TENTH if joined else 1.0
            surprise = self._tuples > 0 and self.surprised(part * self._tuples, part * self._produced, False)
            self._tuples, self._produced, self._slices = 0, 0, slices
        self._tuples += tuples
        self._produced += produced
        return surprise

    def surprised(self, tuples: float, produced: float, is_selection: bool = True) -> bool:
        """Add tuples; whether they were so different from those before that something must have changed."""
        if self.tuples >= ENOUGH and tuples >= ENOUGH:
            known = self.produced / self.tuples
            spread = known * (1.0 - known) if is_selection else known * (1.0 + known)
            error = math.sqrt(max(spread, 0.01) * (1.0 / tuples + 1.0 / self.tuples))
            if abs(produced / tuples - known) > CLEARLY * error:
                self.tuples, self.produced = tuples, produced
                return True
        keep = min(1.0, LONG / (self.tuples + 1.0))
        self.tuples = self.tuples * keep + tuples
        self.produced = self.produced * keep + produced
        return False

    def saved(self) -> ReferenceSnapshot:
        """A snapshot for another process."""
        return ReferenceSnapshot(self.tuples, self.produced, self._tuples, self._produced, self._slices)

    def restore(self, saved: ReferenceSnapshot) -> None:
        """Continue from a snapshot."""
        self.tuples, self.produced = saved.tuples, saved.produced
        self._tuples, self._produced, self._slices = saved.slice_tuples, saved.slice_produced, saved.slices


class LevelSnapshot(Snapshot, frozen=True):
    """The selectivity and the cost of a module, and the costs that were told lately."""

    tuples: float
    selectivity: float
    moment: int
    told: int
    cost: float
    settled: float
    costs: tuple[tuple[int, float], ...]
    hints: tuple[float, ...]


class Level:
    """The selectivity and the cost of a module now; `tuples` is what the evidence for the selectivity is worth.

    The cost is that of a tuple or, for a probe, of a tuple or a match.

    A call may be interrupted, and then it seems dearer by any factor; nothing makes it seem cheaper. So the cost is a
    low one of the last few calls that were long enough to tell, or cheaper, as far as they are fresh. Where only short
    ones come, samples say when it has changed: at once when they are cheaper; if several are dearer, when packets have
    said nothing.
    """

    __slots__ = ("_costs", "_hints", "_settled", "cost", "moment", "selectivity", "told", "tuples")

    def __init__(self) -> None:
        self.tuples = self.selectivity = self.cost = self._settled = 0.0
        self._costs: list[tuple[int, float]] = []
        self._hints: list[float] = []
        self.moment, self.told = 0, NEVER
        """`told`: when enough tuples at once last told the cost."""

    def add(self, tuples: int, selectivity: float, cost: float, moment: int) -> bool:
        """What a packet said about it; whether its cost has changed clearly."""
        if self.tuples > 0.0:
            self.tuples *= 0.5 ** (tuples / HALF_TUPLES + (moment - self.moment) / HALF_ROWS)
        self.selectivity += tuples / (self.tuples + tuples) * (selectivity - self.selectivity)
        self.tuples += tuples
        self.moment = moment
        if tuples >= LARGE or tuples * cost >= TELLING:
            self.told = moment
        elif self._costs and cost >= self.cost:
            return False
        return self._tell(cost, moment)

    def hint(self, tuples: int, cost: float, moment: int) -> bool:
        """What a sample said about its cost; whether that has changed clearly."""
        self._hints = [*self._hints[1 - COSTS :], cost]
        least, silent = min(self._hints), moment - self.told
        if tuples * cost >= TELLING:
            self.told = moment
            return self._tell(cost, moment)
        if cost + BLUR / tuples < self.cost / DEARER or (silent > FRESH and tuples >= SOME):
            self._costs = []
            return self._tell(cost, moment)
        if silent > HALF_ROWS and len(self._hints) == COSTS and least > self.cost * DEARER:
            self._costs = []
            return self._tell(least, moment)
        return False

    def _tell(self, cost: float, moment: int) -> bool:
        older = self._costs[1 - COSTS :]
        self._costs = [*(c for c in older[:-1] if moment - c[0] < HALF_ROWS), *older[-1:], (moment, cost)]
        self.cost = sorted(c for _, c in self._costs)[len(self._costs) // 3]
        settled, self._settled = self._settled, self.cost
        if settled / DEARER <= self.cost <= settled * DEARER:
            self._settled = settled
            return False
        return settled > 0.0

    def saved(self) -> LevelSnapshot:
        """A snapshot for another process."""
        costs = self.cost, self._settled, tuple(self._costs), tuple(self._hints)
        return LevelSnapshot(self.tuples, self.selectivity, self.moment, self.told, *costs)

    def restore(self, saved: LevelSnapshot) -> None:
        """Continue from a snapshot."""
        self.tuples, self.selectivity, self.moment = saved.tuples, saved.selectivity, saved.moment
        self.told, self.cost, self._settled = saved.told, saved.cost, saved.settled
        self._costs, self._hints = list(saved.costs), list(saved.hints)


class WorkSnapshot(Snapshot, frozen=True):
    """What an eddy did, without the levels of its modules."""

    moment: int
    slices: int
    slice_rows: int
    slice_end: int
    seconds: float
    building: float
    calls: int
    passed: int
    fixed: float


class Work:
    """What the whole eddy did: rows built, seconds worked, and what a call costs whatever it does."""

    def __init__(self) -> None:
        self.moment = 0
        """Rows built in the slot, those of undone batches too: it never goes back, or old evidence would grow."""
        self.slices = self.slice_rows = self._slice_end = 0
        """Slices of the input that were taken in, and the rows of the last one."""
        self.seconds = self.building = 0.0
        """In steps, and in building what they go on with."""
        self.calls = 0
        self.passed = np.zeros(1, np.int64)
        """Rows that probes looked at and that were too new to match."""
        self.levels: dict[tuple[int, int], Level] = {}
        """Of each source, probed with which other, and each selection (numbered on from the sources, -1) the module
        that was used last."""
        self.fixed = FIXED
        """The fixed cost of a call: the least that any call took."""

    def end_slice(self) -> None:
        """A slice of the input, if there was one, went through."""
        if self.moment > self._slice_end:
            self.slices += 1
            self.slice_rows, self._slice_end = self.moment - self._slice_end, self.moment

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

    def saved(self) -> WorkSnapshot:
        """A snapshot for another process; the levels come with the routing arrays."""
        return WorkSnapshot(
            moment=self.moment,
            slices=self.slices,
            slice_rows=self.slice_rows,
            slice_end=self._slice_end,
            seconds=self.seconds,
            building=self.building,
            calls=self.calls,
            passed=int(self.passed[0]),
            fixed=self.fixed,
        )

    def restore(self, saved: WorkSnapshot) -> None:
        """Continue from a snapshot."""
        self.moment, self.slices, self.slice_rows = saved.moment, saved.slices, saved.slice_rows
        self._slice_end, self.seconds, self.building = saved.slice_end, saved.seconds, saved.building
        self.calls, self.passed[0], self.fixed = saved.calls, saved.passed, saved.fixed
