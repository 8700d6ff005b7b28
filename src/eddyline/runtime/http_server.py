"""An HTTP server in a thread of its own that nobody can use against the job.

Anybody on this machine may connect to a port. Invariant: the server has at most `_CONNECTIONS` sockets and leaves the
process `_SPARE` descriptors; it accepts at most `_RATE` connections a second; a connection closes if the head of its
next request is not complete within `_HEAD_SECONDS`, or sooner if its place is needed. A request may only read, and the
host that it names must be this machine: a page of another site whose name was made to point here (DNS rebinding) names
that site.

uvicorn speaks HTTP; here are only the sockets.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import socket
import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from eddyline.runtime.access.token_bucket import TokenBucket

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_CONNECTIONS = 64
_SPARE = 64
_RATE = 20.0
_HEAD_SECONDS = 5.0
_LAST_SECONDS = 3
"""Seconds that open connections have to read the last of an answer when the server closes."""


def is_of_this_host(host: str, names: Collection[str] = ()) -> bool:
    """Whether a request's `host` header has an address, `localhost`, this machine's name or one of `names`.

    >>> [is_of_this_host(host) for host in ("127.0.0.1:4040", "[::1]", "localhost", "evil.example", "")]
    [True, True, True, False, False]
    """
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower() in {"localhost", socket.gethostname().lower(), *map(str.lower, names)}
    return True


class HttpServer:
    """Serves `app` on a listening socket until `close`, for requests that name this machine or one of `hosts`. `name`
    is that of its thread."""

    def __init__(self, app: ASGIApp, listening: socket.socket, name: str, hosts: Collection[str] = ()) -> None:
        config = uvicorn.Config(
            _Guarded(app, hosts), http=_HttpConnection, log_config=None, log_level="critical", access_log=False,
            server_header=False, lifespan="off", ws="none", interface="asgi3", timeout_graceful_shutdown=_LAST_SECONDS,
        )  # fmt: skip
        self._server = _Acceptor(config, listening)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let requests under way end, and stop. It may be called twice."""
        self._server.should_exit = True
        self._thread.join(_LAST_SECONDS + 2)

    def _work(self) -> None:
        try:
            self._server.run(sockets=[])
        finally:
            self._server.listening.close()


class _Guarded:
    """Passes on requests that only read and name this machine."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if not is_of_this_host(dict(scope["headers"]).get(b"host", b"").decode("latin-1"), self._hosts):
            await refuse(send, 421, "not a name of this host")
        elif scope["method"] not in ("GET", "HEAD"):
            await refuse(send, 405, "only to read")
        else:
            await self._app(scope, receive, send)


async def refuse(send: Send, status: int, why: str) -> None:
    """Answer with this status and reason, and close the connection."""
    headers = [(b"content-type", b"text/plain"), (b"cache-control", b"no-store"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{status}: {why}".encode()})


class _Acceptor(uvicorn.Server):
    """uvicorn's server, which is given accepted connections."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket) -> None:
        super().__init__(config)
        self.listening = listening
        self._waiting: dict[_HttpConnection, None] = {}
        """Connections without a request, the longest waiting first."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._accepting.cancel()
        await super().shutdown(sockets)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        pace = TokenBucket(_RATE, loop.time())
        while True:
            try:
                accepted, _ = await loop.sock_accept(self.listening)
                if self._has_room():
                    await loop.connect_accepted_socket(self._connection, accepted)
                else:
                    accepted.close()
            except OSError:  # the process has no descriptors left, or the client has gone
                await asyncio.sleep(_HEAD_SECONDS / 10)
            await asyncio.sleep(pace.wait(loop.time()))

    def _has_room(self) -> bool:
        """Whether one more connection may be served, if need be in place of the one that waits longest."""
        if len(self.server_state.connections) >= _CONNECTIONS:
            if not self._waiting:
                return False
            next(iter(self._waiting)).give_up()
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return limit == resource.RLIM_INFINITY or len(os.listdir("/proc/self/fd")) + _SPARE <= limit

    def _connection(self) -> _HttpConnection:
        made = _HttpConnection(self.config, self.server_state, self.lifespan.state)
        made.waiting = self._waiting
        return made


class _HttpConnection(H11Protocol):
    """A connection that closes if it waits too long for the head of a request."""

    waiting: dict[_HttpConnection, None]
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection at once."""
        self._end_wait()
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        """Begin or end the wait for a request."""
        if self.transport.is_closing() or (self.cycle is not None and not self.cycle.response_complete):
            self._end_wait()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_HEAD_SECONDS, self.give_up)
            self.waiting[self] = None

    def _end_wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.waiting.pop(self, None)
