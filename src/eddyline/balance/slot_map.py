"""The slot map: the slot of each partition group. It is total: every group has exactly one slot.

A map is immutable; `moved` makes another one. The fields are what a commit holds: only the groups that are not where
the even map has them take space, so the map of a job in which no group ever moved is two numbers. The even map is that
of `Partitioning.places`: neighbouring groups together.

Where slots form a grid, each axis has a map of its own, and "slot" means the place along that axis.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Places32 = NDArray[np.int32]
"""By group the number of its slot."""

MOST_SLOTS = 1 << 15
"""The most slots that a map may have."""
FAST = 1
"""The level of compression. Higher levels save a tenth of the bytes and take up to fifty times as long."""


@dataclass(frozen=True, eq=False)
class SlotMap:
    """The slot of each of `groups` groups.

    >>> even = SlotMap(slots=3, groups=7)
    >>> even.places.tolist()
    [0, 0, 0, 1, 1, 2, 2]
    >>> skewed = even.moved([3, 5], to=0)
    >>> skewed.places.tolist(), skewed.groups_of(1).tolist(), skewed.slot_of(5)
    ([0, 0, 0, 0, 1, 0, 2], [4], 0)
    >>> skewed.moved([3], to=1).moved([5], to=2) == even
    True
    """

    slots: int
    groups: int
    elsewhere: str = ""
    """How far each group is from where the even map has it, as little-endian 16-bit integers, compressed by zlib, in
    base64; empty if no group is elsewhere."""

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= MOST_SLOTS or self.groups < 1:
            raise ValueError(f"a slot map of {self.groups} groups on {self.slots} slots")
        if not 0 <= self.places.min() <= self.places.max() < self.slots:
            raise ValueError(f"a slot map with a slot that is none of {self.slots}")

    @staticmethod
    def of(slots: int, places: ArrayLike) -> SlotMap:
        """The map with these slots of the groups."""
        wanted = np.asarray(places, np.int32)
        off = wanted - _even(slots, wanted.size)
        packed = b64encode(zlib.compress(off.astype("<i2").tobytes(), FAST)).decode() if off.any() else ""
        return SlotMap(slots, wanted.size, packed)

    @cached_property
    def places(self) -> Places32:
        """By group the number of its slot; read only."""
        found = _even(self.slots, self.groups)
        if self.elsewhere:
            found = found + _unpacked(self.elsewhere, self.groups)
        found.flags.writeable = False
        return found

    def slot_of(self, group: int) -> int:
        """The slot of a group."""
        return int(self.places[group])

    def groups_of(self, slot: int) -> NDArray[np.int64]:
        """The groups of a slot, in order."""
        return np.flatnonzero(self.places == slot)

    def moved(self, groups: Iterable[int], to: int) -> SlotMap:
        """The map after these groups have moved to one slot."""
        places = self.places.copy()
        places[np.fromiter(groups, np.int64)] = to
        return SlotMap.of(self.slots, places)

    def resized(self, slots: int, weight: ArrayLike = 1.0) -> SlotMap:
        """The map with another number of slots. New slots have no group yet. The groups of slots that are gone go to
        those that stay, the heaviest group first, each to the slot with the least weight.

        >>> SlotMap(3, 9).resized(2).places.tolist(), SlotMap(1, 3).resized(2).places.tolist()
        ([0, 0, 0, 1, 1, 1, 0, 1, 0], [0, 0, 0])
        """
        places = self.places.copy()
        weights = np.broadcast_to(np.asarray(weight, np.float64), self.groups)
        homeless = np.flatnonzero(places >= slots)
        held = np.bincount(places[places < slots], weights[places < slots], slots)
        least = [(held, slot) for slot, held in enumerate(held.tolist())]
        heapify(least)
        for group in homeless[np.argsort(-weights[homeless], kind="stable")].tolist():
            load, slot = least[0]
            places[group] = slot
            heapreplace(least, (load + float(weights[group]), slot))
        return SlotMap.of(slots, places)

    def __eq__(self, other: object) -> bool:
        """By the slots of all groups: zlib may compress the same map in several ways."""
        if not isinstance(other, SlotMap):
            return NotImplemented
        return self.slots == other.slots and np.array_equal(self.places, other.places)

    def __hash__(self) -> int:
        return hash((self.slots, self.places.tobytes()))


def _even(slots: int, groups: int) -> Places32:
    return (np.arange(groups, dtype=np.int64) * slots // groups).astype(np.int32)


def _unpacked(text: str, groups: int) -> Places32:
    try:
        found = np.frombuffer(zlib.decompress(b64decode(text, validate=True)), "<i2").astype(np.int32)
    except (NotBase64, zlib.error, ValueError) as error:
        raise ValueError(f"the text of a slot map cannot be read: {error}") from error
    if found.size != groups:
        raise ValueError(f"the text of a slot map has {found.size} groups, not {groups}")
    return found
