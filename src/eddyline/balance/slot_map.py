"""The slot map: the slot of each partition group. It is total: every group has exactly one slot, where its results are
swept and its rows are logged. While a parallel track lasts (track.py), the slot of a group is the receiver, and the map
names the sender too. A hot key of a group may be shared by several slots (hot_key.py).

A map is immutable; `moved` makes another one. The fields are what a commit holds: only the groups that are not where
the even map has them take space, so the map of a job in which no group ever moved is two numbers. The even map is that
of `Partitioning.places`: neighbouring groups together.

Where slots form a grid, each axis has a map of its own, and "slot" means the place along that axis.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heapreplace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eddyline.balance.hot_key import HotKey
from eddyline.balance.track import Track
from eddyline.spill.generations import NEVER

_Int = TypeVar("_Int", np.int32, np.int64)

Places32 = NDArray[np.int32]
"""By group the number of its slot."""

NOBODY = -1
"""The sender of a group that is on no track."""
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
    >>> both = even.tracked([3], to=0)
    >>> both.slot_of(3), both.senders.tolist()
    (0, [-1, -1, -1, 1, -1, -1, -1])
    """

    slots: int
    groups: int
    elsewhere: str = ""
    """How far each group is from where the even map has it, as little-endian 16-bit integers, compressed by zlib, in
    base64; empty if no group is elsewhere."""
    tracks: tuple[Track, ...] = ()
    """The parallel tracks. A group is on at most one."""
    hot: tuple[HotKey, ...] = ()
    """The keys that several slots share. Their groups are on no track."""

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= MOST_SLOTS or self.groups < 1:
            raise ValueError(f"a slot map of {self.groups} groups on {self.slots} slots")
        if not 0 <= self.places.min() <= self.places.max() < self.slots:
            raise ValueError(f"a slot map with a slot that is none of {self.slots}")
        if self.tracks:
            on, senders = self._on_tracks(lambda track: track.sender), self.senders
            if len(on) != sum(len(track.groups) for track in self.tracks):
                raise ValueError("a slot map with a group on two tracks")
            if not NOBODY <= senders.min() <= senders.max() < self.slots or (senders == self.places).any():
                raise ValueError("a slot map with a track that is not from one slot to another")
        for key in self.hot:
            if not {self.slot_of(key.group)} <= {*key.slots} <= {*range(self.slots)}:
                raise ValueError(f"a slot map with a key that cannot be shared so: {key}")
            if any(key.group in track.groups for track in self.tracks):
                raise ValueError(f"a slot map with a shared key on a track: {key}")

    @staticmethod
    def of(slots: int, places: ArrayLike, tracks: tuple[Track, ...] = (), hot: tuple[HotKey, ...] = ()) -> SlotMap:
        """The map with these slots of the groups."""
        wanted = np.asarray(places, np.int32)
        off = wanted - _even(slots, wanted.size)
        packed = b64encode(zlib.compress(off.astype("<i2").tobytes(), FAST)).decode() if off.any() else ""
        return SlotMap(slots, wanted.size, packed, tracks, hot)

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
        """The map after these groups have moved to one slot; their tracks end, and their keys are not shared."""
        places, some = self.places.copy(), np.fromiter(groups, np.int64)
        places[some] = to
        return SlotMap.of(self.slots, places, self.ended(some.tolist()).tracks, self._hot_without(some.tolist()))

    def shared(self, hot: Iterable[HotKey]) -> SlotMap:
        """The map in which slots share these keys and no others."""
        return replace(self, hot=tuple(hot))

    def _hot_without(self, groups: Collection[int]) -> tuple[HotKey, ...]:
        return tuple(key for key in self.hot if key.group not in groups)

    # Parallel tracks

    @cached_property
    def senders(self) -> Places32:
        """By group the sender of its track, NOBODY if it is on none; read only."""
        return self._by_group(self._on_tracks(lambda track: track.sender), NOBODY, np.int32)

    @cached_property
    def epochs(self) -> NDArray[np.int64]:
        """By group the epoch that began with its track, NEVER if it is on none; read only."""
        return self._by_group(self._on_tracks(lambda track: track.epoch), NEVER, np.int64)

    def since(self, slot: int) -> NDArray[np.int64]:
        """By group the epoch since which this slot has its rows: 0 if it has all of them, or its share of a hot key,
        NEVER if it has none."""
        receives = np.where(self.senders == NOBODY, 0, self.epochs)
        found = np.where(self.places == slot, receives, np.where(self.senders == slot, 0, NEVER))
        found[[key.group for key in self.hot if slot in key.slots]] = 0
        return found

    def groups_in(self, slot: int) -> NDArray[np.int64]:
        """The groups of which a slot may have rows, in order: its own, those that it sends on a track, and those whose
        keys it shares."""
        return np.flatnonzero(self.since(slot) != NEVER)

    def tracked(self, groups: Iterable[int], to: int) -> SlotMap:
        """The map when these groups, which are on no track, begin one to a slot."""
        places, begin = self.places.copy(), dict[int, list[int]]()
        for group in (some := list(groups)):
            begin.setdefault(self.slot_of(group), []).append(group)
            places[group] = to
        new = (Track(tuple(mine), sender) for sender, mine in begin.items())
        return SlotMap.of(self.slots, places, (*self.tracks, *new), self._hot_without(some))

    def begun(self, epoch: int, newest: Mapping[str, int]) -> SlotMap:
        """The map whose new tracks begin with this epoch, after rows with these newest times."""
        tracks = (track if track.begun else replace(track, epoch=epoch, newest=newest) for track in self.tracks)
        return replace(self, tracks=tuple(tracks))

    def ended(self, groups: Collection[int]) -> SlotMap:
        """The map when the tracks of these groups are over: only their receivers have them."""
        return replace(self, tracks=tuple(_without(self.tracks, frozenset(groups))))

    def as_of(self, epoch: int) -> SlotMap:
        """The map that rows of an epoch follow: tracks that begin later do not count."""
        later = {group: track.sender for track in self.tracks if track.epoch > epoch for group in track.groups}
        if not later:
            return self
        places = self.places.copy()
        places[list(later)] = list(later.values())
        return SlotMap.of(self.slots, places, self.ended(later).tracks, self.hot)

    def _on_tracks(self, told: Callable[[Track], int]) -> dict[int, int]:
        return {group: told(track) for track in self.tracks for group in track.groups}

    def _by_group(self, known: Mapping[int, int], other: int, type: type[_Int]) -> NDArray[_Int]:
        found = np.full(self.groups, other, type)
        found[list(known)] = list(known.values())
        found.flags.writeable = False
        return found

    def resized(self, slots: int, weight: ArrayLike = 1.0) -> SlotMap:
        """The map with another number of slots, without tracks and hot keys. New slots have no group yet. The groups of
        slots that are gone go to those that stay, the heaviest group first, each to the slot with the least weight.

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
        same = self.slots == other.slots and np.array_equal(self.places, other.places)
        return same and self.tracks == other.tracks and self.hot == other.hot

    def __hash__(self) -> int:
        return hash((self.slots, self.places.tobytes(), len(self.tracks), self.hot))


def _without(tracks: Iterable[Track], groups: frozenset[int]) -> Iterator[Track]:
    """Tracks without some groups."""
    for track in tracks:
        if groups.isdisjoint(track.groups):
            yield track
        elif left := tuple(group for group in track.groups if group not in groups):
            yield replace(track, groups=left)


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
