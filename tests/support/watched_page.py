"""Feeds of events, and the dashboard in Debian's Chromium."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from eddyline.dashboard.place import DashboardPlace
from eddyline.dashboard.server import Dashboard, serve
from eddyline.runtime.recording.feed import EventFeed

TOKEN = "a-token-for-the-tests"
LIGHT, DARK = {"color_scheme": "light"}, {"color_scheme": "dark"}


def feed_of(events: Iterable[dict[str, Any]] = ()) -> EventFeed:
    """A feed that keeps all events."""
    feed = EventFeed(10**6, 10**6)
    for event in events:
        feed.publish(event)
    return feed


@contextlib.contextmanager
def served(events: Iterable[dict[str, Any]] = ()) -> Iterator[tuple[EventFeed, Dashboard]]:
    """A dashboard of these events."""
    feed = feed_of(events)
    with serve(feed, DashboardPlace(port=0, token=TOKEN)) as dashboard:
        yield feed, dashboard


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped by name if there is none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium: type apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page of a dashboard; it remembers errors, and requests that went elsewhere."""

    def __init__(self, browser: Any, address: str, width: int = 1440, height: int = 900, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.is_cut = False
        """While it is, errors of the network are no errors of the page."""
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)
        self._own = address.split("/?")[0]
        self.page.goto(address)

    def text(self, selector: str) -> str:
        """What is written somewhere."""
        return str(self.page.locator(selector).inner_text())

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Until a condition of JavaScript is true. (Playwright's own way needs eval, which the page forbids.)"""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(50)

    def says(self, selector: str, text: str, seconds: float = 30) -> None:
        """Until an element has a text."""
        self.page.locator(selector).filter(has_text=text).first.wait_for(timeout=1000 * seconds)

    def close(self) -> None:
        """Close the page; it must have had no error."""
        self.context.close()
        assert self.wrong == []

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.context.close() if kind else self.close()

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning") and not (self.is_cut and "net::" in message.text):
            self.wrong.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self._own, "data:")):
            self.wrong.append(f"asked for {request.url}")


class Wire:
    """A port that passes bytes on to another one, and can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._ends: list[socket.socket] = []
        self.port = 0
        self._listener: socket.socket | None = None
        self.mend()

    def cut(self) -> None:
        """Every connection ends, and none can be made."""
        assert self._listener is not None
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends = []

    def mend(self) -> None:
        """Connections can be made again."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
