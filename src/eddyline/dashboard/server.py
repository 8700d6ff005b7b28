"""A dashboard's server: uvicorn in a thread of its own, from `serve` to `close`.

It listens before `serve` returns, so a port that is taken is an error before the first row is read. `close` lets the
open pages have the last events and then ends the thread; nothing outlives it.
"""

from __future__ import annotations

import threading
from types import TracebackType

from eddyline.dashboard.place import DashboardPlace
from eddyline.errors import SettingError
from eddyline.runtime.recording.feed import EventFeed

_MOST_CONNECTIONS = 100
_LAST_SECONDS = 3
"""How long open pages may take to read the last events."""


class Dashboard:
    """A dashboard that is served until `close`; made by `serve`."""

    def __init__(self, feed: EventFeed, place: DashboardPlace) -> None:
        try:
            import uvicorn

            from eddyline.dashboard.app import app
            from eddyline.dashboard.guard import Guard
        except ModuleNotFoundError as error:
            raise SettingError(
                f"the dashboard needs more packages ({error}); type: pip install 'eddyline[dashboard]'"
            ) from None
        self._socket = place.listen()
        port = self._socket.getsockname()[1]
        self.address = place.address(port)
        """For a browser, with the token."""
        self._closing = threading.Event()
        config = uvicorn.Config(
            Guard(app(feed, self._closing.is_set), place.token, port, [place.host]),
            log_config=None, log_level="critical", access_log=False, server_header=False, lifespan="off",
            ws="none", interface="asgi3", limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_LAST_SECONDS,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._work, name="eddyline-dashboard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tells open pages the last events and that this is the end, and stops. It may be called twice."""
        self._closing.set()
        self._server.should_exit = True
        self._thread.join(_LAST_SECONDS + 2)

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        try:
            self._server.run([self._socket])
        finally:
            self._socket.close()


def serve(feed: EventFeed, place: DashboardPlace | None = None) -> Dashboard:
    """Serves the events of a run; SettingError in one line if a package is missing or the port is taken."""
    return Dashboard(feed, DashboardPlace() if place is None else place)
