"""What was seen of the rows of each stream: how many, how many late and dead, how far out of order, and why dead.

It merges, so tasks count on their own, and a commit adds their tallies to what earlier batches saw. Only disorder, how
far a row is behind the newest row of its stream before it, depends on the order of rows. A task knows the order of its
own rows, and the newest row of earlier batches. Several tasks read the files of a batch: a tally therefore has the
oldest and newest time of each file (`spans`), and `together` puts the files in order. Rows that Spark read have no such
order: they are compared with earlier batches and with rows of the same task.

`behind` is a LATENESS that keeps every row, however the rows are cut into batches: the watermark of a stream is never
more than its newest row so far, less its lateness. A row may also be behind the query's watermark alone, if its stream
was idle. `overtaken` says how far; its own lateness would not help, only that of the streams that went on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eddyline.engine.split import SplitBatch
from eddyline.engine.watermarks import Watermarks

Place = Sequence[Any] | None
"""What files are put in order by; None if there is no order."""
Told = Mapping[str, Mapping[str, Any]]
"""A tally as plain data, by stream."""


@dataclass(frozen=True)
class Seen:
    """Of one stream; lengths of time in microseconds."""

    rows: int = 0
    """Rows read, late and dead ones too."""
    late: int = 0
    dead: int = 0
    behind: int = 0
    """The most that a row was behind the newest row before it."""
    late_by: int = 0
    """The most that a late row was behind the newest row of earlier batches."""
    overtaken: int = 0
    """The most that a row was behind the query's watermark while its stream did not hold that back."""
    reason: str = ""
    """Why the first dead row is dead."""

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            self.rows + other.rows,
            self.late + other.late,
            self.dead + other.dead,
            max(self.behind, other.behind),
            max(self.late_by, other.late_by),
            max(self.overtaken, other.overtaken),
            self.reason or other.reason,
        )


class Tally:
    """Counts rows of a batch in one process."""

    def __init__(self, watermarks: Watermarks) -> None:
        self._watermarks = watermarks
        self._seen: dict[str, Seen] = {}
        self._newest: dict[str, int] = {}
        self._place: Place = None
        self._spans: dict[str, list[tuple[Place, int, int]]] = {}

    def at(self, place: Place) -> None:
        """The next rows come from this place; their order among those of other places is found out later."""
        self._place = place
        self._newest = {}

    def newest(self, stream: str) -> int | None:
        """The newest time of a row that came before, as far as the order is known."""
        return self._newest.get(stream, self._watermarks.newest_of(stream))

    def add(self, stream: str, rows: int, found: SplitBatch) -> None:
        """Rows that could be read were split."""
        late_by = overtaken = 0
        if found.late.num_rows and found.oldest is not None:
            reached, own = self._watermarks.newest_of(stream), self._watermarks.of_stream(stream)
            query = self._watermarks.query
            if query is not None and (own is None or own < query):
                overtaken = max(0, query - found.oldest)
            late_by = overtaken if reached is None else max(0, reached - found.oldest)
        reason = found.reasons[0].as_py() if found.dead.num_rows else ""
        more = Seen(rows, found.late.num_rows, found.dead.num_rows, found.behind, late_by, overtaken, reason)
        self._seen[stream] = self._seen.get(stream, Seen()) + more
        if found.newest is not None and found.oldest is not None:
            before = self.newest(stream)
            self._newest[stream] = found.newest if before is None else max(before, found.newest)
            self._spans.setdefault(stream, []).append((self._place, found.oldest, found.newest))

    def unread(self, stream: str, rows: int, reason: str) -> None:
        """Rows that could not be read."""
        self._seen[stream] = self._seen.get(stream, Seen()) + Seen(rows=rows, dead=rows, reason=reason)

    def read(self, stream: str, rows: int) -> None:
        """Rows of a table, which have no times."""
        self._seen[stream] = self._seen.get(stream, Seen()) + Seen(rows=rows)

    @property
    def told(self) -> Told:
        """As plain data."""
        return {name: asdict(seen) | {"spans": self._ordered(name)} for name, seen in self._seen.items()}

    def _ordered(self, stream: str) -> list[list[Any]]:
        """The oldest and newest time at each place that is known."""
        found: list[list[Any]] = []
        for place, oldest, newest in self._spans.get(stream, ()):
            if place is None:
                continue
            if found and found[-1][0] == place:
                found[-1][1:] = min(found[-1][1], oldest), max(found[-1][2], newest)
            else:
                found.append([place, oldest, newest])
        return found


def together(before: Told, tallies: Iterable[Told], reached: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """What was seen `before` a batch, and what all tallies of the batch saw; `reached` are the newest times before it.

    >>> def task(file: int, *times: int) -> Told:
    ...     return {"s": asdict(Seen(len(times))) | {"spans": [[[file], min(times), max(times)]]}}
    >>> together({}, [task(2, 20, 30), task(1, 10, 19)], {"s": 12})["s"]["behind"]
    2
    >>> together({}, [task(2, 20, 30), task(1, 10, 25)], {"s": 12})["s"]["behind"]
    5
    """
    found = {name: _seen(seen) for name, seen in before.items()}
    spans: dict[str, list[Sequence[Any]]] = {}
    for tally in tallies:
        for name, seen in tally.items():
            found[name] = found.get(name, Seen()) + _seen(seen)
            spans.setdefault(name, []).extend(seen["spans"])
    for name, places in spans.items():
        newest = reached.get(name)
        for _, oldest, last in sorted(places, key=lambda span: span[0]):
            if newest is not None:
                found[name] += Seen(behind=max(0, newest - oldest))
            newest = last if newest is None else max(newest, last)
    return {name: asdict(seen) for name, seen in found.items()}


def _seen(told: Mapping[str, Any]) -> Seen:
    return Seen(**{name: value for name, value in told.items() if name != "spans"})
