"""Strangers who connect take neither the server's places nor the job's descriptors."""

from __future__ import annotations

import http.client
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from eddyline.runtime import http_server
from eddyline.runtime.http_server import HttpServer


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(http_server, "_RATE", 5000.0)
    listening = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(_hello, listening, "test-http")
    yield listening.getsockname()[1]
    server.close()


def _status(port: int, method: str = "GET", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, "/", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def _half_open(port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            opened.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), 60)))
            opened[-1].send(b"GET / HT")
        yield opened


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_half_open_connections_take_no_place_from_a_request(port: int) -> None:
    assert _status(port) == 200
    before, count = _descriptors(), 3 * http_server._CONNECTIONS
    with _half_open(port, count) as opened:
        assert _status(port) == 200
        assert _descriptors() - before <= count + http_server._CONNECTIONS + 1  # being accepted
        assert opened[0].recv(1) == b""  # the one that waited longest was closed


def test_a_head_that_does_not_come_is_not_waited_for(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_HEAD_SECONDS", 0.05)
    with _half_open(port, 1) as opened:
        assert opened[0].recv(1) == b""


def test_the_next_head_on_a_connection_is_not_waited_for_either(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_connection(("127.0.0.1", port), 60) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        monkeypatch.setattr(http_server, "_HEAD_SECONDS", 0.05)
        answer = b""
        while not answer.endswith(b"hello"):
            answer += one.recv(1000)
        one.send(b"GET / HT")
        assert one.recv(1) == b""


def test_the_last_descriptors_are_left_to_the_job(port: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with _half_open(port, 1):
        resource.setrlimit(resource.RLIMIT_NOFILE, (_descriptors() + http_server._SPARE - 1, hard))
        try:
            with pytest.raises(OSError):
                _status(port)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert _status(port) == 200


def test_connections_are_accepted_at_a_bounded_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(http_server, "_RATE", 3.0)
    wait = http_server.TokenBucket.wait
    monkeypatch.setattr(http_server.TokenBucket, "wait", lambda *args: waits.append(wait(*args)) or 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = HttpServer(_hello, listening, "test-http")
        assert [_status(listening.getsockname()[1]) for _ in range(20)] == [200] * 20
        server.close()
    assert sum(wait > 0 for wait in waits) >= 10


@pytest.mark.parametrize(("host", "status"), [("localhost:80", 200), ("[::1]:1", 200), ("evil.example", 421)])
def test_only_names_of_this_host(port: int, host: str, status: int) -> None:
    assert _status(port, host=host) == status


def test_only_to_read(port: int) -> None:
    assert _status(port, "POST") == 405
