"""Workloads for simulated slots: how the load of groups drifts, jumps, alternates and grows.

A slot can do a batch of mean load in `BUSY` of its interval, if all slots have the same load.
"""

from __future__ import annotations

import numpy as np

from eddyline.balance.reports import Floats
from eddyline.balance.slot_map import SlotMap
from eddyline.benchmarks.simulated_slots import RESULT_COST, ROW_SECONDS, Rates, Workload

BUSY = 0.6
SECONDS = 10.0
ZIPF = 0.4
"""The exponent of the weights of groups around the hottest one."""
HEAVY = 0.86
"""The share of one slot in a case that users of another engine have reported."""
TIMES = 10.0
"""How many times the rows of the others a busy half has (004, 5.2)."""


def _scaled(weights: Floats, slots: int, seconds: float = SECONDS) -> Floats:
    """Rows a batch, such that slots are `BUSY` on average."""
    rows = BUSY * seconds * slots / (ROW_SECONDS * (1 + RESULT_COST))
    scaled: Floats = weights / weights.sum() * rows
    return scaled


def _steady(weights: Floats, slots: int) -> Rates:
    rates = _scaled(weights, slots)
    return lambda batch: rates


def even(slots: int, groups: int, hours: float) -> Workload:
    """All groups alike; the noise of CPU is 10 %."""
    return Workload("even", SlotMap(slots, groups), _steady(np.ones(groups), slots), _batches(hours), noise=0.1)


def drift(slots: int, groups: int, hours: float) -> Workload:
    """Zipf weights around a hottest group, which wanders by a group each batch. Neighbouring groups are in one slot at
    first."""
    batches = _batches(hours)
    distance = np.minimum(np.arange(groups), groups - np.arange(groups)) + 1.0
    weights = _scaled(distance**-ZIPF, slots)
    return Workload("drift", SlotMap(slots, groups), lambda batch: np.roll(weights, batch), batches)


def step(slots: int, groups: int, hours: float, seed: int = 0) -> Workload:
    """At half time the groups of a tenth of the slots have ten times the load they had."""
    batches, places = _batches(hours), SlotMap(slots, groups).places
    hot = np.isin(places, np.random.default_rng(seed).choice(slots, max(1, slots // 10), replace=False))
    before, after = _scaled(np.ones(groups), slots), _scaled(np.where(hot, TIMES, 1.0), slots)
    return Workload("step", SlotMap(slots, groups), lambda batch: before if 2 * batch < batches else after, batches)


def alternating(slots: int, groups: int, hours: float) -> Workload:
    """Halves of the groups are busy in turns: the first for five minutes, then each for ten (004, 5.2). Rows never
    expire."""
    first = np.arange(groups) * 2 < groups
    halves = [_scaled(np.where(first == busy, TIMES, 1.0), slots) for busy in (True, False)]

    def rates(batch: int) -> Floats:
        minutes = batch * SECONDS / 60
        return halves[int((minutes + 5) // 10) % 2]

    return Workload("alternating", SlotMap(slots, groups), rates, _batches(hours), window=np.inf)


def one_slot(slots: int, groups: int, hours: float, share: float = HEAVY) -> Workload:
    """One slot has most of the groups, all of which are alike."""
    here = round(share * groups)
    places = np.zeros(groups, np.int64)
    places[here:] = 1 + np.arange(groups - here) * (slots - 1) // (groups - here)
    return Workload("one slot", SlotMap.of(slots, places), _steady(np.ones(groups), slots), _batches(hours))


def growing(slots: int, groups: int, hours: float) -> Workload:
    """One group grows slowly, from a load like the others to that of two slots."""
    batches, rates = _batches(hours), _scaled(np.ones(groups), slots)
    whole = 2 * groups / slots

    def grown(batch: int) -> Floats:
        found = rates.copy()
        found[groups // 3] *= whole ** (batch / batches)
        return found

    return Workload("growing", SlotMap(slots, groups), grown, batches)


def _batches(hours: float) -> int:
    return round(hours * 3600 / SECONDS)


WORKLOADS = (even, drift, step, alternating, one_slot, growing)
