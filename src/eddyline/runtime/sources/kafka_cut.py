"""Where a batch ends in each partition, if there are more messages than it can take.

The batch takes the messages before one moment, which is searched for: the cluster answers at which offset of each
partition a moment begins. The search steps away from the moment of the batch before, or back from the newest one, and
then, in turns, takes the moment where evenly spread messages would reach the limit, and the middle. Where many messages
have the same time, or moments are close enough, each partition gives the same share of its messages in between. Any cut
is correct; this one reads partitions side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

_ENOUGH = 8
"""The search ends when less than this part of the batch is in doubt."""
_STEP = 1000
"""Milliseconds of the first step from the moment of the last batch."""

Offsets = Callable[[Sequence[str], int], Mapping[str, int]]
"""The offsets where a moment begins in partitions; -1 if all messages are before it."""


def cut(
    ranges: Mapping[str, tuple[int, int]], limit: int, moment: int, latest: int, offsets: Offsets
) -> tuple[dict[str, int], int]:
    """The ends of a batch of about `limit` messages out of ranges of offsets, at least one message, and the moment up
    to which they reach. `moment` is that of the batch before. A partition with messages after `latest` has wrong
    timestamps, and would be read last: it gives its share of the batch, whatever they are.

    >>> cut({"a": (0, 99), "b": (0, 9)}, 12, 0, 9, lambda keys, moment: dict.fromkeys(keys, 0 if moment < 5 else -1))[0]
    {'a': 11, 'b': 1}
    """
    total = sum(end - start for start, end in ranges.values())
    if total <= limit:
        return {key: end for key, (_, end) in ranges.items()}, moment

    def before(when: int, keys: Sequence[str]) -> dict[str, int]:
        found = offsets(keys, when)
        of_keys = ((key, *ranges[key]) for key in keys)
        return {k: end if found[k] < 0 else min(max(found[k], start), end) for k, start, end in of_keys}

    def count(ends: Mapping[str, int]) -> int:
        return sum(end - ranges[key][0] for key, end in ends.items())

    at_high = before(latest, list(ranges))
    odd = {k: start + -(-(end - start) * limit // total) for k, (start, end) in ranges.items() if at_high[k] < end}
    timed = [key for key in ranges if key not in odd]
    limit = max(0, limit - count(odd))
    if count({key: at_high[key] for key in timed}) <= limit:
        return {**odd, **{key: ranges[key][1] for key in timed}}, moment
    low, high = 0, latest
    at_low, at_high = {key: ranges[key][0] for key in timed}, {key: at_high[key] for key in timed}
    origin, way, step, halves = latest, -1, _STEP, False
    if 0 < moment < latest:
        origin, at_moment = moment, before(moment, timed)
        if count(at_moment) <= limit:
            low, at_low, way = moment, at_moment, 1
        else:
            high, at_high = moment, at_moment
    while high - low > 1 and (doubt := count(at_high) - count(at_low)) > limit // _ENOUGH:
        if step and low < (near := origin + way * step) < high:
            middle, step = near, step * 4
        else:
            step, halves = 0, not halves
            middle = low + (high - low) * (limit - count(at_low)) // doubt if halves else (low + high) // 2
            middle = max(min(middle, high - 1), low + 1)
        at_middle = before(middle, timed)
        if count(at_middle) <= limit:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    left, doubt = limit - count(at_low), count(at_high) - count(at_low)
    ends = {key: at_low[key] + (at_high[key] - at_low[key]) * left // doubt for key in timed}
    if count(ends) + count(odd) == 0:
        fullest = max(timed, key=lambda key: at_high[key] - at_low[key])
        ends[fullest] += 1
    return {**odd, **ends}, low
