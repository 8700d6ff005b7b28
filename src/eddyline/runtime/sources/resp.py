"""The protocol of Redis and Valkey (RESP 2), as much of it as reading takes: a command goes out, its reply comes back.

A reply is scanned by a compiled loop into a flat list of tokens, whatever it holds; who asked makes of them what it
needs. Only commands that change nothing are asked, so after a lost connection the same one is asked again. A
password is never part of a message.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.errors import JobError, said
from eddyline.kernels.jit import kernel

_TIMEOUT = 20.0
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each new try after a lost connection."""
ERROR, NUMBER, BULK, LIST = (ord(c) for c in "-:$*")


@dataclass(frozen=True)
class Server:
    """Where it is, and how to get in."""

    host: str
    port: int
    db: int = 0
    password: str = field(default="", repr=False)


class NoSuchKey(Exception):
    """The key that was asked about is not there (yet)."""


@dataclass(frozen=True)
class Reply:
    """A reply: its bytes, and its tokens in their order: kind, where it starts, how long it is (a list: its items)."""

    data: NDArray[np.uint8]
    tokens: NDArray[np.int64]

    def value(self) -> Any:
        """The reply as Python objects, for small ones."""
        tokens = iter(self.tokens.tolist())

        def next_value() -> Any:
            kind, start, length = next(tokens)
            if length < 0:
                return None
            if kind == LIST:
                return [next_value() for _ in range(length)]
            text = self.data[start : start + length].tobytes()
            return int(text) if kind == NUMBER else text

        return next_value()


class Connection:
    """A connection that is opened when it is needed, and again when it was lost."""

    def __init__(self, server: Server, sleep: Callable[[float], None]) -> None:
        self._server, self._sleep = server, sleep
        self._socket: socket.socket | None = None

    def ask(self, *command: str) -> Reply:
        """The reply to a command that changes nothing; JobError if there is none, or it is an error."""
        pauses = iter(_PAUSES)
        while True:
            try:
                return self._ask(self._socket or self._open(), command)
            except NoSuchKey:
                raise
            except BaseException as error:
                self.close()  # whatever it was: the rest of the reply may still be under way
                if not isinstance(error, OSError):
                    raise
                pause = next(pauses, None)
                if pause is None:
                    raise self.failed(f"no answer after {len(_PAUSES) + 1} tries ({said(error)})") from None
                self._sleep(pause)

    def close(self) -> None:
        """Ends it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def failed(self, why: str) -> JobError:
        """An error of this server."""
        return JobError(f"redis-stream at {self._server.host}:{self._server.port}: {why}")

    def _open(self) -> socket.socket:
        server = self._server
        opened = self._socket = socket.create_connection((server.host, server.port), _TIMEOUT)
        if server.password:
            self._ask(opened, ("AUTH", server.password))
        if server.db:
            self._ask(opened, ("SELECT", str(server.db)))
        return opened

    def _ask(self, to: socket.socket, command: Sequence[str]) -> Reply:
        parts = [part.encode() for part in command]
        to.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        reply = self._receive(to)
        if reply.tokens[0, 0] != ERROR:
            return reply
        complaint = reply.value().decode(errors="replace")
        if complaint == "ERR no such key":
            raise NoSuchKey
        if complaint.startswith("LOADING"):  # a server that has just started
            raise ConnectionError(complaint)
        raise self.failed(f"{command[0]} was answered with: {complaint}")

    def _receive(self, source: socket.socket) -> Reply:
        data, tokens = np.empty(1 << 16, np.uint8), np.empty((1 << 10, 3), np.int64)
        size = at = count = 0
        todo = 1
        while True:
            at, todo, count = scan(data, size, at, todo, tokens, count)
            if todo < 0 or (todo == 0 and at < size):
                raise self.failed("the answer is not what a Redis server says")
            if todo == 0:
                return Reply(data, tokens[:count])
            if count == len(tokens):
                tokens = np.concatenate([tokens, np.empty_like(tokens)])
                continue
            if size == len(data):
                data = np.concatenate([data, np.empty_like(data)])
            received = source.recv_into(data[size:].data)
            if received == 0:
                raise ConnectionError("the connection was closed")
            size += received


@kernel
def scan(
    data: NDArray[np.uint8], size: int, at: int, todo: int, tokens: NDArray[np.int64], count: int
) -> tuple[int, int, int]:
    """Reads on in a reply of which `size` bytes have come: from byte `at`, with `todo` values still to come and `count`
    tokens found. Stops where a token is not whole, or there is no room for it. Answers the same three; a todo of -1
    says that this is no reply. Lists need no stack: one of n values is n values more to come in its place."""
    while todo > 0 and count < len(tokens):
        end = at + 1
        while end < size and data[end] != 13:
            end += 1
        if end + 1 >= size:
            break
        kind = data[at]
        start, length = at + 1, end - at - 1
        after = end + 2
        if data[end + 1] != 10:
            return at, -1, count
        if kind == 36 or kind == 42:
            negative = data[start] == 45
            number = 0
            if length < 1 or length > 18 or (negative and length < 2):
                return at, -1, count
            for place in range(start + negative, end):
                digit = data[place] - 48
                if digit < 0 or digit > 9:
                    return at, -1, count
                number = number * 10 + digit
            length = -1 if negative else number
            if kind == 42:
                todo += max(length, 0)
            elif length >= 0:
                start, after = after, after + length + 2
                if after > size:
                    break
                if data[after - 2] != 13 or data[after - 1] != 10:
                    return at, -1, count
        elif kind != 43 and kind != 45 and kind != 58:
            return at, -1, count
        tokens[count, 0], tokens[count, 1], tokens[count, 2] = kind, start, length
        count += 1
        todo -= 1
        at = after
    return at, todo, count
