"""The answers of a dashboard: the page and its files, the history of a run, and its events as they come.

`/history` gives the events so far at once, compressed. `/events` goes on from a number (`?after=N`, or Last-Event-ID
when a browser connects again) as server-sent events. It begins with `hello` and the name of this server, so that a page
does not go on with the numbers of another server; `alive` comes in silence, and `bye` when the server ends.
"""

from __future__ import annotations

import asyncio
import gzip
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from eddyline.printable import printable
from eddyline.runtime.recording.feed import Event, EventFeed

ASSETS = Path(__file__).parent / "assets"
_LOOK_EVERY = 0.1
"""Seconds between two looks for new events."""
_SILENT = 10.0
"""After so many seconds without an event `alive` is sent, so that a page notices a connection that is cut."""


def app(feed: EventFeed, is_closing: Callable[[], bool]) -> Starlette:
    """The application; streams of events end when `is_closing`."""
    name = secrets.token_hex(8)

    async def page(request: Request) -> Response:
        return FileResponse(ASSETS / "index.html")

    async def history(request: Request) -> Response:
        body, last = await run_in_threadpool(_packed, feed)
        headers = {"content-encoding": "gzip", "x-last-event": str(last), "x-server": name}
        return Response(body, 200, headers, "application/x-ndjson")

    async def events(request: Request) -> Response:
        known = request.headers.get("last-event-id") or request.query_params.get("after", "")
        if not known.isdecimal():
            return Response("400: after which event?", 400)
        return StreamingResponse(_told(feed, int(known), name, is_closing), 200, media_type="text/event-stream")

    return Starlette(
        routes=[
            Route("/", page),
            Route("/history", history),
            Route("/events", events),
            Mount("/assets", StaticFiles(directory=ASSETS)),
        ]
    )


def _encoded(event: Event) -> bytes:
    """An event as JSON, with texts that a page can show."""
    return msgspec.json.encode(_shown(event))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value, keep="\n\t")
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return list(map(_shown, value)) if isinstance(value, list | tuple) else value


def _packed(feed: EventFeed) -> tuple[bytes, int]:
    """All events of a feed as compressed lines, and the number of the last one."""
    events = feed.since()
    lines = b"\n".join(_encoded(event) for _, event in events)
    return gzip.compress(lines, 5), events[-1][0] if events else 0


async def _told(feed: EventFeed, known: int, name: str, is_closing: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Events after a number, until the server ends. All that have come by then are told before `bye`."""
    yield f"event: hello\ndata: {name}\n\n".encode()
    silent = 0.0
    while True:
        closing = is_closing()
        if found := feed.since(known):
            yield b"".join(b"id: %d\ndata: %b\n\n" % (number, _encoded(event)) for number, event in found)
            known, silent = found[-1][0], 0.0
        if closing:
            yield b"event: bye\ndata: {}\n\n"
            return
        await asyncio.sleep(_LOOK_EVERY)
        silent += _LOOK_EVERY
        if silent >= _SILENT:
            yield b"event: alive\ndata: {}\n\n"
            silent = 0.0
