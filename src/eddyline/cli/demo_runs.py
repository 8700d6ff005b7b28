"""The runs of `eddyline demo` as they were measured, for the text and the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eddyline.routing.decisions import Decision
    from eddyline.runtime.reporting.summary import Summary


@dataclass(frozen=True)
class BatchMark:
    """The state of a run after a batch: rows read, seconds of running, seconds of event time, the route of the watched
    stream."""

    rows: int
    seconds: float
    event: float
    route: str


@dataclass
class Ran:
    """A measured run, batch by batch; each decision with the event time at the end of its batch."""

    marks: list[BatchMark] = field(default_factory=list)
    decisions: list[tuple[float, Decision]] = field(default_factory=list)
    summary: Summary | None = None

    @property
    def come_to(self) -> float:
        """The event time that the newest batch has reached."""
        return self.marks[-1].event if self.marks else 0.0

    def at(self, event: float) -> tuple[float, float]:
        """Rows read and seconds of running at an event time, interpolated between batches."""
        before = BatchMark(0, 0.0, 0.0, "")
        for mark in self.marks:
            if mark.event >= event and mark.event > before.event:
                share = (event - before.event) / (mark.event - before.event)
                return (
                    before.rows + share * (mark.rows - before.rows),
                    before.seconds + share * (mark.seconds - before.seconds),
                )
            before = mark
        return before.rows, before.seconds

    def rate(self, begin: float, end: float) -> float:
        """Rows a second between two event times."""
        (rows, seconds), (more, later) = self.at(begin), self.at(end)
        return (more - rows) / (later - seconds) if later > seconds else 0.0

    def route(self, event: float) -> str:
        """The route that was taken at an event time."""
        return next((m.route for m in reversed(self.marks) if m.event <= event and m.route), "")


@dataclass(frozen=True)
class Own:
    """Spark's own joins over the first `until` seconds: rows a second after the first batch, and results."""

    until: int
    rate: float
    results: int


@dataclass(frozen=True)
class Demo:
    """All measurements of a demo. `until` is the event time up to which the fixed order was run; `results` is the
    number of results up to then."""

    seconds: int
    engine: str
    adaptive: Ran
    fixed: Ran
    until: int
    results: int
    own: Own | None
