"""The course of a lookup, on a clock that jumps: no test waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from eddyline.runtime.access.circuit_breaker import CircuitBreaker
from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.token_bucket import TokenBucket
from eddyline.runtime.access.trying import GaveUp, Trying
from tests.support.virtual_loop import VirtualLoop

T = TypeVar("T")
Script = Callable[[list[int], int], Awaitable[None]]


class LongestPauses(Random):
    """Every pause is as long as it can be."""

    def uniform(self, a: float, b: float) -> float:
        return b


def run(course: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(course)


class World:
    """A table of keys whose rows are the keys; `script` is awaited before each answer."""

    def __init__(self, script: Script, timeout: float = 30.0, retries: int = 3, rate: float | None = None) -> None:
        self.tries: list[tuple[float, list[int]]] = []
        self._script = script
        bucket = None if rate is None else TokenBucket(rate, 0.0)
        self.trying = Trying(timeout, retries, CircuitBreaker(5, 2.0), bucket, LongestPauses())

    async def ask(self, keys: pa.RecordBatch) -> FoundRows:
        numbers = keys.column(0).to_pylist()
        self.tries.append((round(asyncio.get_running_loop().time(), 6), numbers))
        await self._script(numbers, len(self.tries))
        return FoundRows(keys)

    async def lookup(self, *keys: int) -> dict[int, str]:
        """For each key what became of it, and when."""
        found = {}
        batch = pa.record_batch({"k": pa.array(keys, pa.int64())})
        async for outcome in self.trying.lookup(self.ask, batch):
            if outcome.error is None:
                assert outcome.found == FoundRows(outcome.keys)
            else:
                assert outcome.found is None
            now = round(asyncio.get_running_loop().time(), 6)
            found |= dict.fromkeys(outcome.keys.column(0).to_pylist(), f"{outcome.error or 'rows'} at {now:g}")
        return found

    @property
    def times(self) -> list[float]:
        return [when for when, _ in self.tries]


async def fine(keys: list[int], number: int) -> None:
    pass


async def down(keys: list[int], number: int) -> None:
    raise TryFailed("down")


def test_an_answer_at_once() -> None:
    world = World(fine)
    assert run(world.lookup(1, 2)) == {1: "rows at 0", 2: "rows at 0"}
    assert len(world.tries) == 1


def test_retries_with_pauses_that_double() -> None:
    async def twice(keys: list[int], number: int) -> None:
        if number <= 2:
            raise TryFailed("busy")

    world = World(twice)
    assert run(world.lookup(1)) == {1: "rows at 0.3"}
    assert world.times == [0, 0.1, 0.3]


def test_pauses_are_random() -> None:
    world = World(down)
    world.trying.random = Random(1)
    run(world.lookup(1))
    pauses = [b - a for a, b in zip(world.times, world.times[1:], strict=False)]
    assert all(0 < pause < longest for pause, longest in zip(pauses, (0.1, 0.2, 0.4), strict=True))


def test_after_the_last_retry_the_reason_is_the_answer() -> None:
    world = World(down)
    assert run(world.lookup(1)) == {1: "down at 0.7"}
    assert len(world.tries) == 4


def test_a_bad_key_does_not_harm_the_others() -> None:
    async def bad(keys: list[int], number: int) -> None:
        if 5 in keys:
            raise KeysRefused("5 is odd")

    world = World(bad, retries=0)
    found = run(world.lookup(*range(8)))
    assert {key: what for key, what in found.items() if what != "rows at 0"} == {5: "5 is odd at 0"}
    assert [keys for _, keys in world.tries if 5 in keys] == [[*range(8)], [4, 5, 6, 7], [4, 5], [5]]
    assert sorted(key for _, keys in world.tries if 5 not in keys for key in keys) == [0, 1, 2, 3, 4, 6, 7]


def test_a_refused_single_key_is_tried_again() -> None:
    async def once(keys: list[int], number: int) -> None:
        if number <= 2:
            raise KeysRefused("not now")

    world = World(once)
    assert run(world.lookup(1, 2)) == {1: "rows at 0.1", 2: "rows at 0.1"}
    assert [keys for _, keys in world.tries] == [[1, 2], [1], [1], [2]]


def test_a_batch_that_fails_for_good_is_halved_too() -> None:
    async def bad(keys: list[int], number: int) -> None:
        if 2 in keys:
            raise TryFailed("500")

    world = World(bad, retries=1)
    assert run(world.lookup(1, 2, 3)) == {1: "rows at 0.1", 2: "500 at 0.1", 3: "rows at 0.1"}
    assert [keys for _, keys in world.tries] == [[1, 2, 3], [1, 2, 3], [1], [2, 3], [2], [3]]


def test_a_table_that_refuses_is_asked_once() -> None:
    async def refuse(keys: list[int], number: int) -> None:
        raise TableRefused("no such table")

    world = World(refuse)
    assert set(run(world.lookup(1, 2, 3)).values()) == {"no such table at 0"}
    assert len(world.tries) == 1


def test_the_deadline_is_for_all_tries_together() -> None:
    async def slow(keys: list[int], number: int) -> None:
        await asyncio.sleep(0.7)
        raise TryFailed("slow")

    world = World(slow, timeout=1.0)
    assert run(world.lookup(1)) == {1: "no answer within 1 s; before: slow at 1"}
    assert world.times == [0, 0.8]


def test_a_try_that_hangs_and_does_not_hear_its_cancellation() -> None:
    ended = asyncio.Event()

    async def hang(keys: list[int], number: int) -> None:
        try:
            await asyncio.sleep(10_000)
        finally:
            await asyncio.sleep(100)
            ended.set()

    async def course() -> dict[int, str]:
        found = await world.lookup(1)
        assert len(world.trying.abandoned) == 1
        await ended.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not world.trying.abandoned
        return found

    world = World(hang, timeout=5.0)
    assert run(course()) == {1: "no answer within 5 s at 5"}


def test_no_retry_beyond_the_deadline() -> None:
    world = World(down, timeout=0.25, retries=10)
    assert run(world.lookup(1)) == {1: "down at 0.1"}  # the next pause would end at 0.3


def test_an_error_that_a_client_must_not_raise_is_an_answer() -> None:
    async def wrong(keys: list[int], number: int) -> None:
        raise ZeroDivisionError("of\nthe client")

    world = World(wrong, retries=0)
    assert run(world.lookup(1)) == {1: "ZeroDivisionError: of the client at 0"}


def test_the_breaker_opens_and_a_probe_closes_it() -> None:
    async def down_for_a_while(keys: list[int], number: int) -> None:
        if asyncio.get_running_loop().time() < 3:
            raise TryFailed("down")

    async def course() -> list[dict[int, str]]:
        lookups = [asyncio.create_task(world.lookup(key)) for key in range(10)]
        return await asyncio.gather(*lookups)

    world = World(down_for_a_while, retries=20)
    found = run(course())
    assert all(what.startswith("rows") for one in found for what in one.values())
    before, after = ([t for t in world.times if t < 3], [t for t in world.times if t >= 3])
    assert before == [0] * 10 + [2], "ten lookups at once, then one probe"
    assert after[0] == 4 and len(after) == 10


def test_when_a_table_is_gone_everything_fails_after_the_timeout() -> None:
    async def course() -> list[dict[int, str]]:
        first = await asyncio.gather(*(world.lookup(key) for key in range(6)))
        later = await world.lookup(7)
        await asyncio.sleep(50)
        return [*first, later, await world.lookup(8)]

    world = World(down, timeout=5.0, retries=100)
    *first, later, last = run(course())
    reason = "down (no more is asked until it answers again)"
    said, _, when = zip(*(what.rpartition(" at ") for one in first for what in one.values()), strict=True)
    assert set(said) == {reason} and all(2 < float(at) <= 5 for at in when)
    assert later[7].startswith(reason)
    assert last[8].startswith("down")
    assert len(world.tries) < 12


def test_refusals_do_not_open_the_breaker() -> None:
    async def refuse(keys: list[int], number: int) -> None:
        raise KeysRefused("no")

    world = World(refuse, retries=0)
    run(world.lookup(*range(20)))
    assert world.trying.breaker.open_since is None


def test_the_rate_limit_is_no_fault_of_the_table() -> None:
    async def course() -> list[dict[int, str]]:
        return await asyncio.gather(*(world.lookup(key) for key in range(6)))

    world = World(fine, timeout=1.0, rate=0.5)
    assert [what for one in run(course()) for what in one.values()] == [f"rows at {2 * k}" for k in range(6)]


def test_a_step_of_a_scan_is_done_once() -> None:
    async def step() -> str:
        raise TryFailed("lost")

    async def course(world: World) -> None:
        with pytest.raises(GaveUp, match="lost"):
            await world.trying.once(step)
        with pytest.raises(GaveUp, match="no answer within 30 s"):
            await world.trying.once(lambda: asyncio.sleep(1000))
        assert await world.trying.once(lambda: asyncio.sleep(1, "fine")) == "fine"

    run(course(World(fine)))


def test_cancelled_lookups_leave_no_try() -> None:
    async def course() -> None:
        lookup = asyncio.create_task(world.lookup(1))
        await asyncio.sleep(1)
        lookup.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lookup
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def hang(keys: list[int], number: int) -> None:
        await asyncio.sleep(10_000)

    world = World(hang)
    run(course())
