"""The baseline of paper 001: index joins as modules, each with a cache of its own and a finite queue in front.

A join takes the row at the head of its queue, looks into its cache, and asks the index if the key is not there; it
takes no other row meanwhile. So rows whose keys are in the cache wait behind one whose key is not (head-of-line
blocking). The source of the rows stops while the queue that its next row goes to is full. A look into a cache takes no
time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from lab.experiments.timed_lookups import NO_OUTAGE, Outage

QUEUE = 10
"""Rows that wait in front of a join."""

Cache = dict[int, float]
"""Since when the answer for a key is there."""


@dataclass
class IndexJoin:
    """An index join with its cache; joins may be given one cache."""

    seconds: float
    """Of a probe of the index."""
    outage: Outage = NO_OUTAGE
    cache: Cache = field(default_factory=dict)
    probes: list[float] = field(default_factory=list)
    """When the index answered."""
    queue: deque[tuple[float, int]] = field(default_factory=deque)
    free: float = 0.0

    @property
    def next(self) -> float:
        """When the row at the head of the queue is taken."""
        return max(self.free, self.queue[0][0]) if self.queue else inf

    def take(self, key: int) -> float:
        """Take the row at the head of the queue; returns when its result is there."""
        begin = self.next
        self.queue.popleft()
        if self.cache.get(key, inf) > begin:
            self.free = self.outage.delayed(begin, self.seconds)
            self.probes.append(self.free)
            self.cache[key] = min(self.free, self.cache.get(key, inf))
        else:
            self.free = begin
        return self.free


def joined(
    joins: Sequence[IndexJoin], keys: Sequence[int], arrivals: Sequence[float], route: Callable[[int], int]
) -> list[float]:
    """When the result of each row is there. `route` says to which join a row goes, by its number."""
    done, at, room = [0.0] * len(keys), 0, 0.0
    while True:
        busy = min(joins, key=lambda join: join.next)
        to = joins[route(at)] if at < len(keys) else None
        comes = inf if to is None or len(to.queue) >= QUEUE else max(arrivals[at], room)
        if busy.next <= comes:
            if busy.next == inf:
                return done
            row, room = busy.queue[0][1], max(room, busy.next)
            done[row] = busy.take(keys[row])
        elif to is not None:
            to.queue.append((comes, at))
            at += 1
