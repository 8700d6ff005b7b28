"""Metrics for a monitoring system: the text format of Prometheus over HTTP, on the loopback address only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from eddyline.errors import SettingError
from eddyline.runtime.reporting.summary import Progress

_KINDS = {
    "rows_in": ("counter", "Rows read."),
    "rows_out": ("counter", "Result rows."),
    "rows_late": ("counter", "Rows that came too late."),
    "rows_dead": ("counter", "Rows that could not be read."),
    "batches": ("counter", "Micro-batches of this run."),
    "state_rows": ("gauge", "Rows held in windows."),
    "memory_bytes": ("gauge", "Bytes held in windows."),
    "seconds": ("gauge", "Seconds since the first batch."),
    "watermark": ("gauge", "The query's watermark, seconds since the epoch."),
}


def text(progress: Progress, more: Mapping[str, float]) -> str:
    """What is served.

    >>> print(text(Progress(rows_in=3), {}).splitlines()[2])
    eddyline_rows_in 3
    """
    lines = []
    for name, (kind, help_) in _KINDS.items():
        value = progress.watermark_us if name == "watermark" else getattr(progress, name)
        if value is not None:
            lines += [f"# HELP eddyline_{name} {help_}", f"# TYPE eddyline_{name} {kind}"]
            lines.append(f"eddyline_{name} {value / 1e6 if name == 'watermark' else value}")
    for name, number in more.items():
        lines += [f"# TYPE eddyline_{name} gauge", f"eddyline_{name} {number}"]
    return "\n".join(lines) + "\n"


class Metrics:
    """Serves for as long as it is used as a context; without a port it does nothing."""

    def __init__(
        self, port: int | None, progress: Callable[[], Progress], more: Callable[[], Mapping[str, float]] = dict
    ) -> None:
        self._port, self._progress, self._more = port, progress, more
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Metrics:
        if self._port is not None:
            progress, more = self._progress, self._more

            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    body = text(progress(), more()).encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "text/plain; version=0.0.4")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

                def log_message(self, *args: object) -> None:
                    pass

            try:
                self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
            except OSError as error:
                raise SettingError(f"metrics_port: cannot listen on port {self._port}: {error.strerror}") from None
            threading.Thread(target=self._server.serve_forever, name="eddyline-metrics", daemon=True).start()
        return self

    @property
    def port(self) -> int | None:
        """Where it listens; for port 0 one that was free."""
        return None if self._server is None else int(self._server.server_address[1])

    def __exit__(self, *args: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
