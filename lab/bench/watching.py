"""`bench watching`: the cost of the optimizer's statistics and searches where there is nothing to gain.

Joins for which `plan=auto` keeps the multi-way join run beside `optimizer=off`, in turns batch by batch; a batch counts
with its least time over some rounds, because its work is the same in each. The planner's share of the CPU time is also
measured directly. Both leave out the first search of a process, which measures the costs of steps on this machine; it
is reported in seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from eddyline.engine.finished_batch import FinishedBatch
from eddyline.engine.plan_source import NewPlan, Running
from eddyline.engine.planner import Planner
from eddyline.errors import InternalError
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.plan.plan import Plan
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.timed_joins import Edges, TimedJoin, timed_join

SECONDS, WINDOW, BATCH = 12.0, 1.0, 0.25
ROUNDS = 4
RATE = 60_000.0
JOINS: dict[str, tuple[Edges, tuple[float, ...]]] = {
    "chain of 3": (((0, 1), (1, 2)), (0.5, 0.5)),
    "star of 5": (((0, 1), (0, 2), (0, 3), (0, 4)), (0.4, 0.5, 0.6, 0.5)),
}
"""Edges and fan-outs of joins in which hardly anything is computed twice, so an intermediate state does not pay."""
RATIO, SHARE = 1.02, 0.02

_log = logging.getLogger(__name__)


class _Timed(Planner):
    """A planner that notes the CPU seconds of each call of `watch` and of `next_plan`."""

    def __init__(self, plan: Plan, settings: Settings, clock: Callable[[], float], tuning: OptimizerTuning) -> None:
        super().__init__(plan, settings, clock, tuning)
        self.watching, self.looking = list[float](), list[float]()

    def watch(self, running: Running, batch: FinishedBatch) -> None:
        begin = process_time()
        super().watch(running, batch)
        self.watching.append(process_time() - begin)

    def next_plan(self, running: Running) -> NewPlan | None:
        begin = process_time()
        new = super().next_plan(running)
        self.looking.append(process_time() - begin)
        return new


def run() -> list[Result]:
    """Measure all joins."""
    return [result for number, case in enumerate(JOINS) for result in _compare(case, number)]


def _compare(case: str, seed: int) -> list[Result]:
    edges, fan_outs = JOINS[case]
    join = timed_join([RATE] * (len(edges) + 1), edges, fan_outs, SECONDS, WINDOW, seed)
    _, calls = _round(join)
    once = max(calls[1])
    rounds, inside = [], []
    for number in range(ROUNDS):
        seconds, calls = _round(join)
        rounds.append(seconds)
        inside.append([sum(of_part) for of_part in calls])
        _log.info("%s, round %d of %d: %.2f s, %.2f s with the optimizer", case, number + 1, ROUNDS, *seconds.sum(1))
    off, on = np.min(rounds, axis=0).sum(axis=1)
    ratio = float(on / off)
    watch, propose = (float(share) for share in np.min(inside, axis=0) / on)
    return [
        Result(case, "CPU / without the optimizer", ratio, "", RATIO, ratio <= RATIO),
        Result(case, "share of watching and looking for plans", watch + propose, "", SHARE, watch + propose <= SHARE),
        Result(case, "share of watching", watch, ""),
        Result(case, "share of looking for plans", propose, ""),
        Result(case, "longest look before the rounds", once, "s"),
    ]


def _round(join: TimedJoin) -> tuple[np.ndarray[Any, np.dtype[np.float64]], list[list[float]]]:
    """CPU seconds by side and batch, and those of the calls of each part of watching."""
    engines = [BatchDriver(join.query, Settings(optimizer="off")), BatchDriver(join.query, Settings(), plans=_Timed)]
    off, on = (engine.slot.executor for engine in engines)
    seconds = np.zeros((2, round(SECONDS / BATCH)))
    for step, rows in enumerate(join.batches(BATCH)):
        for side in (0, 1) if step % 2 else (1, 0):
            begin = process_time()
            engines[side].batch(rows)
            seconds[side, step] = process_time() - begin
    if on.plan.tree != off.plan.tree:
        raise InternalError(f"{on.plan.text} was taken, and the benchmark is about a plan that stays")
    timed = engines[1].slot.plans
    assert isinstance(timed, _Timed)
    return seconds, [timed.watching, timed.looking]
