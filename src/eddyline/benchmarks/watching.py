"""`bench watching`: what the statistics of the optimiser and its looks for a plan cost where there is nothing to gain.

Joins for which `plan=auto` stays with the multi-way join run beside `optimizer=off`, in turns batch by batch; a batch
counts with the least of some rounds, since it is the same work in each. The share of the time inside the planner is
also measured directly; it has the first look of the process in it, which measures what steps cost on this machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

from eddyline.benchmarks import Result
from eddyline.benchmarks.timed_joins import Edges, TimedJoin, timed_join
from eddyline.engine.batch import LocalEngine
from eddyline.errors import InternalError
from eddyline.settings import Settings

SECONDS, WINDOW, BATCH = 12.0, 1.0, 0.25
ROUNDS = 4
RATE = 60_000.0
JOINS: dict[str, tuple[Edges, tuple[float, ...]]] = {
    "chain of 3": (((0, 1), (1, 2)), (0.5, 0.5)),
    "star of 5": (((0, 1), (0, 2), (0, 3), (0, 4)), (0.4, 0.5, 0.6, 0.5)),
}
"""Edges and fan-outs: hardly anything is computed twice, so an intermediate state does not pay."""
RATIO, SHARE = 1.02, 0.02
WATCHING = "watch", "propose"

_log = logging.getLogger(__name__)


class _Timed:
    """A method, and the seconds that its calls took."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method, self.seconds = method, 0.0

    def __call__(self, *args: Any) -> Any:
        begin = perf_counter()
        try:
            return self._method(*args)
        finally:
            self.seconds += perf_counter() - begin


def run() -> list[Result]:
    """All joins."""
    return [result for number, case in enumerate(JOINS) for result in _compare(case, number)]


def _compare(case: str, seed: int) -> list[Result]:
    edges, fan_outs = JOINS[case]
    join = timed_join([RATE] * (len(edges) + 1), edges, fan_outs, SECONDS, WINDOW, seed)
    rounds, shares = [], []
    for number in range(ROUNDS):
        seconds, share = _round(join)
        rounds.append(seconds)
        shares.append(share)
        _log.info("%s, round %d of %d: %.2f s, %.2f s with the optimiser", case, number + 1, ROUNDS, *seconds.sum(1))
    off, on = np.min(rounds, axis=0).sum(axis=1)
    ratio = float(on / off)
    watch, propose = (float(share) for share in np.mean(shares, axis=0))
    return [
        Result(case, "CPU / without the optimiser", ratio, "", RATIO, ratio <= RATIO),
        Result(case, "share of watching and looking for plans", watch + propose, "", SHARE, watch + propose <= SHARE),
        Result(case, "share of watching", watch, ""),
        Result(case, "share of looking for plans", propose, ""),
    ]


def _round(join: TimedJoin) -> tuple[np.ndarray[Any, np.dtype[np.float64]], list[float]]:
    """CPU seconds by side and batch, and the shares of the time of the second side that each part of watching took."""
    engines = [LocalEngine(join.query, Settings(optimizer="off")), LocalEngine(join.query, Settings())]
    off, on = (engine.slot for engine in engines)
    timed = [_Timed(getattr(on.planner, name)) for name in WATCHING]
    for name, method in zip(WATCHING, timed, strict=True):
        setattr(on.planner, name, method)
    seconds = np.zeros((2, round(SECONDS / BATCH)))
    passed = 0.0
    for step, rows in enumerate(join.batches(BATCH)):
        for side in (0, 1) if step % 2 else (1, 0):
            begin, wall = process_time(), perf_counter()
            engines[side].batch(rows)
            seconds[side, step] = process_time() - begin
            passed += side * (perf_counter() - wall)
    if on.plan.tree != off.plan.tree:
        raise InternalError(f"{on.plan.text} was taken, and the benchmark is about a plan that stays")
    return seconds, [method.seconds / passed for method in timed]
