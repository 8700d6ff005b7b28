"""What the manager learns from the reports of a batch: smoothed CPU by slot, and how much of it is chance.

CPU is noisy from batch to batch, memory is not. The noise is the typical distance of a slot's share of the CPU from
its smoothed share, over all slots (a median, so a slot whose load really changes does not count). Shares are compared
and not seconds, because batches differ in size. A slot that is much further away than that has changed: then the last
batch counts for more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eddyline.balance.manager_state import ManagerState, packed_cpu
from eddyline.balance.reports import Floats, Loads
from eddyline.balance.tuning import BalanceTuning

DEVIATION = 1.4826
"""A normal deviation over the median of absolute deviations."""
LASTING = 1000
"""Batches in which chance should move nothing."""


def observed(state: ManagerState, loads: Loads, seconds: float, tuning: BalanceTuning) -> ManagerState:
    """The state after one more batch. Where the number of slots has changed, it begins anew."""
    if state.slot_cpu.size != loads.cpu.size:
        state = ManagerState()
    weight = max(tuning.smoothing, 1 / (state.batch + 1))
    before = state.slot_cpu if state.batch else np.zeros_like(loads.cpu)
    apart = _apart(before, loads.cpu)
    changed = (state.noise > 0) & (apart > tuning.surprise * range_of_chance(apart.size) * state.noise)
    return replace(
        state,
        batch=state.batch + 1,
        cpu=packed_cpu(before + np.where(changed, max(weight, tuning.quick), weight) * (loads.cpu - before)),
        seconds=state.seconds + weight * (seconds - state.seconds),
        noise=_noise(state, apart[before > 0], tuning),
    )


def _apart(before: Floats, cpu: Floats) -> Floats:
    """By slot, how far its share of the CPU is from the smoothed share, in multiples of the latter."""
    if not before.any() or not cpu.any():
        return np.zeros_like(cpu)
    shares, expected = cpu / cpu.mean(), before / before.mean()
    found: Floats = np.abs(np.divide(shares, expected, out=np.ones_like(cpu), where=expected > 0) - 1)
    return found


def _noise(state: ManagerState, apart: Floats, tuning: BalanceTuning) -> float:
    if not apart.any():
        return state.noise
    now = DEVIATION * float(np.median(apart)) / np.hypot(1, smoothed_deviation(tuning.smoothing, state.batch))
    return float(state.noise + max(tuning.smoothing / 2, 1 / state.batch) * (now - state.noise))


def range_of_chance(slots: int) -> float:
    """How many standard deviations a load may be away from the true one by chance, in any slot and any of `LASTING`
    batches: the largest of n normal values is rarely above the square root of 2 ln 2n.

    >>> round(range_of_chance(2), 1), round(range_of_chance(1000), 1)
    (4.1, 5.4)
    """
    return float(np.sqrt(2 * np.log(2 * slots * LASTING)))


def smoothed_deviation(smoothing: float, batches: int) -> float:
    """The deviation of a value smoothed over so many batches, in deviations of a single one.

    >>> [round(smoothed_deviation(0.2, batches), 2) for batches in (1, 4, 99)]
    [1.0, 0.5, 0.33]
    """
    return float(max(np.sqrt(smoothing / (2 - smoothing)), 1 / np.sqrt(max(1, batches))))
