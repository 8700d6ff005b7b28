"""Work that is counted, not timed: probes, matches and predicate calls, each times its calibrated cost.

A stretch of a few thousand tuples takes milliseconds, too short to time; counts are exact over any stretch. The costs
are measured once, on this machine, over large packets, so counted work is the time without the noise.

The least work of any order of predicates over the same rows is exact too: the number of rows that reach a predicate
depends only on the set of predicates before it, so the best order is a shortest path over sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eddyline.plan.steps import Probe, Select
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench.costly import Costly
from lab.bench.streams import query_over, run_engine, streams

_PACKET, _ROWS, _WINDOW, _TRIES = 16384, 131072, 16384, 5
_FEW_PASSES, _MANY_PASSES = 50, 500
_FEW, _MANY = 0.1, 8.0
_LEAST = 1e-9
"""The least cost in seconds of anything, for the case that a calibration is disturbed."""


@dataclass(frozen=True)
class Costs:
    """Seconds of one probe, of one match of a probe, of calling a predicate for one row, and of one of its passes."""

    probe: float
    match: float
    call: float
    a_pass: float

    def predicate(self, passes: float) -> float:
        """Seconds of a predicate for one row."""
        return self.call + passes * self.a_pass


@dataclass(frozen=True)
class ProbeCounts:
    """Counted work; `calls[i]` is the number of rows for which selection i was called."""

    probes: int
    matches: int
    calls: tuple[int, ...]

    def __sub__(self, before: ProbeCounts) -> ProbeCounts:
        calls = tuple(now - then for now, then in zip(self.calls, before.calls, strict=True))
        return ProbeCounts(self.probes - before.probes, self.matches - before.matches, calls)

    def work(self, costs: Costs, passes: Sequence[float] = ()) -> float:
        """The work in seconds, if predicate i takes `passes[i]` passes."""
        predicates = sum(n * costs.predicate(k) for n, k in zip(self.calls, passes, strict=True))
        return self.probes * costs.probe + self.matches * costs.match + predicates


def counts_of(engine: BatchDriver) -> ProbeCounts:
    """Everything an engine did since its start."""
    probes = matches = 0
    calls = [0] * len(engine.slot.executor.plan.graph.selections)
    for entry in engine.slot.executor.eddy.routes.entries.values():
        for traffic in entry.steps:
            if isinstance(traffic.step, Select):
                calls[traffic.step.selection] += traffic.tuples
            else:
                probes += traffic.tuples
                matches += traffic.produced
    return ProbeCounts(probes, matches, tuple(calls))


def reached(truth: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each set of predicates (a bit mask) the number of rows for which all of them are true.

    >>> reached(np.array([[True, False], [True, True]])).tolist()
    [2, 2, 1, 1]
    """
    predicates = truth.shape[1]
    patterns = truth @ (1 << np.arange(predicates))
    rows = np.bincount(patterns, minlength=1 << predicates)
    for i in range(predicates):
        with_i = np.flatnonzero(np.arange(rows.size) >> i & 1)
        rows[with_i ^ (1 << i)] += rows[with_i]
    return rows


def least_work(truth: NDArray[np.bool_], costs: Sequence[float]) -> tuple[float, tuple[int, ...]]:
    """The least that any order of the predicates costs for these rows, and that order.

    >>> least_work(np.array([[True, False], [True, True]]), [1.0, 1.5])
    (4.0, (1, 0))
    """
    rows = reached(truth)
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for done in range(1, rows.size):
        ways = []
        for i, cost in enumerate(costs):
            if done >> i & 1:
                before, order = best[done ^ (1 << i)]
                ways.append((before + float(rows[done ^ (1 << i)]) * cost, (*order, i)))
        best.append(min(ways))
    return best[-1]


def work_of(truth: NDArray[np.bool_], costs: Sequence[float], order: Sequence[int]) -> float:
    """The work of one order for these rows.

    >>> work_of(np.array([[True, False], [True, True]]), [1.0, 1.5], (0, 1))
    5.0
    """
    left, work = np.ones(truth.shape[0], np.bool_), 0.0
    for i in order:
        work += int(left.sum()) * costs[i]
        left = left & truth[:, i]
    return work


def calibrate() -> Costs:
    """Measure the costs on this machine: the least of a few tries that take turns, since noise only adds."""
    few = many = s0 = s1 = float("inf")
    f0 = f1 = 0.0
    for _ in range(_TRIES):
        few, many = min(few, _predicate_seconds(_FEW_PASSES)), min(many, _predicate_seconds(_MANY_PASSES))
        (f0, next0), (f1, next1) = _probe_seconds(_FEW), _probe_seconds(_MANY)
        s0, s1 = min(s0, next0), min(s1, next1)
    a_pass = max((many - few) / (_MANY_PASSES - _FEW_PASSES), _LEAST)
    match = max((s1 - s0) / (f1 - f0), _LEAST)
    return Costs(max(s0 - f0 * match, _LEAST), match, max(few - _FEW_PASSES * a_pass, _LEAST), a_pass)


def _predicate_seconds(passes: int) -> float:
    """Seconds of one predicate with `passes` passes for one row, in large packets."""
    data = {"s": streams({"s": ["c0"]}, _ROWS, domain=2, every=100)["s"]}
    query = query_over(data, f"SELECT s.v AS v FROM s [RANGE 1 SECOND] WHERE {Costly([passes]).conjuncts('s')}")
    return _seconds(run_engine(query, data, _PACKET, _fixed())[1], Select)[1]


def _probe_seconds(fan_out: float) -> tuple[float, float]:
    """Matches and seconds of one probe, in large packets."""
    domain = round(_WINDOW / fan_out)
    data = streams({"a": ["k"], "b": ["k"]}, _ROWS, domain, every=1)
    select = f"SELECT a.v AS v FROM a [RANGE {_WINDOW} MICROSECONDS], b [RANGE {_WINDOW} MICROSECONDS] WHERE a.k = b.k"
    return _seconds(run_engine(query_over(data, select), data, _PACKET, _fixed())[1], Probe)


def _fixed() -> Settings:
    return Settings(router="fixed", packet=_PACKET, plan="mjoin")


def _seconds(engine: BatchDriver, kind: type[Probe] | type[Select]) -> tuple[float, float]:
    """For all steps of a kind: the tuples that came out and the seconds, both per tuple that went in."""
    steps = [t for e in engine.slot.executor.eddy.routes.entries.values() for t in e.steps if isinstance(t.step, kind)]
    tuples = sum(t.tuples for t in steps)
    return sum(t.produced for t in steps) / tuples, sum(t.seconds for t in steps) / tuples
