"""Asks the access modules of tables from one thread that runs an event loop.

The slot's thread calls `ask` and `answers`; they share with the loop's thread a list of answers under a condition, and
nobody polls. A key is in flight from `ask` until `answers` has returned its answer; asked again meanwhile it is not
sent again: the one answer is for both. So every key that is asked gets exactly one answer, and `asked` is 0 only after
the slot has them all.

Keys wait in the order of their rank, then in that in which they came, those of each access method in a line of its own
(key_line.py). As soon as a place of a table has fewer than `concurrency` requests under way, the next request takes up
to `batch` keys from a line. So keys wait only when the place is busy, and then they travel together. Keys of one
request stay Arrow columns all the way.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.engine.lookups.look_up import Answer, AnswersKept, Request
from eddyline.errors import InternalError
from eddyline.runtime.access.circuit_breaker import CircuitBreaker
from eddyline.runtime.access.client import AccessClient, FoundRows
from eddyline.runtime.access.fitting import only, only_dead
from eddyline.runtime.access.key_line import KeyLine
from eddyline.runtime.access.running_loop import RunningLoop
from eddyline.runtime.access.tables import AccessTable
from eddyline.runtime.access.token_bucket import TokenBucket
from eddyline.runtime.access.trying import GaveUp, Trying
from eddyline.runtime.access.tuning import DEFAULT, AccessTuning
from eddyline.state.key_map import KeyMap, key_map

_NO_KEYS = pa.RecordBatch.from_arrays([], schema=pa.schema([]))


class Asking:
    """The access modules of some tables (look_up.py: Lookups). `close` ends the thread and all connections.

    `tables` has them by the names that requests use. `new_loop` makes the event loop: its clock is the one for pauses,
    deadlines and limits."""

    def __init__(
        self,
        tables: Mapping[str, AccessTable],
        new_loop: Callable[[], asyncio.AbstractEventLoop] = RunningLoop,
        random: Random | None = None,
        tuning: AccessTuning = DEFAULT,
    ) -> None:
        self._in_flight: dict[tuple[str, int], KeyMap] = {}
        self._scanned: set[tuple[str, int]] = set()
        """The scans that are under way."""
        self._leaving: list[Answer | BaseException] = []
        self._leaves: asyncio.TimerHandle | None = None
        """When they leave."""
        self._owed = 0
        """The keys that are not answered, as the loop's thread sees it."""
        self._answers: list[Answer] = []
        self._came = threading.Condition()
        self._broken: BaseException | None = None
        self._loop = new_loop()
        self._tables = tables
        self._desks = {
            (name, place.place): _Desk(name, place, self._loop, random or Random(), tuning, self._put)
            for name, table in tables.items()
            for place in table.places
        }
        limits = {name: AnswersKept(table.options.ttl, table.options.cache_rows) for name, table in tables.items()}
        self.kept = {name: kept for name, kept in limits.items() if kept != AnswersKept()}
        """How long answers are kept, where that is not for ever."""
        self._tuning = tuning
        self._thread = threading.Thread(target=self._run, name="eddyline-access", daemon=True)
        self._closed = False
        self._thread.start()

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, requests: Sequence[Request]) -> None:
        """Begin to ask; returns at once."""
        if self._closed:
            raise InternalError("the access modules are closed")
        new = [(request, None if request.takes_back else self._new(request)) for request in requests]
        new = [one for one in new if one[1] is not None or one[0].rank or one[0].takes_back]
        if new:
            self._loop.call_soon_threadsafe(self._take, new)

    def answers(self, wait: float) -> list[Answer]:
        """The answers that have come since the last call. If there is none yet, wait for one, at most `wait` seconds;
        return at once if nothing is asked."""
        with self._came:
            if not self._answers and self._broken is None and self.asked:
                self._came.wait_for(lambda: self._answers or self._broken, min(wait, threading.TIMEOUT_MAX))
            found, self._answers = self._answers, []
        if self._broken is not None:
            raise InternalError("the access modules broke") from self._broken
        parts = Counter[tuple[str, int]]()
        for answer in found:
            if answer.keys.num_columns:
                self._in_flight[answer.table, answer.method].take(answer.keys)
            elif answer.is_last:
                self._scanned.discard((answer.table, answer.method))
            else:
                parts[answer.table, answer.method] += 1
        for scan, taken in parts.items():
            self._loop.call_soon_threadsafe(self._desk(*scan).go_on, taken)
        return found

    @property
    def asked(self) -> int:
        """The number of keys that are asked and not answered, and of scans that have not ended."""
        return sum(map(len, self._in_flight.values())) + len(self._scanned)

    def close(self) -> None:
        """Ends the thread and all connections. What was asked is not answered."""
        if self._closed:
            return
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _new(self, request: Request) -> pa.RecordBatch | None:
        """The keys of a request that are not in flight; from now on they are."""
        keys, method = request.keys, (request.table, request.method)
        if not keys.num_columns:
            is_new = method not in self._scanned
            self._scanned.add(method)
            return keys if is_new else None
        in_flight = self._in_flight.get(method)
        if in_flight is None:
            in_flight = self._in_flight[method] = key_map(list(keys.schema))
        new = in_flight.add(keys, np.zeros(keys.num_rows, np.int64))
        if new.size == keys.num_rows:
            return keys if new.size else None
        return keys.take(pa.array(new)) if new.size else None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _end(self) -> None:
        for desk in self._desks.values():
            with contextlib.suppress(Exception):  # nobody waits for what they could still say
                await asyncio.wait_for(desk.close(), self._tuning.closing)
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=self._tuning.closing)
        with contextlib.suppress(TimeoutError):  # its threads resolve names of hosts
            await asyncio.wait_for(self._loop.shutdown_default_executor(), self._tuning.closing)

    def _take(self, requests: Sequence[tuple[Request, pa.RecordBatch | None]]) -> None:
        try:
            for request, keys in requests:
                desk = self._desk(request.table, request.method)
                if request.takes_back:
                    desk.take_back(request.method)
                if request.rank:
                    desk.forward(request.method, request.keys, request.rank)
                if keys is not None:
                    self._owed += keys.num_rows
                    desk.take(request.method, keys, request.rank)
            for desk in dict.fromkeys(self._desk(request.table, request.method) for request, _ in requests):
                desk.send()
        except Exception as error:
            self._put(error)

    def _desk(self, table: str, method: int) -> _Desk:
        return self._desks[table, self._tables[table].at(method).place]

    def _put(self, answer: Answer | BaseException) -> None:
        """Called in the loop's thread. While more is asked answers wait for others for a moment, because the slot joins
        many of them about as fast as a few."""
        self._leaving.append(answer)
        if isinstance(answer, Answer) and answer.keys.num_columns:
            self._owed -= answer.keys.num_rows
            wait = self._tuning.gather if self._owed else 0.0
        else:
            wait = 0.0
        if self._leaves is None or (not wait and self._leaves.when() > self._loop.time()):
            if self._leaves is not None:
                self._leaves.cancel()
            self._leaves = self._loop.call_later(wait, self._leave)

    def _leave(self) -> None:
        self._leaves = None
        with self._came:
            for answer in self._leaving:
                if isinstance(answer, Answer):
                    self._answers.append(answer)
                else:
                    self._broken = answer
            self._came.notify()
        self._leaving.clear()


