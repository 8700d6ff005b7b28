"""Spark's durations of the parts of each micro-batch, kept for metrics."""

from __future__ import annotations

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


class Listener(StreamingQueryListener):
    """The newest durations, in seconds, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        known = event.progress.durationMs
        self.seconds = {f"spark_{name}_seconds": ms / 1000 for name, ms in known.items()}

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass
