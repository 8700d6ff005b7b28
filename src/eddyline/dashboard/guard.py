"""Who may read a dashboard. Without the token every request gets 401 and nothing else, assets too.

The first request brings the token in the address and gets a cookie; a program may send `Authorization: Bearer TOKEN`.
Every answer forbids the browser to load or send anything elsewhere."""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eddyline.runtime.http_server import refuse

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Lets only requests with the token through to `app`."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        self._cookie = f"eddyline-{port}"  # browsers share cookies between all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        in_address = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        given = [in_address, headers.get("authorization", "").removeprefix("Bearer "), self._from_cookie(headers)]
        fits = [secrets.compare_digest(one.encode(), self._token.encode()) for one in given]
        if not any(fits):
            await refuse(send, 401, "this needs the token")
        else:
            await self._app(scope, receive, self._marked(send, fits[0]))

    def _from_cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _marked(self, send: Send, is_first: bool) -> Send:
        """`send`, with our headers, and with the cookie if the token came in the address."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if is_first:
                    cookie = SimpleCookie({self._cookie: self._token})[self._cookie]
                    cookie.update({"path": "/", "httponly": "1", "samesite": "Strict"})
                    headers.append("set-cookie", cookie.OutputString())
            await send(message)

        return marked
