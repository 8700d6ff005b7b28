"""What Spark tells after each micro-batch: how long its parts took, for metrics, and how far its sources are behind.

Spark tells every listener of a session about all queries of the session, so a listener looks only at its own query.
"""

from __future__ import annotations

import json

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


class Listener(StreamingQueryListener):
    """The newest durations of the query with this name, in seconds, and its newest backlog in rows."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.seconds: dict[str, float] = {}
        self.backlog = 0

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        if event.progress.name != self._query:
            return
        known = event.progress.durationMs
        self.seconds = {f"spark_{name}_seconds": ms / 1000 for name, ms in known.items()}
        self.backlog = sum(behind(source.endOffset, source.latestOffset) for source in event.progress.sources)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def behind(end: str | None, latest: str | None) -> int:
    """The offsets between the end of a batch and the newest ones of its source, if both are numbers by topic and
    partition, as those of Kafka are; else 0, as for sources that do not report the newest offsets.

    >>> behind('{"clicks": {"0": 5, "1": 7}}', '{"clicks": {"0": 9, "1": 7, "2": 3}}'), behind('{"logOffset": 3}', None)
    (7, 0)
    """
    try:
        new, old = json.loads(latest or "{}"), json.loads(end or "{}")
        return sum(
            max(0, number - old.get(topic, {}).get(partition, 0))
            for topic, partitions in new.items()
            for partition, number in partitions.items()
        )
    except (AttributeError, TypeError, ValueError):  # offsets of another kind
        return 0
