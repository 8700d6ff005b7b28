"""Which keys several slots share: those whose load no slot should have alone, and no map of groups can divide.

The load of a key is its share of the rows of its group, times the CPU of the group, in multiples of the mean CPU of
slots. From `hot` on a key is shared, by as many slots as give each at most `part`. Below `cool` it is not shared any
more. Between the two nothing changes, so that a key does not come and go. The source with the most rows of the key is
spread; another one takes its place if it has many more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eddyline.balance.decided import KeyShare
from eddyline.balance.hot_key import HotKey, KeyCount, added
from eddyline.balance.manager_state import PressingKey
from eddyline.balance.measure import Measure
from eddyline.balance.pairing import Mask
from eddyline.balance.reports import Floats, Loads
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import BalanceTuning


@dataclass(frozen=True)
class _Load:
    """The load of a key."""

    code: int
    group: int
    rows: dict[int, int]
    """Its rows by source, of the last batch."""
    share: float
    """Its share of the rows of its group."""
    load: float
    """In multiples of the mean CPU of slots."""

    @property
    def largest(self) -> int:
        """The source with the most rows of the key."""
        return max(self.rows, key=lambda source: (self.rows[source], -source))


@dataclass(frozen=True)
class SharedKeys:
    """Keys that are shared from now on or not any more, and what is remembered of others."""

    shares: tuple[KeyShare, ...] = ()
    pressing: tuple[PressingKey, ...] = ()


def with_shares(hot: Sequence[HotKey], shares: Sequence[KeyShare]) -> tuple[HotKey, ...]:
    """The shared keys after these changes."""
    changed = {share.key.code for share in shares}
    return (*(key for key in hot if key.code not in changed), *(share.key for share in shares if share.is_shared))


def shared_keys(
    pressing: Sequence[PressingKey],
    slot_map: SlotMap,
    counts: Sequence[KeyCount],
    loads: Loads,
    cpu: Measure,
    movable: Mask,
    busy: float,
    tuning: BalanceTuning,
) -> SharedKeys:
    """What changes after a batch with these counts of keys. `movable` are groups whose rows may be opened anew, and
    `busy` is the CPU from which on a slot has much to do."""
    mean = float(loads.cpu[loads.known].mean()) if loads.known.any() else 0.0
    if mean <= 0 or slot_map.slots == 1:
        return SharedKeys()
    shared, before = {key.code: key for key in slot_map.hot}, {one.code: one.batches for one in pressing}
    found, still = list[KeyShare](), list[PressingKey]()
    for key in _key_loads(counts, slot_map, loads.group_cpu / mean):
        now = shared.get(key.code)
        wanted, patience = (
            (_to_share(key, slot_map, cpu.load, busy, tuning), tuning.patience)
            if now is None
            else (_otherwise(key, now, slot_map, cpu.load, tuning), tuning.cool_patience)
        )
        if wanted is None or not movable[key.group]:
            continue
        batches = before.get(key.code, 0) + 1
        if batches >= patience:
            found.append(wanted)
        else:
            still.append(PressingKey(key.code, batches))
    return SharedKeys(tuple(found), tuple(still))


def _key_loads(counts: Sequence[KeyCount], slot_map: SlotMap, weight: Floats) -> Iterator[_Load]:
    """The keys that were counted, the heaviest first, then those that are shared and were not."""
    by_key: dict[int, list[KeyCount]] = {}
    for one in added(counts):
        by_key.setdefault(one.code, []).append(one)
    found = []
    for code, some in by_key.items():
        share = sum(one.rows for one in some) / max(1, sum(one.among for one in some))
        group = some[0].group
        found.append(_Load(code, group, {one.source: one.rows for one in some}, share, share * float(weight[group])))
    yield from sorted(found, key=lambda key: -key.load)
    for key in slot_map.hot:
        if key.code not in by_key:
            yield _Load(key.code, key.group, {key.source: 0}, 0.0, 0.0)


def _to_share(key: _Load, slot_map: SlotMap, cpu: Floats, busy: float, tuning: BalanceTuning) -> KeyShare | None:
    home = slot_map.slot_of(key.group)
    if key.load < tuning.hot or cpu[home] < busy:
        return None
    hot = HotKey(key.code, key.group, key.largest, _slots(key, home, cpu, tuning))
    why = (
        f"it has {key.share:.0%} of the rows of group {key.group}, and {key.load:.2f} times the mean CPU of slots,"
        f" which is more than {tuning.hot:g}"
    )
    return KeyShare(hot, True, why, {"load": key.load, "share": key.share})


def _otherwise(key: _Load, now: HotKey, slot_map: SlotMap, cpu: Floats, tuning: BalanceTuning) -> KeyShare | None:
    """How a shared key should be shared from now on, if not as it is."""
    measured = {"load": key.load, "share": key.share}
    if key.load < tuning.cool:
        why = f"it has only {key.load:.2f} times the mean CPU of slots, which is less than {tuning.cool:g}"
        return KeyShare(now, False, why, measured)
    slots = _slots(key, slot_map.slot_of(key.group), cpu, tuning)
    if key.rows[key.largest] > tuning.larger * key.rows.get(now.source, 0):
        why = f"source {key.largest} has {key.rows[key.largest]} rows of it, source {now.source} fewer"
        return KeyShare(replace(now, source=key.largest, slots=slots), True, why, measured)
    if key.load / len(now.slots) > tuning.hot and len(slots) > len(now.slots):
        why = f"it has {key.load:.2f} times the mean CPU of slots, too much for {len(now.slots)} of them"
        return KeyShare(replace(now, slots=slots), True, why, measured)
    return None


def _slots(key: _Load, home: int, cpu: Floats, tuning: BalanceTuning) -> tuple[int, ...]:
    """The slots that should share a key: that of its group, and those with the least load."""
    count = min(cpu.size, max(2, int(np.ceil(key.load / tuning.part))))
    others = [slot for slot in np.argsort(cpu, kind="stable").tolist() if slot != home]
    return (home, *others[: count - 1])


def shifted(cpu: Floats, slot_map: SlotMap, shares: Sequence[KeyShare], mean: float) -> Floats:
    """The CPU of slots when keys are shared so."""
    found, before = cpu.copy(), {key.code: key.slots for key in slot_map.hot}
    for share in shares:
        load, home = share.measured["load"] * mean, slot_map.slot_of(share.key.group)
        had, has = before.get(share.key.code, (home,)), share.key.slots if share.is_shared else (home,)
        found[list(had)] -= load / len(had)
        found[list(has)] += load / len(has)
    return np.maximum(found, 0.0)
