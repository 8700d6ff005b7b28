"""The eddy that the Teddies paper compares with: one queue of single tuples, and rows that are built at their first
probe.

Rows that come in wait in the queue before they are built. When a row is at the top, it is built and takes its first
step at once, so it has a later number than every row that it can find. Rows of a source are queued and built in the
order in which they are stored. All else, the routing arrays, the router, the steps and the SteMs, is that of Eddyline's
own eddy, and so is the argument why each result is made once (routing/eddy.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import repeat

from eddyline.plan.plan import Plan
from eddyline.routing.eddy import Eddy
from eddyline.routing.meta_queue import MetaQueue
from eddyline.routing.packet import Packet, started
from eddyline.routing.routing_arrays import RoutingArrays
from eddyline.routing.scheduler import Scheduler
from eddyline.routing.scope import Scope
from lab.batch_driver import BatchDriver


class OneQueue(Scheduler):
    """A single queue of tuples. Its meta-queues are always empty: each stands for the signature of the top tuple."""

    def __init__(self, routes: RoutingArrays, clock: Callable[[], float], insert: Callable[[int], Packet]) -> None:
        """`insert` builds the next row of a source."""
        super().__init__(routes, 1, clock)
        self._insert = insert
        self._tuples: deque[Packet | int] = deque()
        """Tuples, and the sources of rows that are not built yet."""

    def wait(self, source: int, rows: int) -> None:
        """Add rows of a source that are not built yet."""
        self._tuples.extend(repeat(source, rows))

    def put(self, packet: Packet) -> MetaQueue:
        """Add tuples that wait for their next step, one by one."""
        self._tuples.extend(packet.take(slice(n, n + 1)) for n in range(packet.size))
        return self.queue(packet.signature)

    def next(self) -> MetaQueue | None:
        """The queue of the signature of the top tuple, which is taken."""
        if not self._tuples:
            return None
        top = self._tuples.popleft()
        self._top = top if isinstance(top, Packet) else self._insert(top)
        return self.queue(self._top.signature)

    def take(self, queue: MetaQueue, about: int | None = None) -> Packet:
        """The tuple that was the top one."""
        return self._top

    @property
    def is_empty(self) -> bool:
        """Whether no tuple waits."""
        return not self._tuples

    def clear(self) -> None:
        """Drop all waiting tuples."""
        self._tuples.clear()


class OneQueueEddy(Eddy):
    """An eddy with one queue, for queries without ROWS windows."""

    def change(self, plan: Plan, scope: Scope | None = None) -> None:
        """Route by another plan."""
        super().change(plan, scope)
        self.scheduler = self._queued = OneQueue(self.routes, self.clock, self._inserted)

    def build(self, source: int, rows: int) -> None:
        """Rows come in; they are built one by one, each at its first probe."""
        self._queued.wait(source, rows)

    def _inserted(self, source: int) -> Packet:
        begin = self.clock()
        first, last = self._stems[source].build(self.number, 1)
        self.work.building += self.clock() - begin
        packet = started(source, first, last, self.number)
        self._count(1)
        return packet


def one_queue(engine: BatchDriver) -> None:
    """Let an engine that has seen no row yet run with one queue."""
    executor = engine.slot.executor
    eddy = executor.eddy
    known = eddy._settings, eddy._errors, eddy._output, eddy.clock
    executor.eddy = OneQueueEddy(executor.plan, executor.stems, executor.rows_windows, *known)
