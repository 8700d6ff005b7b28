"""A meta-queue: the tuples of one signature that wait for their next step, and the numbers that decide when to serve
them.

Tuples with the same history share their metadata: READY (the modules that may come next), DONE, and the three numbers
by which the scheduler decides: occupancy, threshold and counter. Invariant: occupancy is the sum of the sizes of all
waiting packets.
"""

from __future__ import annotations

from collections import deque

from eddyline.plan.steps import Probe
from eddyline.routing.packet import Packet, merged
from eddyline.routing.routing_arrays import Entry


class MetaQueue:
    """The waiting tuples of one signature."""

    __slots__ = (
        "_waiting",
        "counter",
        "entry",
        "longest_wait",
        "most_rounds",
        "occupancy",
        "packets",
        "scheduled",
        "threshold",
        "tuples",
    )

    def __init__(self, entry: Entry, threshold: int) -> None:
        self.entry = entry
        self.threshold = threshold
        self.occupancy = self.counter = 0
        self.scheduled = False
        """Whether it is on the scheduler queue."""
        self.packets = self.tuples = 0
        """Packets and tuples taken from it since the start."""
        self.longest_wait, self.most_rounds = 0.0, 0
        """The longest time that a tuple waited in it: in seconds, and in rounds of the scheduler."""
        self._waiting: deque[tuple[float, Packet]] = deque()
        """The waiting packets, each with the time of its arrival."""

    @property
    def ready(self) -> int:
        """Which modules may come next: a bit for each source, then one for each selection."""
        bits = 0
        for traffic in self.entry.steps:
            step = traffic.step
            bits |= 1 << step.target if isinstance(step, Probe) else 1 << self.entry.sources + step.selection
        return bits

    @property
    def done(self) -> int:
        """Which modules its tuples have been through, in the same bits."""
        span, selections = self.entry.signature
        return span | selections << self.entry.sources

    @property
    def since(self) -> float:
        """The time when the oldest tuple arrived."""
        return self._waiting[0][0]

    @property
    def oldest(self) -> int:
        """The number of the build that started the oldest tuple."""
        return min(int(packet.numbers.min()) for _, packet in self._waiting)

    def put(self, packet: Packet, now: float = 0.0) -> None:
        """Append a packet."""
        self._waiting.append((now, packet))
        self.occupancy += packet.size

    def take(self, most: int) -> Packet:
        """The oldest tuples, at most `most`."""
        waiting = self._waiting
        if self.occupancy <= most:
            taken, self.occupancy = merged([packet for _, packet in waiting]), 0
            waiting.clear()
            return taken
        parts, room = [], most
        while room:
            came, packet = waiting.popleft()
            if packet.size > room:
                waiting.appendleft((came, packet.take(slice(room, None))))
                packet = packet.take(slice(0, room))
            parts.append(packet)
            room -= packet.size
        self.occupancy -= most
        return merged(parts)

    def clear(self) -> None:
        """Drop all waiting tuples."""
        self._waiting.clear()
        self.occupancy = self.counter = 0
        self.scheduled = False
