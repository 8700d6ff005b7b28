"""The generator of Nexmark as a source with offsets: an offset is the number of the next event.

Streams of persons, auctions and bids number the same events. Where they have the same seed and the same options, an
auction's seller is a person of the other stream, and a bid is for one of the auctions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from eddyline.cql.declaration import Declaration
from eddyline.errors import SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sources.nexmark.rows import SCHEMAS, rows
from eddyline.runtime.sources.nexmark.settings import NexmarkSettings
from eddyline.runtime.sources.source import Chunk, Mark, Wanted, marked

_BLOCK = 1 << 17
"""The most events that are made at a time."""
_POLL = 0.2


@dataclass(frozen=True)
class Events:
    """The rows of a kind among the events first .. last - 1; `rows` is how many."""

    first: int
    last: int
    rows: int


class NexmarkSource:
    """Options: kind, events or duration, rate, start, seed, and the rules of NexmarkSettings."""

    def __init__(self, declaration: Declaration, seed: int, follow: bool = False) -> None:
        options = Options.of(declaration)
        self._settings = NexmarkSettings.of(options, seed)
        options.done()
        self.schema = SCHEMAS[self._settings.kind]
        if declaration.columns is not None and pa.schema(declaration.columns) != self.schema:
            names = ", ".join(self.schema.names)
            raise SettingError(f"nexmark has columns of its own ({names}): leave out the list")
        self._follow = follow

    @property
    def endless(self) -> bool:
        """Whether neither `events` nor `duration` bounds it."""
        return self._settings.events is None

    @property
    def may_block(self) -> bool:
        """Whether a reader waits: behind the last event of a stream that is followed."""
        return self._follow and not self.endless

    @property
    def rate(self) -> float:
        """The rows of a second of event time."""
        return self._settings.rate * self._settings.proportion / self._settings.epoch

    def count(self) -> int | None:
        """The number of rows; None if it never ends."""
        return None if self._settings.events is None else self._settings.rows(self._settings.events)

    def plan(self, start: Mapping[str, int], limit: int) -> Mapping[str, int]:
        """The end of a batch of about `limit` rows."""
        return self._after(start, self._settings.events_for(limit))

    def ended(self, end: Mapping[str, int]) -> bool:
        """Whether there are no events after an offset."""
        events = self._settings.events
        return not self._follow and events is not None and end.get("event", 0) >= events

    def backlog(self, end: Mapping[str, int]) -> int:
        """The number of rows after an offset; 0 where there is no end, because then nothing waits."""
        count = self.count()
        return 0 if count is None else count - self._settings.rows(end.get("event", 0))

    def between(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Events]:
        """The rows of a batch in pieces."""
        first, last = start.get("event", 0), end.get("event", 0)
        cuts = [*range(first, last, _BLOCK), last]
        count = self._settings.rows
        return [Events(a, b, count(b) - count(a)) for a, b in pairwise(cuts) if b > a]

    def pieces(self) -> list[Events]:
        """All rows, for a table."""
        assert self._settings.events is not None, "a table that never ends is refused"
        return self.between({}, {"event": self._settings.events})

    def read_piece(self, piece: Events, wanted: Wanted) -> Iterator[Chunk]:
        """The rows of a piece."""
        yield Chunk(rows(self._settings, piece.first, piece.last, wanted.columns))

    def read(self, wanted: Wanted) -> Iterator[Chunk]:
        """All rows."""
        return self.read_from({}, wanted)

    def read_from(self, start: Any, wanted: Wanted, most: int | None = None) -> Iterator[Chunk]:
        """The rows after an offset, in ranges of `most` events. Streams of all kinds have the same ranges, so none runs
        ahead of another."""
        at: Mapping[str, int] = start
        while not self.ended(at):
            end = self._after(at, min(most or _BLOCK, _BLOCK))
            if end == at:
                time.sleep(_POLL)
                continue
            chunks = (chunk for piece in self.between(at, end) for chunk in self.read_piece(piece, wanted))
            yield from marked(chunks, Mark(end, self.backlog(end)), self.schema, wanted)
            at = end

    def close(self) -> None:
        """Nothing is open."""

    def _after(self, start: Mapping[str, int], events: int) -> Mapping[str, int]:
        at = start.get("event", 0)
        last = self._settings.events
        end = at + events if last is None else max(at, min(at + events, last))
        return {"event": end} if end else {}
