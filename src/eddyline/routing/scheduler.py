"""The scheduler decides which meta-queue is served next, and how full it has to be.

Every meta-queue that is not empty is either eligible, that is on the scheduler queue, or waits to become eligible. A
round serves the first eligible one with one packet. The counter of that queue is reset, and the queues that are not
eligible count one more round. A queue becomes eligible when its occupancy reaches its threshold, or the size of an
input slice. The threshold adapts: it doubles if the queue was twice as full as necessary, and halves after more than
`longest_wait` rounds without service. So queues that fill fast are served in large packets, and queues that fill slowly
do not starve. Bounded wait: after `longest_wait` rounds the threshold halves at every round, so a tuple waits at most
longest_wait + log2(largest_packet) rounds before its queue is eligible, and never longer than its micro-batch, at whose
end all queues are flushed. The numbers are in tuning.py.

With a fixed packet size the threshold is constant, and a packet is never larger. `packet=1` is the per-tuple eddy.

By default queues are served independently. With `ordered` (the semi-synchronised model) a join operator takes its
waiting tuples in the order in which they started, whichever of its queues they are in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from eddyline.plan.plan import Signature
from eddyline.routing.meta_queue import MetaQueue
from eddyline.routing.packet import Packet
from eddyline.routing.routing_arrays import RoutingArrays
from eddyline.routing.tuning import DEFAULT, RoutingTuning


class Scheduler:
    """The meta-queues of one eddy. `packet` is the fixed size of packets; None: it adapts."""

    def __init__(
        self,
        routes: RoutingArrays,
        packet: int | None,
        clock: Callable[[], float],
        ordered: bool = False,
        tuning: RoutingTuning = DEFAULT,
    ) -> None:
        self.queues: dict[Signature, MetaQueue] = {}
        self._ordered = ordered
        self._routes, self._packet, self._clock = routes, packet, clock
        self._eligible: deque[MetaQueue] = deque()
        self._waiting: dict[Signature, MetaQueue] = {}
        """Queues that are not empty and not eligible."""
        self._first, self._largest = tuning.first_threshold, tuning.largest_packet
        self._longest_wait = tuning.longest_wait
        self._slice = self.most = packet or self._largest
        self.full = max(self.most, self._largest)
        """The number of tuples at which a queue is served at once, so that the number of tuples in flight stays
        bounded."""

    def queue(self, signature: Signature) -> MetaQueue:
        """The queue of a signature, made now if it is new."""
        queue = self.queues.get(signature)
        if queue is None:
            queue = MetaQueue(self._routes.entry(signature), self._packet or self._first)
            self.queues[signature] = queue
        return queue

    def put(self, packet: Packet) -> MetaQueue:
        """Add tuples that wait for their next step."""
        queue = self.queue(packet.signature)
        queue.put(packet, self._clock())
        if not queue.scheduled:
            self._place(queue)
        return queue

    def start(self, packet: Packet) -> MetaQueue:
        """Add tuples that come in. As many as come in at a time are enough for any queue: that size was found to be
        good, and during a longer wait rows would be built that are too new to match."""
        if self._packet is None:
            self._slice = packet.size
        return self.put(packet)

    def _place(self, queue: MetaQueue) -> None:
        if queue.occupancy >= min(queue.threshold, self._slice):
            queue.scheduled = True
            self._waiting.pop(queue.entry.signature, None)
            self._eligible.append(queue)
        else:
            self._waiting[queue.entry.signature] = queue

    def next(self) -> MetaQueue | None:
        """The queue to serve now, None if none is eligible."""
        while self._eligible:
            queue = self._eligible.popleft()
            queue.scheduled = False
            if queue.occupancy:
                return self._first_of(queue) if self._ordered else queue
        return None

    def _first_of(self, queue: MetaQueue) -> MetaQueue:
        """The queue of the same operator with the oldest tuple. If that is another one, this queue is served later."""
        beside = (q for q in self.queues.values() if q.occupancy and q.entry.operator == queue.entry.operator)
        first = min(beside, key=lambda q: q.oldest)
        if first is not queue:
            queue.scheduled = True
            self._eligible.append(queue)
        return first

    def least_done(self) -> MetaQueue | None:
        """The queue, of those that are not eligible, with the most steps left: its output can join the other queues."""
        if not self._waiting:
            return None
        signature = min(self._waiting, key=lambda s: s[0].bit_count() + s[1].bit_count())
        queue = self._waiting.pop(signature)
        return self._first_of(queue) if self._ordered else queue

    def take(self, queue: MetaQueue, about: int | None = None) -> Packet:
        """Take a packet from a queue and adapt its threshold. An adaptive packet is one of several equal parts of the
        waiting tuples, with about `about` tuples."""
        if self._packet is None and queue.occupancy >= 2 * queue.threshold:
            queue.threshold = min(2 * queue.threshold, self._largest)
        queue.longest_wait = max(queue.longest_wait, self._clock() - queue.since)
        queue.most_rounds = max(queue.most_rounds, queue.counter)
        queue.counter = 0
        size = self.most
        if about and self._packet is None:
            size = min(size, -(-queue.occupancy // max(1, round(queue.occupancy / about))))
        packet = queue.take(size)
        queue.packets += 1
        queue.tuples += packet.size
        if not queue.occupancy:
            self._waiting.pop(queue.entry.signature, None)
        elif not queue.scheduled:
            self._place(queue)
        return packet

    def end_round(self) -> None:
        """Count one more round for the queues that were not served."""
        for queue in list(self._waiting.values()):
            queue.counter += 1
            if self._packet is None and queue.counter > self._longest_wait and queue.threshold > 1:
                queue.threshold //= 2
                self._place(queue)

    @property
    def is_empty(self) -> bool:
        """Whether no tuple waits."""
        return not any(queue.occupancy for queue in self.queues.values())

    def clear(self) -> None:
        """Drop all waiting tuples."""
        for queue in self.queues.values():
            queue.clear()
        self._eligible.clear()
        self._waiting.clear()
