"""The protocol of Redis and Valkey (RESP 2), as much of it as reading replies takes.

A reply is scanned by a compiled loop into a flat list of tokens, whatever it holds; the caller makes of them what it
needs.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import kernel

ERROR, NUMBER, BULK, LIST = (ord(c) for c in "-:$*")


class NotAReply(Exception):
    """The bytes are not what a Redis or Valkey server says."""


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


def receive(source: socket.socket) -> Reply:
    """The next reply; NotAReply if it is none, ConnectionError if the server hangs up."""
    data, tokens = np.empty(1 << 16, np.uint8), np.empty((1 << 10, 3), np.int64)
    size = at = count = 0
    todo = 1
    while True:
        at, todo, count = scan(data, size, at, todo, tokens, count)
        if todo < 0 or (todo == 0 and at < size):
            raise NotAReply
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
