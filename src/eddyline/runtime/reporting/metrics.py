"""Metrics for Prometheus, served over HTTP on the loopback address for as long as a run lasts.

Each run has a registry of its own, so two runs in one process do not mix. Values are read when a request arrives, so
serving metrics costs a batch nothing. prometheus_client is imported only by runs that serve metrics.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from eddyline.errors import SettingError
from eddyline.runtime.reporting.summary import Progress
from eddyline.spill.group_table import GroupTable

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from eddyline.runtime.http_server import HttpServer

_COUNTS = {
    "rows_in": "Rows read.",
    "rows_out": "Result rows.",
    "rows_late": "Rows that came too late.",
    "rows_dead": "Rows that could not be read.",
    "batches": "Micro-batches of this run.",
    "groups_left": "Groups that left memory in this run; a group counts each time.",
    "spilled_rows": "Rows that left memory with them.",
    "sweeps": "Groups that were swept in this run; a group counts each time.",
    "sweep_results": "Results that sweeps made.",
    "slots_rebuilt": "How often a slot rebuilt its state from the log in this run.",
}
"""Numbers that only grow. Their names do not end in _total, which a counter's name must, so they have no type."""
_GAUGES = {
    "state_rows": "Rows held in windows.",
    "memory_bytes": "Bytes held in windows.",
    "groups_on_disk": "Groups with rows that are on disk and not in memory.",
    "log_bytes": "Size of the log on disk.",
    "seconds": "Seconds since the first batch.",
}
_OF_GROUPS = {
    "rows": "Rows of a partition group in memory.",
    "bytes": "Bytes of a partition group in memory.",
    "results": "Results of a partition group; those of older batches count less.",
    "idle_batches": "Batches since the last row of a partition group.",
    "on_disk": "1 if a partition group has rows that are on disk and not in memory, else 0.",
}
"""Columns of the list of groups (`GroupTable.as_dict`)."""


class Metrics:
    """Serves metrics while used as a context; without a port it does nothing. `groups` returns the accounts of the
    partition groups, `more` times from Spark, by name."""

    def __init__(
        self,
        port: int | None,
        progress: Callable[[], Progress],
        groups: Callable[[], GroupTable] = GroupTable,
        more: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self._port, self._progress, self._groups, self._more = port, progress, groups, more
        self._server: HttpServer | None = None
        self.port: int | None = None
        """The port on which it listens; a free one if port 0 was asked for."""

    def __enter__(self) -> Metrics:
        if self._port is not None:
            from prometheus_client import CollectorRegistry, make_asgi_app

            from eddyline.runtime.http_server import HttpServer

            registry = CollectorRegistry()
            registry.register(self)
            try:
                listening = socket.create_server(("127.0.0.1", self._port))
            except OSError as error:
                raise SettingError(f"metrics_port: cannot listen on port {self._port}: {error.strerror}") from None
            self.port = listening.getsockname()[1]
            self._server = HttpServer(make_asgi_app(registry), listening, "eddyline-metrics")
        return self

    def __exit__(self, *args: object) -> None:
        if self._server is not None:
            self._server.close()

    def collect(self) -> Iterator[Metric]:
        """The current values; the registry asks for them at each request."""
        from prometheus_client.metrics_core import GaugeMetricFamily, UnknownMetricFamily

        progress = self._progress()
        for name, text in _COUNTS.items():
            yield UnknownMetricFamily(f"eddyline_{name}", text, getattr(progress, name))
        for name, text in _GAUGES.items():
            yield GaugeMetricFamily(f"eddyline_{name}", text, getattr(progress, name))
        if progress.backlog_rows is not None:
            text = "About how many rows wait in the sources."
            yield GaugeMetricFamily("eddyline_backlog_rows", text, progress.backlog_rows)
        if progress.watermark_us is not None:
            text = "The query's watermark, seconds since the epoch."
            yield GaugeMetricFamily("eddyline_watermark", text, progress.watermark_us / 1e6)
        listed = self._groups().as_dict()["list"]
        for name, text in _OF_GROUPS.items() if listed["group"] else ():
            family = GaugeMetricFamily(f"eddyline_group_{name}", text, labels=["group"])
            for group, value in zip(listed["group"], listed[name], strict=True):
                if value is not None:
                    family.add_metric([str(group)], value)
            yield family
        text = "How far the results of groups on disk are behind the watermark."
        yield GaugeMetricFamily("eddyline_results_behind_seconds", text, progress.results_behind_us / 1e6)
        for name, number in self._more().items():
            yield GaugeMetricFamily(f"eddyline_{name}", "A value that Spark's listener reports.", number)
