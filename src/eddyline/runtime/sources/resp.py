"""The protocol of Redis and Valkey (RESP 2), as far as reading replies needs it.

A compiled loop scans a reply of any kind into a flat list of tokens; the caller interprets them.
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
    """The bytes are not a reply of a Redis or Valkey server."""


@dataclass(frozen=True)
class Reply:
    """A reply: its bytes, and its tokens in order, each with its kind, its start and its length (for a list, the number
    of items)."""

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
    """Read the next reply; NotAReply if the bytes are not one, ConnectionError if the server closes the connection."""
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
    """Continue to scan a reply of which `size` bytes have come: from byte `at`, with `todo` values still to come and
    `count` tokens found. It stops at an incomplete token, or if there is no room for a token. Returns the new at, todo
    and count; a todo of -1 says that the bytes are not a reply. Lists need no stack: a list of n values adds n to
    todo."""
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
