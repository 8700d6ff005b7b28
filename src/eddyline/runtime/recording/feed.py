"""The events of a run in memory, for any number of readers.

A reader keeps one number: that of the last event that it has. `since` gives the events after it. So a reader costs the
feed nothing, and may come late, stay away or vanish.

Memory is bounded. When there are too many samples, neighbours among the older half are merged and their counts added
up. So a late reader sees the whole run, its beginning in less detail. Only the newest of the other events are kept; a
note says how many were dropped. Any thread may call any method; one thread publishes.
"""

from __future__ import annotations

import threading
from typing import Any

from eddyline.runtime.recording.thinning import merged

Event = dict[str, Any]

SAMPLES, OTHERS = 4096, 8192
"""The most samples, and the most other events, that a feed keeps."""


class EventFeed:
    """The newest events, each with its number.

    >>> feed = EventFeed()
    >>> feed.publish({"type": "run", "t": 0.0}), feed.publish({"type": "end", "t": 1.5})
    (1, 2)
    >>> feed.since(1), feed.closed
    ([(2, {'type': 'end', 't': 1.5})], True)
    """

    def __init__(self, samples: int = SAMPLES, others: int = OTHERS) -> None:
        self._most_samples, self._most_others = samples, others
        self._lock = threading.Lock()
        self._samples: list[tuple[int, Event]] = []
        self._others: list[tuple[int, Event]] = []
        self._run: tuple[int, Event] | None = None
        self._last = self._dropped = 0
        self.closed = False
        """Whether the run has ended: nothing is published any more."""

    def publish(self, event: Event) -> int:
        """Add an event, which must not be changed afterwards; returns its number."""
        with self._lock:
            self._last += 1
            self._add((self._last, event))
            self.closed = event["type"] == "end"
            return self._last

    def since(self, after: int = 0) -> list[tuple[int, Event]]:
        """The events with a larger number than `after`, oldest first."""
        with self._lock:
            run = [] if self._run is None else [self._run]
            found = [
                item for item in (*run, *_newer(self._others, after), *_newer(self._samples, after)) if item[0] > after
            ]
        return sorted(found, key=lambda item: item[0])

    def _add(self, item: tuple[int, Event]) -> None:
        kind = item[1]["type"]
        if kind == "run":
            self._run = item
        elif kind == "sample":
            self._samples.append(item)
            if len(self._samples) > self._most_samples:
                self._thin()
        else:
            self._others.append(item)
            if len(self._others) > self._most_others:
                self._drop()

    def _thin(self) -> None:
        """Merge neighbours among the older half of the samples."""
        half = len(self._samples) // 2 // 2 * 2
        old, new = self._samples[:half], self._samples[half:]
        pairs = zip(old[::2], old[1::2], strict=True)
        self._samples = [(number, merged(first, second)) for (_, first), (number, second) in pairs] + new

    def _drop(self) -> None:
        """Drop the oldest eighth of the other events; a note in its place says how many are gone."""
        some = max(2, len(self._others) // 8)
        number, last = self._others[some - 1]
        self._dropped += some - bool(self._dropped)
        text = f"{self._dropped:,} earlier events are in the record only"
        self._others[:some] = [(number, {"type": "note", "t": last["t"], "level": "warning", "text": text})]


def _newer(items: list[tuple[int, Event]], after: int) -> list[tuple[int, Event]]:
    """The items with a larger number, found from the end: a reader is seldom far behind."""
    at = len(items)
    while at and items[at - 1][0] > after:
        at -= 1
    return items[at:]
