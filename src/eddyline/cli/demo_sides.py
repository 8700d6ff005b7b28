"""The two sides of `eddyline demo`: the same job with the adaptive and with a fixed order, measured batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eddyline.cli.demo_job import START, STREAMS, WATCHED
from eddyline.plan.steps import Probe

if TYPE_CHECKING:
    from eddyline.routing.decisions import Decision
    from eddyline.runtime.reporting.reporter import Reporter
    from eddyline.runtime.reporting.summary import Progress, Summary

_PER = 1_000_000


@dataclass(frozen=True)
class JoinWork:
    """The rows of some batches, the seconds that they took, the CPU seconds of the join, and the tuples that it made.

    >>> (JoinWork(4_000_000, 2.0, 1.0, 7) - JoinWork(0, 0.0, 0.5, 0)).cpu_per_million
    0.125
    """

    rows: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    tuples: int = 0

    def __add__(self, other: JoinWork) -> JoinWork:
        return JoinWork(
            self.rows + other.rows, self.seconds + other.seconds, self.cpu + other.cpu, self.tuples + other.tuples
        )

    def __sub__(self, other: JoinWork) -> JoinWork:
        return JoinWork(
            self.rows - other.rows, self.seconds - other.seconds, self.cpu - other.cpu, self.tuples - other.tuples
        )

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds of the join for a million rows."""
        return self.cpu / self.rows * _PER if self.rows else 0.0

    def times(self, other: JoinWork) -> float:
        """How many times the CPU seconds of the other work this took for a row; 0 if that is not known."""
        return self.cpu_per_million / other.cpu_per_million if other.cpu > 0 and other.rows else 0.0


@dataclass(frozen=True)
class BatchWork:
    """A batch: the event times in seconds that the run had reached before it and with it, its work, how many rows of
    the watched stream asked which stream first, and the decisions that were taken in it."""

    begin: float
    end: float
    work: JoinWork
    first: Mapping[str, int] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()

    @property
    def middle(self) -> float:
        """The event time that says to which phase of the data the batch belongs."""
        return (self.begin + self.end) / 2


@dataclass
class Side:
    """One of the two runs."""

    batches: list[BatchWork] = field(default_factory=list)
    summary: Summary | None = None
    _total: JoinWork = JoinWork()
    _first: Counter[str] = field(default_factory=Counter)
    _decided: int = 0

    def watch(self, reporter: Reporter, progress: Progress, seconds: int) -> bool:
        """Note what is new since the last call; returns whether a batch with rows has ended. The streams have so many
        seconds of event time."""
        if progress.rows_in == self._total.rows:
            return False
        report, slots = reporter.report(), reporter.standing.slots
        decided = sum(report.counts.values())
        new, self._decided = decided - self._decided, decided
        tuples = sum(count.produced for counts in report.steps.values() for count in counts)
        total = JoinWork(progress.rows_in, progress.seconds, sum(slot.cpu for slot in slots), tuples)
        asked = report.steps.get((1 << WATCHED, 0), ())
        first = Counter({STREAMS[c.step.span.bit_length() - 1]: c.tuples for c in asked if isinstance(c.step, Probe)})
        begin, end = self.batches[-1].end if self.batches else 0.0, min(event_time(progress), float(seconds))
        decisions = report.decisions[-new:] if new else ()
        self.batches.append(BatchWork(begin, end, total - self._total, first - self._first, decisions))
        self._total, self._first = total, first
        return True


def event_time(progress: Progress) -> float:
    """The seconds of event time that all streams have reached."""
    return 0.0 if progress.watermark_us is None else max(0.0, (progress.watermark_us - START) / 1e6)
