"""Lookups in simulated time: sources that answer as fast as an experiment says, on every machine.

A `Server` does one piece of work after the other: a probe of an index, or a page of a scan. The lookups give it what
the engine asks for, and hand out the answers whose time has come. Nobody waits: the driver (timed_run.py) moves the
clock.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.engine.asked_keys import KeyValues, values
from eddyline.engine.lookups import Answer, AnswersKept, Request

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


class Server:
    """Does up to `parallel` pieces of work at a time, in the order in which they were asked for. Where several access
    methods have work, the one that has had the least time comes first."""

    def __init__(self, parallel: int = 1, outage: Outage = NO_OUTAGE) -> None:
        self._free, self._outage = [0.0] * parallel, outage
        self._queues: dict[Method, deque[Work]] = {}
        self._used: dict[Method, float] = {}
        self._begun: list[tuple[float, int, Answer]] = []
        self._number = 0

    def add(self, work: Work) -> None:
        """Do this, too."""
        self._queues.setdefault(work.method, deque()).append(work)

    def until(self, now: float) -> list[tuple[float, Answer]]:
        """Work until a time; returns what has ended since the last call, and when."""
        while waiting := {method: queue[0].asked for method, queue in self._queues.items() if queue}:
            begin = max(self._free[0], min(waiting.values()))
            if begin >= now:
                break
            method = min((m for m, asked in waiting.items() if asked <= begin), key=lambda m: self._used.get(m, 0.0))
            work = self._queues[method].popleft()
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
        return len(self._begun) + sum(map(len, self._queues.values()))


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
        self._places: dict[Method, dict[KeyValues, list[int]]] = {}
        self.kept: dict[str, AnswersKept] = {}
        """All answers are kept for ever."""
        self.probes: list[tuple[float, Method, KeyValues]] = []
        """The probes that indexes have answered: when, which, for what key."""
        self.scanned = Counter[str]()
        """The rows of each table that scans have brought."""

    def ask(self, requests: Sequence[Request]) -> None:
        """Answers will come."""
        for request in requests:
            method, rows = (request.table, request.method), self._tables[request.table]
            if self._columns[method]:
                for number in range(request.keys.num_rows):
                    key = request.keys.slice(number, 1)
                    found = rows.take(pa.array(self._matching(method, next(values(key))), pa.int64()))
                    self._add(method, self._speeds[method].seconds, Answer(*method, key, found))
            else:
                for at in range(0, rows.num_rows, PAGE):
                    page = rows.slice(at, PAGE)
                    answer = Answer(*method, request.keys, page, is_last=at + PAGE >= rows.num_rows)
                    self._add(method, self._speeds[method].seconds * page.num_rows, answer)

    def _add(self, method: Method, seconds: float, answer: Answer) -> None:
        server = self._speeds[method].server()
        self._servers[id(server)] = server
        server.add(Work(method, self._clock.now, seconds, answer))

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
                self.probes.append((at, method, next(values(answer.keys))))
            else:
                self.scanned[answer.table] += answer.rows.num_rows
        return [answer for _, answer in found]

    def close(self) -> None:
        """Nothing comes any more."""
        self._servers.clear()

    @property
    def asked(self) -> int:
        """The number of answers to come."""
        return sum(server.open for server in self._servers.values())
