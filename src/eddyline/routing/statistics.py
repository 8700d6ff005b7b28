"""Recent statistics of steps: tuples in, tuples out and seconds, all fading.

Evidence fades in two ways: with newer evidence (after `half_tuples` tuples the old ones count half), and with age
(after `half_rows` rows built in the slot, of any source). The first lets a busy step follow drift closely; the second
lets old observations of a step that few tuples reach count for little. The numbers are in tuning.py.

A *module* is a step taken by tuples of any signature. Its `Level` is its current selectivity and cost, learned from all
of them.

Times are noisy: a single call that was interrupted must not look like an expensive operator.
"""

from __future__ import annotations

import math

import numpy as np

from eddyline.codec import Snapshot
from eddyline.routing.tuning import DEFAULT, RoutingTuning

TINY = 1e-12
"""The least cost of a tuple: nothing is free."""
NEVER = -(1 << 60)


class RecentSnapshot(Snapshot, frozen=True):
    """Fading totals."""

    tuples: float
    produced: float
    seconds: float
    calls: float
    moment: int


class Recent:
    """Fading totals. `moment` is the number of rows built in the slot at the last addition."""

    __slots__ = ("_tuning", "calls", "moment", "produced", "seconds", "tuples")

    def __init__(self, tuning: RoutingTuning = DEFAULT) -> None:
        self._tuning = tuning
        self.tuples = self.produced = self.seconds = self.calls = 0.0
        self.moment = 0

    def add(self, tuples: int, produced: int, seconds: float, moment: int) -> None:
        """Add one call."""
        if self.tuples > 0.0:
            tuning, believed = self._tuning, self.seconds / self.tuples * tuples
            seconds = min(seconds, tuning.interrupted * believed + tuning.call)
            keep = 0.5 ** (tuples / tuning.half_tuples + (moment - self.moment) / tuning.half_rows)
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
        """How many tuples the evidence is worth at present. Evidence of the previous slice does not age: none can be
        newer."""
        age = max(0, work.moment - self.moment - work.slice_rows)
        return float(self.tuples * 0.5 ** (age / self._tuning.half_rows))

    def saved(self) -> RecentSnapshot:
        """A snapshot for another process."""
        return RecentSnapshot(self.tuples, self.produced, self.seconds, self.calls, self.moment)

    def restore(self, saved: RecentSnapshot) -> None:
        """Restore from a snapshot."""
        self.tuples, self.produced, self.seconds = saved.tuples, saved.produced, saved.seconds
        self.calls, self.moment = saved.calls, saved.moment


class ReferenceSnapshot(Snapshot, frozen=True):
    """The long memory of a step, and its work in the current slice."""

    tuples: float
    produced: float
    slice_tuples: int
    slice_produced: int
    slices: int


class Reference:
    """The work of a step since its last change: the long memory that drift is compared with.

    Packets of a selection are compared one by one. Packets of a probe are compared slice by slice of the input, because
    the matches of a tuple depend on its place in the slice: the first tuples meet older rows, and the last ones miss
    rows that are not built yet.
    """

    __slots__ = ("_produced", "_slices", "_tuning", "_tuples", "produced", "tuples")

    def __init__(self, tuning: RoutingTuning = DEFAULT) -> None:
        self._tuning = tuning
        self.tuples = self.produced = 0.0
        self._tuples = self._produced = self._slices = 0

    def probed(self, tuples: int, produced: int, slices: int, joined: bool) -> bool:
        """Add a packet of a probe; returns whether the last slice was a surprise. Tuples that are already joined have
        rows in common, so they are weaker evidence and count less."""
        surprise = False
        if slices != self._slices:
            part = self._tuning.joined_share if joined else 1.0
            surprise = self._tuples > 0 and self.surprised(part * self._tuples, part * self._produced, False)
            self._tuples, self._produced, self._slices = 0, 0, slices
        self._tuples += tuples
        self._produced += produced
        return surprise

    def surprised(self, tuples: float, produced: float, is_selection: bool = True) -> bool:
        """Add tuples; returns whether they differ so much from those before that something must have changed."""
        tuning = self._tuning
        if self.tuples >= tuning.enough_tuples and tuples >= tuning.enough_tuples:
            known = self.produced / self.tuples
            spread = known * (1.0 - known) if is_selection else known * (1.0 + known)
            error = math.sqrt(max(spread, 0.01) * (1.0 / tuples + 1.0 / self.tuples))
            if abs(produced / tuples - known) > tuning.clearly * error:
                self.tuples, self.produced = tuples, produced
                return True
        keep = min(1.0, tuning.long_tuples / (self.tuples + 1.0))
        self.tuples = self.tuples * keep + tuples
        self.produced = self.produced * keep + produced
        return False

    def saved(self) -> ReferenceSnapshot:
        """A snapshot for another process."""
        return ReferenceSnapshot(self.tuples, self.produced, self._tuples, self._produced, self._slices)

    def restore(self, saved: ReferenceSnapshot) -> None:
        """Restore from a snapshot."""
        self.tuples, self.produced = saved.tuples, saved.produced
        self._tuples, self._produced, self._slices = saved.slice_tuples, saved.slice_produced, saved.slices


class LevelSnapshot(Snapshot, frozen=True):
    """The selectivity and the cost of a module, and its recently observed costs."""

    tuples: float
    selectivity: float
    moment: int
    told: int
    cost: float
    settled: float
    costs: tuple[tuple[int, float], ...]
    hints: tuple[float, ...]


