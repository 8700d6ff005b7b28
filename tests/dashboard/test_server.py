"""The server of the dashboard without a browser: who may read, what is answered, how it begins and ends."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import sys
import threading
from typing import Any

import pytest

from eddyline.dashboard.app import ASSETS
from eddyline.dashboard.place import PORT, DashboardPlace, place_of
from eddyline.dashboard.server import serve
from eddyline.errors import SettingError
from tests.support.made_up_run import made_up_run
from tests.support.watched_page import TOKEN, feed_of, served

PATHS = ["/", "/history", "/events?after=0", "/nothing", *(f"/assets/{path.name}" for path in ASSETS.glob("*.*"))]


def port_of(address: str) -> int:
    return int(address.split(":")[2].split("/")[0])


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, Any, bytes]:
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


BEARER = f"Bearer {TOKEN}"


def test_without_the_token_nothing_is_answered() -> None:
    with served(made_up_run(3)) as (_, dashboard):
        port = port_of(dashboard.address)
        for path in PATHS:
            for given in ({}, {"authorization": "Bearer wrong"}, {"cookie": f"eddyline-{port}=wrong"}):
                status, headers, body = ask(port, path, **given)
                assert (status, body) == (401, b"401: this needs the token"), path
                assert "set-cookie" not in headers and "server" not in headers
        assert ask(port, "/?token=wrong")[0] == ask(port, "/?token=")[0] == 401
        assert ask(port, "/", cookie='=;=,"')[0] == 401


def test_the_token_in_the_address_gives_a_cookie_that_is_enough() -> None:
    with served(made_up_run(3)) as (_, dashboard):
        port = port_of(dashboard.address)
        status, headers, body = ask(port, f"/?token={TOKEN}")
        assert status == 200 and b"Eddyline" in body
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        for path in PATHS:
            if not path.startswith(("/events", "/nothing")):
                assert ask(port, path, cookie=cookie.split(";")[0])[0] == 200, path
        assert ask(port, "/nothing", authorization=BEARER)[0] == 404
        assert ask(port, "/events", authorization=BEARER)[0] == 400
        assert ask(port, "/", "POST", authorization=BEARER)[0] == 405


@pytest.mark.parametrize(("host", "status"), [
    ("127.0.0.1", 200), ("localhost:80", 200), ("[::1]:1", 200), ("192.0.2.7:9", 200), (socket.gethostname(), 200),
    ("evil.example", 421), ("evil.example:4040", 421), ("", 421), ("127.0.0.1.evil.example", 421),
])  # fmt: skip
def test_only_names_of_this_host(host: str, status: int) -> None:
    with served() as (_, dashboard):
        assert ask(port_of(dashboard.address), "/", authorization=BEARER, host=host)[0] == status


def test_a_browser_may_load_nothing_from_elsewhere() -> None:
    with served() as (_, dashboard):
        for path in ("/", "/assets/main.js", "/history"):
            headers = ask(port_of(dashboard.address), path, authorization=BEARER)[1]
            assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
            assert headers["referrer-policy"] == "no-referrer" and headers["cache-control"] == "no-store"
    for path in ASSETS.glob("*.*"):
        assert "://" not in path.read_text(encoding="utf-8").replace("http://www.w3.org/", ""), path


def test_texts_of_events_are_escaped() -> None:
    event = {"type": "note", "t": 1.0, "text": "a\u202eb\x1b[2J\n", "columns": {"\x9bk": ["\u200b", 1, None]}}
    with served([event]) as (_, dashboard):
        port = port_of(dashboard.address)
        body = gzip.decompress(ask(port, "/history", authorization=BEARER)[2])
        shown = {"text": "a\\u202eb\\u001b[2J\n", "columns": {"\\u009bk": ["\\u200b", 1, None]}}
        assert json.loads(body) == event | shown


def test_history_and_then_events() -> None:
    events = list(made_up_run(5))
    with served(events) as (feed, dashboard):
        port = port_of(dashboard.address)
        _, headers, body = ask(port, "/history", authorization=BEARER)
        assert [json.loads(line) for line in gzip.decompress(body).splitlines()] == events
        last = int(headers["x-last-event"])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.request("GET", f"/events?after={last}", headers={"authorization": BEARER})
        answer = connection.getresponse()
        assert answer.readline() == b"event: hello\n"
        assert answer.readline() == f"data: {headers['x-server']}\n".encode()
        feed.publish({"type": "note", "t": 6.0})
        assert [answer.readline() for _ in range(3)] == [
            b"\n", f"id: {last + 1}\n".encode(), b'data: {"type":"note","t":6.0}\n'
        ]  # fmt: skip
        connection.close()
        connection.request("GET", "/events?after=0", headers={"authorization": BEARER, "last-event-id": str(last)})
        answer = connection.getresponse()
        assert [answer.readline() for _ in range(4)][3] == f"id: {last + 1}\n".encode()
        connection.close()


def test_it_ends_with_the_last_events_and_leaves_nothing() -> None:
    with served() as (feed, dashboard):
        port = port_of(dashboard.address)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.request("GET", "/events?after=0", headers={"authorization": BEARER})
        answer = connection.getresponse()
        answer.readline()
        feed.publish({"type": "end", "t": 1.0})
        dashboard.close()
        told = answer.read()
        assert b'data: {"type":"end","t":1.0}' in told and told.endswith(b"event: bye\ndata: {}\n\n")
        dashboard.close()
    assert "eddyline-dashboard" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"^dashboard: cannot listen on port {port}: Address already in use$"):
            serve(feed_of(), place_of(port))


def test_without_a_port_the_next_free_one() -> None:
    with serve(feed_of()) as one, serve(feed_of()) as other:
        assert port_of(one.address) != port_of(other.address)
        assert port_of(one.address) >= PORT
        assert one.address.split("=")[1] != other.address.split("=")[1]


def test_places() -> None:
    assert place_of(True).host == place_of(8080).host == place_of("8080").host == "127.0.0.1"
    assert (place_of(True).port, place_of("").port, place_of("8080").port) == (None, None, 8080)
    assert place_of("localhost:1").host == "localhost" and place_of("[::1]:1").host == "::1"
    long = "0123456789abcdef"
    assert place_of("0.0.0.0:7", long) == DashboardPlace("0.0.0.0", 7, long)
    assert DashboardPlace("0.0.0.0", 7, long).address(7) == f"http://127.0.0.1:7/?token={long}"
    assert DashboardPlace("::1", 7, long).address(7) == f"http://[::1]:7/?token={long}"
    assert long not in repr(DashboardPlace("0.0.0.0", 7, long))


@pytest.mark.parametrize("given", [False, 70000, -1, "x", "1.2.3.4", "host:", 1.5, None, "0.0.0.0:80", "host:80"])
def test_no_places(given: object) -> None:
    with pytest.raises(SettingError, match=r"^dashboard: [^\n]*$"):
        place_of(given)


@pytest.mark.parametrize("token", ["", " ", "a\nb", "tök", 7])
def test_no_tokens(token: Any) -> None:
    with pytest.raises(SettingError, match=r"^dashboard: a token is"):
        place_of(1, token)


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    monkeypatch.delitem(sys.modules, "eddyline.dashboard.app")
    with pytest.raises(SettingError, match=r"type: .* -m pip install .*starlette"):
        serve(feed_of())
