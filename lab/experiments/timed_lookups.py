"""Lookups in simulated time: sources that answer as fast as an experiment says, on every machine.

A `Server` does one piece of work after the other: a probe of an index, or a page of a scan. The lookups give it what
the engine asks for, and hand out the answers whose time has come. Nobody waits: the driver (timed_run.py) moves the
clock.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush, heapreplace

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.engine.lookups.look_up import Answer, AnswersKept, Request
from eddyline.state.key_values import KeyValues, values

PAGE = 10
"""Rows that a scan brings at a time."""

Method = tuple[str, int]
"""A table, and the number of one of its access methods."""


class Clock:
    """The simulated time in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@dataclass(frozen=True)
class Outage:
    """A source does no work between two times.

    >>> Outage(10.0, 15.0).delayed(9.0, 2.0)
    16.0
    """

    begin: float
    end: float

    def delayed(self, begin: float, seconds: float) -> float:
        """When work of so many seconds ends."""
        end = begin + seconds
        return end + self.end - max(begin, self.begin) if begin < self.end and end > self.begin else end


NO_OUTAGE = Outage(0.0, 0.0)


@dataclass(frozen=True)
class Work:
    """A piece of work for an access method."""

    method: Method
    asked: float
    seconds: float
    answer: Answer
    rank: int = 0


class Server:
    """Does up to `parallel` pieces of work at a time: those of a larger rank first, then those that were asked for
    first. Where several access methods have work, the one that has had the least time comes first."""

    def __init__(self, parallel: int = 1, outage: Outage = NO_OUTAGE) -> None:
        self._free, self._outage = [0.0] * parallel, outage
        self._queues: dict[Method, dict[int, deque[Work]]] = {}
        """By rank."""
        self._used: dict[Method, float] = {}
        self._begun: list[tuple[float, int, Answer]] = []
        self._number = 0

    def add(self, work: Work) -> None:
        """Do this, too."""
        self._queues.setdefault(work.method, {}).setdefault(work.rank, deque()).append(work)

    def forward(self, method: Method, key: KeyValues, rank: int) -> None:
        """A key moves forward, if it waits."""
        for queue in [queue for lesser, queue in self._queues.get(method, {}).items() if lesser < rank]:
            for work in [work for work in queue if next(values(work.answer.keys)) == key]:
                queue.remove(work)
                self.add(replace(work, rank=rank))

    def take_back(self, method: Method) -> list[Work]:
        """Do not do what an access method was asked for and is not begun; returns it."""
        return [work for queue in self._queues.pop(method, {}).values() for work in queue]

    def until(self, now: float) -> list[tuple[float, Answer]]:
        """Work until a time; returns what has ended since the last call, and when."""
        while waiting := [queue for ranks in self._queues.values() for queue in ranks.values() if queue]:
            begin = max(self._free[0], min(queue[0].asked for queue in waiting))
            if begin >= now:
                break
            ready = [queue for queue in waiting if queue[0].asked <= begin]
            queue = min(ready, key=lambda queue: (self._used.get(queue[0].method, 0.0), -queue[0].rank))
            work = queue.popleft()
            method = work.method
            end = self._outage.delayed(begin, work.seconds)
            heapreplace(self._free, end)
            self._used[method] = self._used.get(method, 0.0) + work.seconds
            heappush(self._begun, (end, self._number, work.answer))
            self._number += 1
        ended = []
        while self._begun and self._begun[0][0] <= now:
            end, _, answer = heappop(self._begun)
            ended.append((end, answer))
        return ended

    @property
    def open(self) -> int:
        """The pieces of work that have not ended."""
        return len(self._begun) + sum(len(queue) for ranks in self._queues.values() for queue in ranks.values())


@dataclass(frozen=True)
class Speed:
    """How fast an access method is: the seconds of a probe or of a row of a scan, and who does the next piece."""

    seconds: float
    server: Callable[[], Server]


class TimedLookups:
    """Answers requests from record batches, in simulated time; an index answers each key by itself."""

    def __init__(
        self, query: BoundQuery, tables: Mapping[str, pa.RecordBatch], speeds: Mapping[Method, Speed], clock: Clock
    ) -> None:
        self._columns = {
            (s.stream.name, number): list(method.columns)
            for s in query.sources
            for number, method in enumerate(s.stream.methods)
        }
        self._tables, self._speeds, self._clock = tables, speeds, clock
        self._servers: dict[int, Server] = {}
        self._withdrawn: list[Answer] = []
        self._places: dict[Method, dict[KeyValues, list[int]]] = {}
        self._open: set[tuple[Method, KeyValues]] = set()
        """The keys that are asked and not answered."""
        self.kept: dict[str, AnswersKept] = {}
        """All answers are kept for ever."""
        self.withdrawn = 0
        """The probes that were taken back."""
        self.probes: list[tuple[float, Method, KeyValues]] = []
        """The probes that indexes have answered: when, which, for what key."""
        self.scanned = Counter[str]()
        """The rows of each table that scans have brought."""

    def ask(self, requests: Sequence[Request]) -> None:
        """Answers will come."""
        for request in requests:
            method, rows = (request.table, request.method), self._tables[request.table]
            if request.takes_back:
                left = [work.answer for server in self._servers.values() for work in server.take_back(method)]
                self.withdrawn += len(left)
                self._open -= {(method, next(values(one.keys))) for one in left}
                self._withdrawn += [replace(one, rows=one.rows.slice(0, 0), is_withdrawn=True) for one in left]
            if self._columns[method]:
                for number, value in enumerate(values(request.keys)):
                    if request.rank and (method, value) in self._open:
                        for server in self._servers.values():
                            server.forward(method, value, request.rank)
                        continue
                    self._open.add((method, value))
                    key = request.keys.slice(number, 1)
                    found = rows.take(pa.array(self._matching(method, value), pa.int64()))
                    self._add(method, self._speeds[method].seconds, Answer(*method, key, found), request.rank)
            else:
                for at in range(0, rows.num_rows, PAGE):
                    page = rows.slice(at, PAGE)
                    answer = Answer(*method, request.keys, page, is_last=at + PAGE >= rows.num_rows)
                    self._add(method, self._speeds[method].seconds * page.num_rows, answer)

    def _add(self, method: Method, seconds: float, answer: Answer, rank: int = 0) -> None:
        server = self._speeds[method].server()
        self._servers[id(server)] = server
        server.add(Work(method, self._clock.now, seconds, answer, rank))

    def _matching(self, method: Method, key: KeyValues) -> list[int]:
        if method not in self._places:
            places = self._places[method] = {}
            for number, one in enumerate(values(self._tables[method[0]].select(self._columns[method]))):
                places.setdefault(one, []).append(number)
        return self._places[method].get(key, [])

    def answers(self, wait: float) -> list[Answer]:
        """The answers whose time has come."""
        found = [one for server in self._servers.values() for one in server.until(self._clock.now)]
        found.sort(key=lambda one: one[0])
        for at, answer in found:
            method = answer.table, answer.method
            if self._columns[method]:
                key = next(values(answer.keys))
                self._open.discard((method, key))
                self.probes.append((at, method, key))
            else:
                self.scanned[answer.table] += answer.rows.num_rows
        withdrawn, self._withdrawn = self._withdrawn, []
        return [*withdrawn, *(answer for _, answer in found)]

    def close(self) -> None:
        """Nothing comes any more."""
        self._servers.clear()

    @property
    def asked(self) -> int:
        """The number of answers to come."""
        return len(self._withdrawn) + sum(server.open for server in self._servers.values())
