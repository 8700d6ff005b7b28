"""A slot map for another number of slots."""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import ArrayLike

from eddyline.balance.slot_map import SlotMap


def spread(slot_map: SlotMap, slots: int, weight: ArrayLike = 1.0) -> SlotMap:
    """The map with this number of slots, in which all slots have about the same weight. Groups move only from slots
    that are gone, and from slots above the mean until they are at it; the heaviest group first, each to the slot with
    the least weight.

    >>> spread(SlotMap(2, 8), 4).places.tolist(), spread(SlotMap(3, 9), 2).places.tolist()
    ([2, 3, 0, 0, 2, 3, 1, 1], [0, 0, 0, 1, 1, 1, 0, 1, 0])
    >>> spread(SlotMap(2, 4), 3, [6, 1, 1, 4]).places.tolist()
    [0, 2, 2, 1]
    """
    places = slot_map.resized(slots, weight).places.copy()
    weights = np.broadcast_to(np.asarray(weight, np.float64), places.size)
    held = np.bincount(places, weights, slots)
    mean, moving = float(weights.sum()) / slots, list[int]()
    heaviest_first = np.argsort(-weights, kind="stable")
    for group in heaviest_first.tolist():
        slot = places[group]
        if held[slot] - weights[group] >= mean:
            held[slot] -= weights[group]
            moving.append(group)
    least = [(load, slot) for slot, load in enumerate(held.tolist())]
    heapify(least)
    for group in moving:
        load, slot = least[0]
        places[group] = slot
        heapreplace(least, (load + float(weights[group]), slot))
    return SlotMap.of(slots, places)
