"""Workloads for simulated slots: how the load of groups drifts, jumps, alternates and grows.

A slot can do a batch of mean load in `BUSY` of its interval, if all slots have the same load.
"""

from __future__ import annotations

import numpy as np

from eddyline.balance.reports import Floats
from eddyline.balance.slot_map import Places32, SlotMap
from lab.bench.simulated_slots import RESULT_COST, ROW_BYTES, ROW_SECONDS, Rates, Workload

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
    return lambda batch, places: rates


def even(slots: int, groups: int, hours: float) -> Workload:
    """All groups alike; the noise of CPU is 10 %."""
    return Workload("even", SlotMap(slots, groups), _steady(np.ones(groups), slots), _batches(hours), noise=0.1)


def drift(slots: int, groups: int, hours: float) -> Workload:
    """Zipf weights around a hottest group, which wanders by a group each batch. Neighbouring groups are in one slot at
    first."""
    batches = _batches(hours)
    distance = np.minimum(np.arange(groups), groups - np.arange(groups)) + 1.0
    weights = _scaled(distance**-ZIPF, slots)
    return Workload("drift", SlotMap(slots, groups), lambda batch, places: np.roll(weights, batch), batches)


def step(slots: int, groups: int, hours: float, seed: int = 0) -> Workload:
    """At half time the groups of a tenth of the slots have ten times the load they had."""
    batches, places = _batches(hours), SlotMap(slots, groups).places
    hot = np.isin(places, np.random.default_rng(seed).choice(slots, max(1, slots // 10), replace=False))
    before, after = _scaled(np.ones(groups), slots), _scaled(np.where(hot, TIMES, 1.0), slots)
    return Workload(
        "step", SlotMap(slots, groups), lambda batch, places: before if 2 * batch < batches else after, batches
    )


def alternating(slots: int, groups: int, hours: float) -> Workload:
    """Halves of the groups are busy in turns: the first for five minutes, then each for ten (004, 5.2)."""
    first = np.arange(groups) * 2 < groups
    halves = [_scaled(np.where(first == busy, TIMES, 1.0), slots) for busy in (True, False)]
    return Workload(
        "alternating",
        SlotMap(slots, groups),
        lambda batch, places: halves[_busy_half(batch * SECONDS)],
        _batches(hours),
    )


def busy_machine(groups: int = 500, seconds: float = 5.0) -> Workload:
    """An hour of the extreme case of 004, 5.2: the groups that one of two machines has at the time get ten times the
    rows of the others, in turns, so moves never help for long. Rows never expire, memory is large, CPU no matter."""

    def rates(batch: int, places: Places32) -> Floats:
        found: Floats = np.where(places == _busy_half(batch * seconds), TIMES, 1.0) * 20
        return found

    whole, batches = 1 << 40, round(3600 / seconds)
    return Workload("busy machine", SlotMap(2, groups), rates, batches, seconds, np.inf, noise=0.0, limit=whole)


def _busy_half(seconds: float) -> int:
    return int((seconds / 60 + 5) // 10) % 2


def join_ratios(slot_map: SlotMap, batches: int = 360) -> Workload:
    """A third of the groups has join ratio 4, the others 1 (004, 6.1). Rows never expire; in the end the state is twice
    as large as the limit of all slots."""
    groups, rows = slot_map.groups, 1000.0
    ratio = np.where(np.arange(groups) * 3 < groups, 4.0, 1.0)
    limit = round(groups / slot_map.slots * rows * ROW_BYTES * batches / 2)
    rates = np.full(groups, rows)
    return Workload("join ratios", slot_map, lambda batch, places: rates, batches, SECONDS, np.inf, ratio, 0.02, limit)


def two_thirds(groups: int = 60) -> SlotMap:
    """One of three slots has two thirds of the groups (004, 6.1)."""
    return SlotMap.of(3, np.repeat([0, 1, 2], [groups * 2 // 3, groups // 6, groups - groups * 2 // 3 - groups // 6]))


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

    def grown(batch: int, places: Places32) -> Floats:
        found = rates.copy()
        found[growing_group(groups)] *= whole ** (batch / batches)
        return found

    return Workload("growing", SlotMap(slots, groups), grown, batches)


def growing_group(groups: int) -> int:
    """The group that grows."""
    return groups // 3


def _batches(hours: float) -> int:
    return round(hours * 3600 / SECONDS)


WORKLOADS = (even, drift, step, alternating, one_slot, growing)
