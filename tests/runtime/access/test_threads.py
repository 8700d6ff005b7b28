from __future__ import annotations

import asyncio
import threading

import pytest

from eddyline.runtime.access.threads import ConnectedThreads


class Connection:
    def __init__(self) -> None:
        self.interrupted, self.ended = threading.Event(), False

    def end(self) -> None:
        self.ended = True


def hang(connection: Connection) -> str:
    assert connection.interrupted.wait(300)
    connection.interrupted.clear()
    return "interrupted"


def made(threads: int) -> tuple[list[Connection], ConnectedThreads[Connection]]:
    connections: list[Connection] = []

    def connect() -> Connection:
        connections.append(Connection())
        return connections[-1]

    return connections, ConnectedThreads(threads, connect, lambda c: c.interrupted.set(), Connection.end)


def test_as_many_connections_as_threads() -> None:
    async def course() -> None:
        connections, threads = made(3)
        found = await asyncio.gather(*(threads.run(lambda c: c) for _ in range(20)))
        assert {*found} == {*connections} and 1 <= len(connections) <= 3
        await threads.close()
        assert all(connection.ended for connection in connections)

    before = threading.active_count()
    asyncio.run(course())
    assert threading.active_count() == before


def test_a_cancelled_run_is_interrupted() -> None:
    async def course() -> None:
        connections, threads = made(1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(threads.run(hang), 0.05)
        assert await threads.run(lambda c: "next") == "next"
        assert len(connections) == 1
        await threads.close()

    asyncio.run(course())


def test_close_interrupts_all() -> None:
    async def course() -> None:
        connections, threads = made(2)
        running = [asyncio.ensure_future(threads.run(hang)) for _ in range(4)]
        while len(connections) < 2:
            await asyncio.sleep(0.001)
        await threads.close()
        done = await asyncio.gather(*running, return_exceptions=True)
        assert done[:2] == ["interrupted"] * 2 and all(isinstance(d, asyncio.CancelledError) for d in done[2:])

    asyncio.run(course())