class Level:
    """The current selectivity and cost of a module. `tuples` is the weight of the evidence for the selectivity.

    The cost is that of a tuple; for a probe, of a tuple or match.

    An interrupted call seems more expensive, by any factor; nothing makes a call seem cheaper. So the cost is a low one
    of the last few fresh calls that were long enough to tell, or that were cheaper. If only short calls occur, samples
    tell when the cost has changed: at once if a sample is cheaper; if several samples are more expensive, only after
    packets have told nothing for a while.
    """

    __slots__ = ("_costs", "_hints", "_settled", "_tuning", "cost", "moment", "selectivity", "told", "tuples")

    def __init__(self, tuning: RoutingTuning = DEFAULT) -> None:
        self._tuning = tuning
        self.tuples = self.selectivity = self.cost = self._settled = 0.0
        self._costs: list[tuple[int, float]] = []
        self._hints: list[float] = []
        self.moment, self.told = 0, NEVER
        """`told`: the moment when a call with enough tuples last told the cost."""

    def add(self, tuples: int, selectivity: float, cost: float, moment: int) -> bool:
        """Add the observation of a packet; returns whether the cost has clearly changed."""
        tuning = self._tuning
        if self.tuples > 0.0:
            self.tuples *= 0.5 ** (tuples / tuning.half_tuples + (moment - self.moment) / tuning.half_rows)
        self.selectivity += tuples / (self.tuples + tuples) * (selectivity - self.selectivity)
        self.tuples += tuples
        self.moment = moment
        if tuples >= tuning.telling_packet or tuples * cost >= tuning.telling_seconds:
            self.told = moment
        elif self._costs and cost >= self.cost:
            return False
        return self._tell(cost, moment)

    def hint(self, tuples: int, cost: float, moment: int) -> bool:
        """Add the cost observed on a sample; returns whether the cost has clearly changed."""
        tuning = self._tuning
        self._hints = [*self._hints[1 - tuning.costs_compared :], cost]
        least, silent = min(self._hints), moment - self.told
        if tuples * cost >= tuning.telling_seconds:
            self.told = moment
            return self._tell(cost, moment)
        cheaper = cost + tuning.blur / tuples < self.cost / tuning.dearer
        if cheaper or (silent > tuning.fresh_rows and tuples >= tuning.telling_sample):
            self._costs = []
            return self._tell(cost, moment)
        alike = len(self._hints) == tuning.costs_compared and least > self.cost * tuning.dearer
        if silent > tuning.half_rows and alike:
            self._costs = []
            return self._tell(least, moment)
        return False

    def _tell(self, cost: float, moment: int) -> bool:
        tuning = self._tuning
        older = self._costs[1 - tuning.costs_compared :]
        self._costs = [*(c for c in older[:-1] if moment - c[0] < tuning.half_rows), *older[-1:], (moment, cost)]
        self.cost = sorted(c for _, c in self._costs)[len(self._costs) // 3]
        settled, self._settled = self._settled, self.cost
        if settled / tuning.dearer <= self.cost <= settled * tuning.dearer:
            self._settled = settled
            return False
        return settled > 0.0

    def saved(self) -> LevelSnapshot:
        """A snapshot for another process."""
        costs = self.cost, self._settled, tuple(self._costs), tuple(self._hints)
        return LevelSnapshot(self.tuples, self.selectivity, self.moment, self.told, *costs)

    def restore(self, saved: LevelSnapshot) -> None:
        """Restore from a snapshot."""
        self.tuples, self.selectivity, self.moment = saved.tuples, saved.selectivity, saved.moment
        self.told, self.cost, self._settled = saved.told, saved.cost, saved.settled
        self._costs, self._hints = list(saved.costs), list(saved.hints)


class WorkSnapshot(Snapshot, frozen=True):
    """The work of an eddy, without the levels of its modules."""

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
    """The work of a whole eddy: rows built, seconds worked, and the fixed cost of a call."""

    def __init__(self, tuning: RoutingTuning = DEFAULT) -> None:
        self._least_share = tuning.least_share
        self.moment = 0
        """Rows built in the slot, including those of undone batches. It never goes back: otherwise old evidence would
        gain weight."""
        self.slices = self.slice_rows = self._slice_end = 0
        """Slices of the input that were taken in, and the rows of the last one."""
        self.seconds = self.building = 0.0
        """Seconds in steps, and in building their output."""
        self.calls = 0
        self.passed = np.zeros(1, np.int64)
        """Rows that probes visited and that were too new to match."""
        self.levels: dict[tuple[int, int], Level] = {}
        """The module used last, for each source and the other source that it is probed with, and for each selection
        (whose numbers follow those of the sources) and -1."""
        self.call = tuning.call
        """The fixed cost of a call: of a build, or of a packet's step with its way through the queues. The one of the
        tuning, until it is measured."""
        self.fixed = tuning.call
        """The fixed part of the time of a step alone: the shortest time that any step took, at most `call`."""

    def end_slice(self) -> None:
        """Record the end of a slice of the input, if there was one."""
        if self.moment > self._slice_end:
            self.slices += 1
            self.slice_rows, self._slice_end = self.moment - self._slice_end, self.moment

    def add(self, seconds: float) -> None:
        """Add one call of a module."""
        self.seconds += seconds
        self.calls += 1
        self.fixed = min(self.fixed, seconds)

    def cost(self, tuples: float, seconds: float, calls: float) -> float:
        """Seconds per tuple, without the fixed cost of calls."""
        return max(seconds - calls * self.fixed, self._least_share * seconds) / tuples + TINY

    def estimate(self, recent: Recent) -> tuple[float, float]:
        """(cost, selectivity): seconds per tuple, and tuples out per tuple in."""
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
        """Restore from a snapshot."""
        self.moment, self.slices, self.slice_rows = saved.moment, saved.slices, saved.slice_rows
        self._slice_end, self.seconds, self.building = saved.slice_end, saved.seconds, saved.building
        self.calls, self.passed[0], self.fixed = saved.calls, saved.passed, saved.fixed
