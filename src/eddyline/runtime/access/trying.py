"""The course of one lookup: tries, pauses between them, a deadline over all of them, halves of a batch that fails.

| a try ends with | then |
| --- | --- |
| rows | they are the answer |
| TryFailed | another try after a pause, while tries and time are left; then the batch is halved |
| KeysRefused | the batch is halved; a single key is tried again, while tries and time are left |
| TableRefused | the answer is the reason |
| nothing until the deadline | the answer is the reason |

If the server said when it wants to be asked again, the lookup and its halves wait until then.

A batch is halved because one of its keys may be the cause: the others are answered. Halves have what is left of the
batch's tries and time, but each is tried at least once.

A try that had no answer counts for the circuit breaker; a refusal is an answer. While the breaker is open no try is
made: the lookup waits for the next probe, at most until its deadline, and no longer than `timeout` after the breaker
opened. So when a table is gone, everything that is asked fails after `timeout`, and what is asked later fails at once.

The try itself runs in a task of its own. At the deadline it is cancelled but not awaited: a driver may need a long time
to give a hung connection up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import pyarrow as pa

from eddyline.errors import said
from eddyline.runtime.access.circuit_breaker import CircuitBreaker
from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.token_bucket import TokenBucket
from eddyline.runtime.access.tuning import DEFAULT, AccessTuning

T = TypeVar("T")
Ask = Callable[[pa.RecordBatch], Awaitable[FoundRows]]


@dataclass(frozen=True)
class LookupOutcome:
    """The rows of some keys, or the reason why there are none."""

    keys: pa.RecordBatch
    found: FoundRows | None = None
    error: str | None = None


@dataclass
class LookupCourse:
    """What a lookup and its halves have left."""

    deadline: float
    retries_left: int
    retried: int = 0
    not_before: float = 0.0
    reason: str = ""


class GaveUp(Exception):
    """No more tries: the message says why."""


@dataclass
class Trying:
    """Tries lookups of one access method."""

    timeout: float
    retries: int
    breaker: CircuitBreaker
    bucket: TokenBucket | None
    random: Random
    tuning: AccessTuning = DEFAULT
    abandoned: set[asyncio.Future[Any]] = field(default_factory=set)
    """Tries that were cancelled and have not ended."""

    async def lookup(self, ask: Ask, keys: pa.RecordBatch) -> AsyncIterator[LookupOutcome]:
        """The outcome of all keys, in one part or, if some fail, in several."""
        course = LookupCourse(self._now + self.timeout, self.retries)
        todo = [keys]
        while todo:
            part = todo.pop()
            try:
                yield LookupOutcome(part, await self._rows(ask, part, course))
            except GaveUp as error:
                yield LookupOutcome(part, error=str(error))
            except (TryFailed, KeysRefused) as error:
                half = part.num_rows // 2
                if half and self._now < course.deadline:
                    todo += [part.slice(half), part.slice(0, half)]
                else:
                    yield LookupOutcome(part, error=str(error))

    async def once(self, step: Callable[[], Awaitable[T]]) -> T:
        """Do a step that cannot be repeated, such as the next part of a scan, within `timeout`; GaveUp if it fails."""
        course = LookupCourse(self._now + self.timeout, 0)
        try:
            return await self._tried(step(), course)
        except (TryFailed, KeysRefused, TableRefused) as error:
            raise GaveUp(str(error)) from None

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _rows(self, ask: Ask, keys: pa.RecordBatch, course: LookupCourse) -> FoundRows:
        while True:
            await self._allowed(course)
            try:
                return await self._tried(ask(keys), course)
            except TableRefused as error:
                raise GaveUp(str(error)) from None
            except (TryFailed, KeysRefused) as error:
                course.reason = str(error)
                if isinstance(error, TryFailed) and error.retry_after:
                    course.not_before = self._now + error.retry_after
                if not course.retries_left or (isinstance(error, KeysRefused) and keys.num_rows > 1):
                    raise
            longest = min(self.tuning.longest_pause, self.tuning.first_pause * 2.0**course.retried)
            pause = self.random.uniform(0.0, longest)  # full jitter: lookups that failed together part
            course.retries_left, course.retried = course.retries_left - 1, course.retried + 1
            await self._sleep(pause, course)

    async def _allowed(self, course: LookupCourse) -> None:
        """Waits for the time that the server said, the rate limit and the circuit breaker."""
        if (wait := course.not_before - self._now) > 0:
            await self._sleep(wait, course)
        if self.bucket is not None and (wait := self.bucket.wait(self._now)):
            await asyncio.sleep(wait)
            course.deadline += wait  # the limit is ours: it is no fault of the table
        while wait := self.breaker.wait(self._now):
            assert self.breaker.open_since is not None
            course.reason = f"{self.breaker.reason} (no more is asked until it answers again)"
            course.deadline = min(course.deadline, self.breaker.open_since + self.timeout)
            await self._sleep(wait, course)

    async def _sleep(self, seconds: float, course: LookupCourse) -> None:
        left = course.deadline - self._now
        if seconds >= left:
            raise GaveUp(course.reason)
        await asyncio.sleep(seconds)

    async def _tried(self, step: Awaitable[T], course: LookupCourse) -> T:
        """One try, which counts for the circuit breaker."""
        loop = asyncio.get_running_loop()
        task, waiting = asyncio.ensure_future(step), loop.create_future()
        timer = loop.call_at(course.deadline, _wake, waiting)
        task.add_done_callback(lambda _: _wake(waiting))
        try:
            await waiting
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        finally:
            timer.cancel()
        if not task.done():
            self._abandon(task)
            reason = f"no answer within {self.timeout:g} s"
            reason += f"; before: {course.reason}" if course.reason else ""
            self.breaker.failed(self._now, reason)
            raise GaveUp(reason)
        try:
            found = task.result()
        except TryFailed as error:
            self.breaker.failed(self._now, str(error))
            raise
        except (KeysRefused, TableRefused):
            self.breaker.succeeded()
            raise
        except (Exception, asyncio.CancelledError) as error:  # a client that breaks its promise: no key is lost
            self.breaker.failed(self._now, said(error))
            raise TryFailed(said(error)) from error
        self.breaker.succeeded()
        return found

    def _abandon(self, task: asyncio.Future[Any]) -> None:
        self.abandoned.add(task)
        task.add_done_callback(self._ended)
        task.cancel()

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self.abandoned.discard(task)
        if not task.cancelled():
            task.exception()  # so that nobody logs it


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
