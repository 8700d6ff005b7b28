"""Watermarks: how far each stream has come, as of the last finished batch.

They move only when a batch is finished. So which rows are late depends only on the cut into batches and, if
`idle_timeout` is set, on which streams were declared idle; the commit of the batch records these.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from eddyline.bound.model import BoundStream
from eddyline.plan.bounds import FOREVER
from eddyline.routing.decisions import Decision
from eddyline.running_time import running_seconds

Clock = Callable[[], float]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reached:
    """How far the streams of a query have come."""

    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest time of a readable row of each stream."""
    ended: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    used: int | None = None
    """The query's watermark."""


@dataclass(frozen=True)
class Advanced(Reached):
    """How far slots have emitted results and released rows."""

    counted: Mapping[int, int | None] = field(default_factory=dict)
    """For each source with a ROWS window, the time before which its rows are in no window any more; None: unknown."""


class Watermarks:
    """The watermarks of the streams of one query."""

    def __init__(self, streams: Collection[BoundStream]) -> None:
        self._lateness = {s.name: s.lateness for s in streams}
        self._newest: dict[str, int] = {}
        self._ended: frozenset[str] = frozenset()
        self._idle: frozenset[str] = frozenset()
        self._used: int | None = None

    @property
    def reached(self) -> Reached:
        """How far the streams have come."""
        return Reached(dict(self._newest), tuple(sorted(self._ended)), tuple(sorted(self._idle)), self._used)

    def restore(self, reached: Reached) -> None:
        """Restore from a snapshot."""
        self._newest, self._used = dict(reached.newest), reached.used
        self._ended, self._idle = frozenset(reached.ended), frozenset(reached.idle)

    def not_after(self, time: int | None) -> None:
        """Go back to a time, if they have passed it: rows of that time are still to come. None: to no time."""
        if time is not None:
            newest = {stream: min(newest, time + self._lateness[stream]) for stream, newest in self._newest.items()}
            self._newest, self._ended, self._idle = newest, frozenset(), frozenset()
            self._used = None if self._used is None else min(self._used, time)

    def late_before(self, stream: str) -> int | None:
        """The time below which rows of the stream are late in the next batch."""
        known = [w for w in (self.of_stream(stream), self._used) if w is not None]
        return max(known, default=None)

    def of_stream(self, stream: str) -> int | None:
        """The stream's own watermark; None before its first row."""
        newest = self._newest.get(stream)
        return None if newest is None else newest - self._lateness[stream]

    def newest_of(self, stream: str) -> int | None:
        """The newest time of a readable row of the stream."""
        return self._newest.get(stream)

    def finish_batch(self, newest: Mapping[str, int], ended: Collection[str], quiet: Collection[str] = ()) -> None:
        """Move the watermarks after a batch. `newest` are the largest times of its readable rows, `ended` the streams
        that end with it, and `quiet` the streams that had been silent for too long when it began (Silence.begin). A
        quiet stream without a row in the batch is idle: it does not hold back the query's watermark. The watermark
        never falls, even when the stream comes back."""
        self._newest = self._newest | {s: max(when, self._newest.get(s, when)) for s, when in newest.items()}
        self._ended |= frozenset(ended)
        self._idle = frozenset(quiet).difference(newest, self._ended)
        going = [self.of_stream(s) for s in self._lateness if s not in self._ended | self._idle]
        known = [w for w in going if w is not None]
        if known and len(known) == len(going):
            self._used = min(known) if self._used is None else max(self._used, min(known))

    @property
    def query(self) -> int | None:
        """The query's watermark: the least watermark of the streams that are neither idle nor ended. None until each of
        them has had a row."""
        return self._used

    @property
    def by_stream(self) -> dict[str, int | None]:
        """By stream, the least time that a future row can have; FOREVER for streams that have ended."""
        return {s: FOREVER if s in self._ended else self.late_before(s) for s in self._lateness}

    @property
    def idle(self) -> frozenset[str]:
        """Streams that are idle."""
        return self._idle

    @property
    def ended(self) -> frozenset[str]:
        """Streams that have ended."""
        return self._ended

    @property
    def newest(self) -> int | None:
        """The newest time of any readable row of any stream."""
        return max(self._newest.values(), default=None)


class Silence:
    """Tells which streams are quiet. A stream is quiet if it had no row to read in any batch that began within the last
    `timeout` seconds before the current one; with None no stream ever is. So a stream is not quiet because of a long
    batch during which its rows arrived, nor while it has rows and other streams are read first, nor because the process
    was stopped."""

    def __init__(self, streams: Iterable[str], timeout: float | None, clock: Clock = running_seconds) -> None:
        self._streams, self._timeout, self._clock = tuple(streams), timeout, clock
        self._heard: dict[str, float] = {}
        self._now = 0.0
        self._idle: frozenset[str] = frozenset()
        self._decisions: list[Decision] = []

    def begin(self, unread: Iterable[str] = ()) -> list[str]:
        """Begin a batch that may leave rows of the `unread` streams for later; returns the quiet streams. They can
        change the results of the batch, so they are part of its decision."""
        self._now = 0.0 if self._timeout is None else self._clock()
        self._heard = dict.fromkeys(self._streams, self._now) | self._heard | dict.fromkeys(unread, self._now)
        if self._timeout is None:
            return []
        return sorted(s for s, moment in self._heard.items() if self._now - moment >= self._timeout)

    def after(self, heard: Iterable[str], idle: Collection[str], ended: Collection[str] = ()) -> None:
        """Record the streams that had rows in the batch (`heard`), those that are idle (Watermarks.idle) and those that
        have ended. Changes are decisions, and are written to the log."""
        self._heard |= dict.fromkeys(heard, self._now)
        for stream in sorted(set(idle) - self._idle):
            silent = {"silent": self._now - self._heard.get(stream, self._now), "idle_timeout": self._timeout or 0.0}
            self._decide(
                f"{stream} is idle", f"no row for {self._timeout:g} s; it does not hold the watermark back", silent
            )
        for stream in sorted(self._idle.difference(idle, ended)):
            self._decide(f"{stream} is not idle any more", "it has rows again", {})
        self._idle = frozenset(idle)

    def _decide(self, what: str, why: str, measured: Mapping[str, float]) -> None:
        _log.warning("%s: %s", what, why)
        self._decisions.append(Decision("idle", 0, what, why, measured))

    def decisions(self) -> list[Decision]:
        """The decisions since the last call, each of which is a stream that became idle or came back."""
        taken, self._decisions = self._decisions, []
        return taken
