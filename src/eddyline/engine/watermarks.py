"""Watermarks: how far each stream has come, seen from between two batches.

They move only when a batch is finished, so that which rows are late depends on the cut into batches and on nothing
else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eddyline.plan.bounds import FOREVER
from eddyline.query.model import Stream


class Watermarks:
    """The watermarks of the streams of one query."""

    def __init__(self, streams: Collection[Stream]) -> None:
        self._lateness = {s.name: s.lateness for s in streams}
        self._newest: dict[str, int] = {}
        self._ended: frozenset[str] = frozenset()
        self._used: int | None = None

    def saved(self) -> dict[str, Any]:
        """All that is known, as plain data."""
        return {"newest": dict(self._newest), "ended": sorted(self._ended), "used": self._used}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """What `saved` gave."""
        self._newest, self._ended, self._used = dict(saved["newest"]), frozenset(saved["ended"]), saved["used"]

    def late_before(self, stream: str) -> int | None:
        """Rows of the stream with a smaller time are late in the batch to come."""
        known = [w for w in (self._of(stream), self._used) if w is not None]
        return max(known, default=None)

    def _of(self, stream: str) -> int | None:
        newest = self._newest.get(stream)
        return None if newest is None else newest - self._lateness[stream]

    def finish_batch(self, newest: Mapping[str, int], ended: Collection[str]) -> None:
        """A batch is done: `newest` are the largest times of its readable rows, `ended` the streams ending with it."""
        self._newest = self._newest | {s: max(time, self._newest.get(s, time)) for s, time in newest.items()}
        self._ended |= frozenset(ended)
        going = [self._of(s) for s in self._lateness if s not in self._ended]
        known = [w for w in going if w is not None]
        if known and len(known) == len(going):
            self._used = min(known)

    @property
    def query(self) -> int | None:
        """The query's watermark: the least of its streams' that go on; None until each has had a row."""
        return self._used

    @property
    def by_stream(self) -> dict[str, int | None]:
        """The least time a row still to come can have, per stream; FOREVER for streams that ended."""
        return {s: FOREVER if s in self._ended else self.late_before(s) for s in self._lateness}

    @property
    def newest(self) -> int | None:
        """The newest time of any readable row of any stream."""
        return max(self._newest.values(), default=None)
