"""Threads for libraries that block: each has a connection of its own, made when the thread first works."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

C = TypeVar("C")
T = TypeVar("T")


class ConnectedThreads(Generic[C]):
    """At most `threads` threads. `connect` makes a connection; `interrupt` stops what one does, from another thread;
    `disconnect` ends one."""

    def __init__(
        self,
        threads: int,
        connect: Callable[[], C],
        interrupt: Callable[[C], object],
        disconnect: Callable[[C], object],
    ) -> None:
        self._connect, self._interrupt, self._disconnect = connect, interrupt, disconnect
        self._mine = threading.local()
        self._all: list[C] = []
        self._working: set[Future[Any]] = set()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="eddyline-access")

    async def run(self, work: Callable[[C], T]) -> T:
        """Do this in a thread. If that is cancelled the thread is interrupted."""
        connection: list[C] = []

        def do() -> T:
            if not hasattr(self._mine, "connection"):
                self._mine.connection = self._connect()
                self._all.append(self._mine.connection)
            connection.append(self._mine.connection)
            return work(self._mine.connection)

        future = self._threads.submit(do)
        self._working.add(future)
        future.add_done_callback(self._working.discard)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if connection and not future.done():
                self._interrupt(connection[0])
            raise

    async def close(self) -> None:
        """Interrupt all threads, and end them and their connections. A thread that does not hear it is left behind when
        the caller waits no longer."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for connection in self._all:
            with contextlib.suppress(Exception):
                self._interrupt(connection)
        if working := [asyncio.wrap_future(future) for future in self._working if not future.done()]:
            await asyncio.gather(*working, return_exceptions=True)
        self._threads.shutdown()
        for connection in self._all:
            with contextlib.suppress(Exception):
                self._disconnect(connection)
        self._all.clear()
