"""Random slot maps: before some batches, some partition groups move to other slots, at once or by parallel track,
and slots share some keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from eddyline.balance.hot_key import HotKey
from eddyline.balance.slot_map import NOBODY, SlotMap
from eddyline.protocol.adapted import Adapted, AfterBatch

MOVE = 0.5
"""The share of batches before which groups move."""
TRACK = 0.7
"""The share of moves that are parallel tracks, where these are allowed."""
GIVE_UP, MOVE_ON = 0.15, 0.1
"""The share of batches before which tracks are given up, for the receiver or for the sender; and of groups on tracks
that move on, among those that would move at once."""
RESIZE, SLOTS = 0.3, (2, 2, 3, 4, 6)
"""The share of batches before which there is another number of slots, and these numbers."""

HOT = 0.3
"""The share of batches before which slots share other keys than before."""

done: Counter[str] = Counter()
"""The number of groups that moved, of keys that were shared, and of slots that came and went, in this process."""


class RandomPlaces:
    """Draws the slot of each group before each batch."""

    def __init__(self, seed: int, tracks: bool = False) -> None:
        """With `tracks`, groups move by parallel track too. With half of the seeds they move in no other way, and slots
        seldom come or go: so results of many rows come while tracks last."""
        self._rng, self._tracks = Random(seed), tracks
        self._only_tracks = tracks and seed % 2 == 0
        self._seen: dict[tuple[int, int], int] = {}
        """Keys that tasks have counted: their sources, codes and groups."""

    def __call__(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        """The slot of each group in the next batch."""
        self._seen |= {(key.source, key.code): key.group for record in after.records for key in record.keys}
        slot_map = self._next(so_far.slot_map)
        if self._rng.random() < HOT:
            slot_map = slot_map.shared(self._hot(slot_map))
            done["shared"] += len(slot_map.hot)
        done["moved"] += int((slot_map.places != so_far.slot_map.places).sum())
        done["come"] += max(0, slot_map.slots - so_far.slot_map.slots)
        done["gone"] += max(0, so_far.slot_map.slots - slot_map.slots)
        return replace(so_far, slot_map=slot_map)

    def _next(self, slot_map: SlotMap) -> SlotMap:
        rng, share = self._rng, self._rng.choice([0.5, 1.0] if self._only_tracks else [0.02, 0.3, 1.0])
        resize = RESIZE / 2 if self._only_tracks else RESIZE
        if rng.random() < resize and (slots := rng.choice(SLOTS)) != slot_map.slots:
            return self._resized(slot_map, slots, share)
        if slot_map.tracks and rng.random() < GIVE_UP:
            slot_map = self._given_up(slot_map)
        if rng.random() >= MOVE:
            return slot_map
        to = {group: rng.randrange(slot_map.slots) for group in range(slot_map.groups) if rng.random() < share}
        free = slot_map.senders == NOBODY
        by_track = self._only_tracks or (self._tracks and rng.random() < TRACK)
        if by_track:
            others = {group: rng.randrange(1, slot_map.slots) for group in to if free[group]}
            to = {group: (slot_map.slot_of(group) + far) % slot_map.slots for group, far in others.items()}
        else:
            to = {group: slot for group, slot in to.items() if free[group] or rng.random() < MOVE_ON}
        for slot in range(slot_map.slots):
            groups = [group for group, place in to.items() if place == slot]
            slot_map = slot_map.tracked(groups, slot) if by_track else slot_map.moved(groups, slot)
        return slot_map

    def _hot(self, slot_map: SlotMap) -> Iterator[HotKey]:
        """Some of the keys that were seen. The source that is spread is any that has keys."""
        rng, sources = self._rng, sorted({source for source, _ in self._seen})
        seen = {(code, group) for (_, code), group in self._seen.items()}
        keys = sorted((code, group) for code, group in seen if slot_map.senders[group] == NOBODY)
        for code, group in rng.sample(keys, min(len(keys), rng.choice([0, 1, 2, 5]))):
            place = slot_map.slot_of(group)
            others = [slot for slot in range(slot_map.slots) if slot != place and rng.random() < 0.7]
            yield HotKey(code, group, rng.choice(sources), tuple(rng.sample([place, *others], len(others) + 1)))

    def _resized(self, slot_map: SlotMap, slots: int, share: float) -> SlotMap:
        """Groups of slots that are gone move, and some of the others; all tracks are given up."""
        rng, places = self._rng, slot_map.places.tolist()
        moved = [rng.randrange(slots) if p >= slots or rng.random() < share else p for p in places]
        return SlotMap.of(slots, moved)

    def _given_up(self, slot_map: SlotMap) -> SlotMap:
        """Groups on a track have one slot again, before the track is over."""
        for track in slot_map.tracks:
            some = [group for group in track.groups if self._rng.random() < 0.5]
            slot_map = slot_map.ended(some) if self._rng.random() < 0.5 else slot_map.moved(some, track.sender)
        return slot_map