@dataclass
class _Line:
    """One access method, and the keys that wait for it."""

    trying: Trying
    waiting: KeyLine = field(default_factory=KeyLine)


class _Desk:
    """The requests to one place of a table, with a client and limits of its own. It lives in the loop's thread."""

    def __init__(
        self,
        name: str,
        table: AccessTable,
        loop: asyncio.AbstractEventLoop,
        random: Random,
        tuning: AccessTuning,
        put: Callable[[Answer | BaseException], None],
    ) -> None:
        self._name, self._table, self._put, self._random, self._tuning = name, table, put, random, tuning
        self._options, self._none, self._loop = table.options, table.no_rows, loop
        self._bucket = None if self._options.rate is None else TokenBucket(self._options.rate, loop.time())
        self._client: AccessClient | None = None
        self._lines: dict[int, _Line] = {}
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._parts = asyncio.Semaphore(tuning.scan_parts)

    def take(self, method: int, keys: pa.RecordBatch, rank: int) -> None:
        """Put keys into the line of an access method, or begin its scan."""
        if method not in self._lines:
            breaker = CircuitBreaker(self._tuning.breaker_failures, self._tuning.breaker_pause)
            options = self._options
            trying = Trying(options.timeout, options.retries, breaker, self._bucket, self._random, self._tuning)
            self._lines[method] = _Line(trying)
        if keys.num_columns:
            self._lines[method].waiting.put(keys, rank)
        else:
            self._begin(self._scan(method, self._lines[method]))

    def forward(self, method: int, keys: pa.RecordBatch, rank: int) -> None:
        """Those of the keys that are in line move forward."""
        if method in self._lines:
            self._lines[method].waiting.forward(keys, rank)

    def take_back(self, method: int) -> None:
        """Drop the keys that wait in the line of an access method; they are answered as withdrawn."""
        if method in self._lines and self._lines[method].waiting:
            waiting = self._lines[method].waiting
            self._put(Answer(self._name, method, waiting.take(len(waiting)), self._none, is_withdrawn=True))

    def send(self) -> None:
        """Begin as many requests as the limit allows, the access methods in turn."""
        while self._under_way < self._options.concurrency:
            sent = False
            for method, line in self._lines.items():
                if line.waiting and self._under_way < self._options.concurrency:
                    self._under_way += 1
                    self._begin(self._lookup(method, line, line.waiting.take(self._options.batch)))
                    sent = True
            if not sent:
                return

    def go_on(self, parts: int) -> None:
        """The slot has taken parts of a scan: as many more may come."""
        for _ in range(parts):
            self._parts.release()

    async def close(self) -> None:
        """Stop everything."""
        for task in self._tasks:
            task.cancel()
        await self._settle([*self._tasks])
        await self._settle([task for line in self._lines.values() for task in line.trying.abandoned])
        if self._client is not None:
            await self._client.close()

    async def _settle(self, tasks: Sequence[asyncio.Future[Any]]) -> None:
        """Wait for tasks that were cancelled, which may take some time: psycopg tells the server first."""
        if tasks:
            await asyncio.wait(tasks, timeout=self._tuning.closing / 3)

    def _begin(self, course: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(course)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._put(error)

    async def _lookup(self, method: int, line: _Line, keys: pa.RecordBatch) -> None:
        try:
            async for outcome in line.trying.lookup(self._rows, keys):
                found = FoundRows(self._none) if outcome.found is None else outcome.found
                answer = Answer(self._name, method, outcome.keys, found.rows, error=outcome.error, dead=found.dead)
                self._put(answer)
        finally:
            self._under_way -= 1
        self.send()

    async def _rows(self, keys: pa.RecordBatch) -> FoundRows:
        columns = self._table.columns
        missing = [name for name in keys.schema.names if name not in columns]
        found = await self._open().lookup((*columns, *missing), keys)
        rows = only(found.rows, keys)
        return FoundRows(rows.select(list(columns)) if missing else rows, only_dead(found.dead, keys))

    async def _scan(self, method: int, line: _Line) -> None:
        parts = self._open().scan(self._table.columns)

        async def one() -> FoundRows | None:
            return await anext(parts, None)

        error = None
        try:
            while (part := await line.trying.once(one)) is not None:
                await self._parts.acquire()
                self._put(Answer(self._name, method, _NO_KEYS, part.rows, is_last=False, dead=part.dead))
        except GaveUp as gave_up:
            error = str(gave_up)
        finally:
            with contextlib.suppress(Exception):  # a step that hangs ends it when it hears that it is cancelled
                await parts.aclose()
        self._put(Answer(self._name, method, _NO_KEYS, self._none, error=error))

    def _open(self) -> AccessClient:
        if self._client is None:
            self._client = self._table.open()
        return self._client
