"""A measure of load, memory or CPU, with the conditions under which two slots are out of balance in it.

A pair is out of balance if all of this holds, with C the load of the slots (002, 20.3; 004, 5.1):

- C of the sender is at least T_max: otherwise no slot has too much;
- C of the receiver is at most T_min: otherwise there is no room anywhere;
- their difference is at least T_diff, and more than chance makes;
- C of the receiver is less than theta_r times C of the sender.

Once groups have begun to move, T_max does not count, and theta_r is a little higher, until no pair is out of balance.

The two measures cannot take turns for ever, because CPU comes first: a move for memory keeps CPU in a *band* around
its mean, so it never makes slots unbalanced in CPU. A move for CPU only has to find room in the receiver's memory; cold
groups may go the other way later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.decided import Balanced
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.observed import range_of_chance, smoothed_deviation
from eddyline.balance.reports import Floats, Loads
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import BalanceTuning

COLD = 0.1
"""Where slots are not balanced in CPU, groups may still move for memory if their share of CPU is at most this much of
their share of memory: their place is needed for groups that move for CPU."""


@dataclass(frozen=True)
class Band:
    """How low and how high a move may bring the load of a slot."""

    low: float = -np.inf
    high: float = np.inf
    beyond: float = -1.0
    """How much load a slot beyond them may still give or take, for as much as the mean in the measure that is balanced;
    negative: not even a group without load."""


@dataclass(frozen=True)
class Measure:
    """Load by slot and by group. Loads are bytes, or CPU seconds a batch."""

    name: Balanced
    load: Floats
    """By slot."""
    weight: Floats
    """By group."""
    first: Floats
    """By group: those with the most move first."""
    enough: float
    """T_max."""
    full: float
    """T_min."""
    apart: float
    """T_diff."""
    bound: float
    """The load that no map can make less."""
    chance: Floats
    """By slot, how far its load may be from the true one by chance."""

    def unbalanced(self, sender: int, receiver: int, loads: Floats, ratio: float) -> bool:
        """Whether one slot should give groups to another, if slots have these loads."""
        most, least = float(loads[sender]), float(loads[receiver])
        chance = float(np.hypot(self.chance[sender], self.chance[receiver]))
        far = most - least >= max(self.apart, chance) and least < ratio * most
        return far and most >= self.enough and least <= self.full

    def since(self, moving: bool) -> Measure:
        """The measure as it counts once groups are moving: they go on moving below T_max."""
        return replace(self, enough=self.bound) if moving else self

    def extremes(self, slots: NDArray[np.bool_]) -> tuple[int, int]:
        """The most and the least loaded of these slots."""
        most, least = np.where(slots, self.load, -np.inf), np.where(slots, self.load, np.inf)
        return int(most.argmax()), int(least.argmin())

    def band(self, slots: NDArray[np.bool_], stop: float) -> Band:
        """The loads between which moves for the other measure must leave slots."""
        if self.name == "memory":
            return Band(high=self.full)
        if not slots.any() or self.load[slots].max() < self.enough:
            return Band(high=self.enough)
        mean = float(self.load[slots].mean())
        return Band(stop * mean, min(max(self.enough, mean / stop), self.full), COLD * mean)


def memory_measure(loads: Loads, limit: int | None, tuning: BalanceTuning) -> Measure:
    """Bytes. The most productive groups move first: they are worth the memory that the receiver has (004, 6)."""
    enough = tuning.memory_max * limit if limit else float(tuning.floor_bytes)
    return Measure(
        "memory",
        loads.memory,
        loads.group_bytes,
        loads.group_results / np.maximum(loads.group_bytes, 1.0),
        enough,
        tuning.memory_min * limit if limit else np.inf,
        tuning.difference * (limit or enough / tuning.memory_max),
        0.0,
        np.zeros_like(loads.memory),
    )


def cpu_measure(loads: Loads, state: ManagerState, slot_map: SlotMap, tuning: BalanceTuning) -> Measure:
    """CPU seconds a batch, smoothed. While rows wait, a batch is as long as its slowest slot. It takes at least as long
    as its heaviest group, so a slot with less load than that has not too much. Groups that take the most CPU for their
    bytes move first: they are the cheapest to move."""
    cpu, waiting = state.slot_cpu, bool(loads.backlog.any())
    scale = float(cpu.max(initial=0.0)) if waiting else state.seconds
    known, places = loads.known_cpu, slot_map.places
    share = np.divide(cpu, known, out=np.zeros_like(cpu), where=known > 0)
    weight = loads.group_cpu * share[places]
    weight[[key.group for key in slot_map.hot]] = 0.0  # several slots have it
    bound = float(weight.max(initial=0.0))
    chance = state.noise * range_of_chance(cpu.size) * smoothed_deviation(tuning.smoothing, state.batch)
    return Measure(
        "cpu",
        cpu,
        weight,
        weight / np.maximum(loads.group_bytes, 1.0),
        max(tuning.cpu_max * scale, bound),
        np.inf if waiting else max(tuning.cpu_min * scale, bound),
        tuning.difference * scale,
        bound,
        cpu * chance,
    )
