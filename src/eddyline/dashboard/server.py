"""A dashboard's server, from `serve` to `close`.

It listens before `serve` returns, so a port that is taken is an error before the first row is read. `close` lets the
open pages have the last events and then ends the thread; nothing outlives it.
"""

from __future__ import annotations

import threading
from types import TracebackType

from eddyline.dashboard.place import DashboardPlace
from eddyline.errors import SettingError
from eddyline.extras import install
from eddyline.runtime.recording.feed import EventFeed


class Dashboard:
    """A dashboard that is served until `close`; made by `serve`."""

    def __init__(self, feed: EventFeed, place: DashboardPlace) -> None:
        try:
            from eddyline.dashboard.app import app
            from eddyline.dashboard.guard import Guard
            from eddyline.runtime.http_server import HttpServer
        except ModuleNotFoundError as error:
            raise SettingError(f"the dashboard needs more packages ({error}); type: {install('dashboard')}") from None
        listening = place.listen()
        port = listening.getsockname()[1]
        self.address = place.address(port)
        """For a browser, with the token."""
        self._closing = threading.Event()
        guarded = Guard(app(feed, self._closing.is_set), place.token, port)
        self._server = HttpServer(guarded, listening, "eddyline-dashboard", [place.host])

    def close(self) -> None:
        """Tells open pages the last events and that this is the end, and stops. It may be called twice."""
        self._closing.set()
        self._server.close()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(feed: EventFeed, place: DashboardPlace | None = None) -> Dashboard:
    """Serves the events of a run; SettingError in one line if a package is missing or the port is taken."""
    return Dashboard(feed, DashboardPlace() if place is None else place)
