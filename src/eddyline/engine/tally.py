"""A tally counts the rows of a batch in one process: used, late and dead ones, and how far they are out of order.

Tallies add up (eddyline/counts.py), so tasks count on their own. Only disorder, how far a row is behind the newest row
of its stream before it, depends on the order of rows. A task knows the order of its own rows, and the newest row of
earlier batches. Several tasks read the files of a batch: a tally therefore has the oldest and newest time of each file
(`spans`), and `disorder` puts the files in order. Rows that Spark read have no such order: they are compared with
earlier batches and with rows of the same task.

`behind` is a LATENESS that keeps every row, however the rows are cut into batches: the watermark of a stream is never
more than its newest time so far, minus its lateness. If a stream was idle, its rows may be behind the query's watermark
but not behind its own. `overtaken` tells how far; a larger lateness of this stream would not help, only one of the
streams that were not idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eddyline.counts import Counts, StreamCounts
from eddyline.engine.split import SplitBatch
from eddyline.engine.watermarks import Watermarks


@dataclass(frozen=True, order=True)
class FilePlace:
    """The place of a piece of a file in the order of files."""

    path: tuple[bytes, ...]
    piece: int = 0


@dataclass(frozen=True)
class Span:
    """The oldest and the newest time of the rows from one place."""

    place: FilePlace
    oldest: int
    newest: int


Spans = Mapping[str, tuple[Span, ...]]
"""The spans of the rows of each stream, in any order."""


class Tally:
    """Counts rows of a batch in one process."""

    def __init__(self, watermarks: Watermarks) -> None:
        self._watermarks = watermarks
        self._streams: dict[str, StreamCounts] = {}
        self._newest: dict[str, int] = {}
        self._place: FilePlace | None = None
        self._spans: dict[str, tuple[Span, ...]] = {}

    def at(self, place: FilePlace | None) -> None:
        """Tell that the next rows come from this place; None if places have no order. `disorder` compares them with
        rows of other places later."""
        self._place = place
        self._newest = {}

    def newest(self, stream: str) -> int | None:
        """The newest time of an earlier row, as far as the order is known."""
        return self._newest.get(stream, self._watermarks.newest_of(stream))

    def split(self, stream: str, found: SplitBatch) -> None:
        """Count readable rows of a stream after their split."""
        late_by = overtaken = 0
        if found.late.num_rows and found.oldest is not None:
            reached, own = self._watermarks.newest_of(stream), self._watermarks.of_stream(stream)
            query = self._watermarks.query
            if query is not None and (own is None or own < query):
                overtaken = max(0, query - found.oldest)
            late_by = overtaken if reached is None else max(0, reached - found.oldest)
        reason = found.reasons[0].as_py() if found.dead.num_rows else ""
        late, dead = found.late.num_rows, found.dead.num_rows
        self._add(stream, StreamCounts(found.used, 0, late, dead, found.behind, late_by, overtaken, reason))
        if found.newest is not None and found.oldest is not None:
            before = self.newest(stream)
            self._newest[stream] = found.newest if before is None else max(before, found.newest)
            self._note_span(stream, found.oldest, found.newest)

    def unreadable(self, stream: str, rows: int, reason: str) -> None:
        """Count rows of a stream or table that its source could not read."""
        self._add(stream, StreamCounts(dead=rows, reason=reason))

    def loaded(self, table: str, rows: int) -> None:
        """Count rows of a table, which have no times."""
        self._add(table, StreamCounts(loaded=rows))

    @property
    def counts(self) -> Counts:
        """All counts."""
        return Counts(dict(self._streams))

    @property
    def spans(self) -> Spans:
        """By stream, the oldest and newest time at each known place."""
        return self._spans

    def _add(self, stream: str, counts: StreamCounts) -> None:
        self._streams[stream] = self._streams.get(stream, StreamCounts()) + counts

    def _note_span(self, stream: str, oldest: int, newest: int) -> None:
        if self._place is None:
            return
        found = self._spans.get(stream, ())
        if found and found[-1].place == self._place:
            oldest, newest, found = min(found[-1].oldest, oldest), max(found[-1].newest, newest), found[:-1]
        self._spans[stream] = (*found, Span(self._place, oldest, newest))


def disorder(told: Iterable[Spans], reached: Mapping[str, int]) -> Counts:
    """How far files are behind files before them, from the spans of all tasks of a batch. `reached` are the newest
    times before the batch.

    >>> tasks = [{"s": (Span(FilePlace((), 2), 20, 30),)}, {"s": (Span(FilePlace((), 1), 10, 25),)}]
    >>> disorder(tasks, {"s": 12}).streams["s"].behind
    5
    """
    spans: dict[str, list[Span]] = {}
    for one in told:
        for stream, some in one.items():
            spans.setdefault(stream, []).extend(some)
    behind = dict.fromkeys(spans, 0)
    for stream, places in spans.items():
        newest = reached.get(stream)
        for span in sorted(places, key=lambda span: span.place):
            if newest is not None:
                behind[stream] = max(behind[stream], newest - span.oldest)
            newest = span.newest if newest is None else max(newest, span.newest)
    return Counts({stream: StreamCounts(behind=most) for stream, most in behind.items()})
