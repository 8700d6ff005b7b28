"""`bench recording`: the cost of a record, with large batches and with very small ones.

A join runs with a recorder, to a file and to a feed, beside the same join without one, in turns batch by batch. The
recorder's clock counts only the time of its own side, so that it looks and samples as often as it would if that side
ran alone. The ratio of the CPU seconds of both sides is the median over some rounds. The CPU seconds inside the
recorder are also measured directly; that share is much less noisy than the ratio.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from eddyline.engine.groups.online import RunningEstimate
from eddyline.engine.standing import Standing
from eddyline.errors import InternalError
from eddyline.routing.report import Report
from eddyline.runtime.recording.feed import EventFeed
from eddyline.runtime.recording.files import RecordFile
from eddyline.runtime.recording.recorder import Recorder
from eddyline.runtime.reporting.reporter import Reporter
from eddyline.runtime.reporting.summary import Course
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.timed_joins import Edges, TimedJoin, timed_join

SECONDS, WINDOW = 16.0, 1.0
ROUNDS = 5
RATE = 60_000.0
BATCHES = {"large batches": 0.25, "small batches": 0.004}
"""Seconds of event time in a batch."""
JOINS: dict[str, tuple[Edges, tuple[float, ...]]] = {
    "chain of 3": (((0, 1), (1, 2)), (0.5, 0.5)),
    "star of 5": (((0, 1), (0, 2), (0, 3), (0, 4)), (0.4, 0.5, 0.6, 0.5)),
}
RATIO, SHARE = 1.01, 0.01

_log = logging.getLogger(__name__)


class _Side:
    """One side: an engine with its reporter, and the CPU seconds that it took; with a file also the recorder."""

    def __init__(self, join: TimedJoin, file: Path | None) -> None:
        self._engine = BatchDriver(join.query, Settings(optimizer="off"))
        self._now = self.cpu = self.recording = 0.0
        self._course = Course(self._clock, None)
        self.reporter = Reporter(join.query, self, self._course)
        self._recorder: Recorder | None = None
        if file is not None:
            run = {"type": "run", "version": 1, "t": 0.0}
            self._recorder = Recorder(self.reporter, run, EventFeed(), RecordFile(file, _fail), self._clock)

    def _clock(self) -> float:
        return self._now

    def batch(self, rows: object) -> None:
        """Process a batch as the reading loop does."""
        began, begin = perf_counter(), process_time()
        self._engine.batch(rows)  # type: ignore[arg-type]
        self._now += perf_counter() - began
        self._course.batches += 1
        self._course.look()
        progress, between = self.reporter.progress(), process_time()
        if self._recorder is not None:
            self._recorder(progress)
            self.recording += process_time() - between
        self.cpu += process_time() - begin

    # What a reporter reads

    @property
    def standing(self) -> Standing:
        """As the engine says."""
        return self._engine.standing

    @property
    def decisions(self) -> dict[str, int]:
        """As the engine says."""
        return self._engine.decisions

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """None."""
        return ()

    def report(self, seconds: float) -> Report:
        """As the engine says."""
        return self._engine.report(seconds)

    def explain(self) -> str:
        """As the engine says."""
        return self._engine.explain()


def run() -> list[Result]:
    """Measure all joins, with all sizes of batches."""
    return [
        result
        for number, join in enumerate(JOINS)
        for size, batch in BATCHES.items()
        for result in _compare(join, size, batch, number)
    ]


def _compare(join: str, size: str, batch: float, seed: int) -> Iterator[Result]:
    edges, fan_outs = JOINS[join]
    made, ratios, shares = timed_join([RATE] * (len(edges) + 1), edges, fan_outs, SECONDS, WINDOW, seed), [], []
    for number in range(-1, ROUNDS):  # the first round warms up
        with tempfile.TemporaryDirectory(prefix="eddyline-bench-") as folder:
            off, on = _Side(made, None), _Side(made, Path(folder, "record"))
            for step, rows in enumerate(made.batches(batch)):
                for side in (off, on) if step % 2 else (on, off):
                    side.batch(rows)
        if off.reporter.progress().rows_out != on.reporter.progress().rows_out:
            raise InternalError("a recorder changes no result")
        if number >= 0:
            ratios.append(on.cpu / off.cpu)
            shares.append(on.recording / on.cpu)
            _log.info("%s, %s, round %d of %d: %.4f", join, size, number + 1, ROUNDS, ratios[-1])
    case, ratio, share = f"{join}, {size}", median(ratios), median(shares)
    yield Result(case, "CPU / without a record", ratio, "", RATIO, ratio <= RATIO)
    yield Result(case, "share of recording", share, "", SHARE, share <= SHARE)


def _fail(warning: str) -> None:
    raise InternalError(warning)
