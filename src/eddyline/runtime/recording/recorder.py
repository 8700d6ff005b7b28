"""The recorder: watches a run and makes the events of its record.

It is called after every batch. It looks at decisions at most every `LOOK` seconds, and takes a sample at most every
`SAMPLE` seconds, so its cost does not depend on how small batches are. No decision is lost silently: decisions that the
report did not keep until the next look are counted in a note.

The times of events are seconds since the first batch began. A decision has the time at which the recorder saw it, at
most a batch and `LOOK` seconds after it was taken; `at`, the number of rows, is exact.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from eddyline.routing.decisions import Decision
from eddyline.routing.report import Report
from eddyline.runtime.recording.feed import Event, EventFeed
from eddyline.runtime.recording.files import RecordFile
from eddyline.runtime.recording.new_decisions import NewDecisions
from eddyline.runtime.recording.outcomes import Outcomes
from eddyline.runtime.recording.sampling import Sampler
from eddyline.runtime.recording.words import named
from eddyline.runtime.reporting.reporter import Reporter
from eddyline.runtime.reporting.summary import Progress, Summary

LOOK, SAMPLE, HEARTBEAT = 0.25, 1.0, 5.0
"""Seconds between two looks at decisions, two samples, and two samples while no batch ends."""
KINDS = {"reroute": "route"}
"""The kinds of decisions that have another name in a record."""
_LONG = ("routes", "steps", "packets", "decisions_log", "groups", "plan", "estimates")
"""The fields of a summary that are not in the last event: samples have them."""


class Recorder:
    """Records one run to a feed, and to a file if there is one. Used as the `watch` of a runner, and with `with`."""

    def __init__(
        self,
        reporter: Reporter,
        run: Event,
        feed: EventFeed | None = None,
        file: RecordFile | None = None,
        clock: Callable[[], float] = time.perf_counter,
        sample: float = SAMPLE,
    ) -> None:
        """`run` is the first event (run_event.py); `sample` is the least time between two samples."""
        self._reporter, self._feed, self._file, self._clock = reporter, feed, file, clock
        self._between_samples = sample
        self._sampler, self._new = Sampler(reporter.lateness, reporter.memory_limit), NewDecisions()
        self._outcomes = Outcomes()
        self._aliases = [source.alias for source in reporter.query.sources]
        self._id = 0
        self._next_look = self._next_sample = -math.inf
        self._sampled_at = self._seen_at = clock()
        self._t = 0.0
        self._busy, self._ended = threading.Lock(), False
        self._emit(run)

    def __enter__(self) -> Recorder:
        return self

    def __call__(self, progress: Progress) -> None:
        """A batch has ended."""
        now = self._clock()
        with self._busy:
            self._pass_to(progress.seconds, now)
            if now >= self._next_look and not self._ended:
                self._look(now, progress, sample=now >= self._next_sample)

    def idle(self) -> None:
        """May be called at any time, by any thread: takes a sample if there was none for long."""
        now = self._clock()
        if now >= self._sampled_at + HEARTBEAT and self._busy.acquire(blocking=False):
            try:
                if not self._ended:
                    self._pass_to(self._t + max(0.0, now - self._seen_at), now)
                    self._look(now, self._reporter.progress(), sample=True)
            finally:
                self._busy.release()

    def end(self, summary: Summary) -> None:
        """The run has ended; this is its summary."""
        self._finish("stopped" if summary.stopped else "done", summary, None)

    def fail(self, error: BaseException) -> None:
        """The run has failed."""
        with self._busy:
            known = not self._ended
        if known:
            self._finish("failed", self._reporter.summary(stopped=False), error)

    def note(self, text: str, level: str = "warning") -> None:
        """Record a message."""
        with self._busy:
            self._emit({"type": "note", "t": self._t, "level": level, "text": text})

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.fail(error)
        if self._file is not None:
            self._file.close()

    def _pass_to(self, seconds: float, now: float) -> None:
        """So many seconds of the run are over. Time never goes back."""
        self._t, self._seen_at = max(self._t, round(seconds, 3)), now

    def _look(self, now: float, progress: Progress, sample: bool) -> None:
        report, standing = self._reporter.report(), self._reporter.standing
        self._next_look = now + LOOK
        for outcome in self._outcomes.measure(self._t, progress.run_rows_in, report, standing):
            self._emit(outcome)
        self._decisions(self._t, report)
        if sample:
            self._next_sample, self._sampled_at = now + self._between_samples, now
            self._emit(self._sampler.sample(self._t, progress, report, standing))

    def _decisions(self, t: float, report: Report) -> None:
        new, missed = self._new.look(report)
        if missed:
            text = f"{missed:,} more decisions were taken since the last look, and are not in the record"
            self._emit({"type": "note", "t": t, "level": "warning", "text": text})
        for decision in new:
            self._id += 1
            self._emit(self._decision(t, decision))
            for outcome in self._outcomes.decided(t, self._id, decision):
                self._emit(outcome)

    def _decision(self, t: float, decision: Decision) -> Event:
        return {
            "type": "decision",
            "t": t,
            "id": self._id,
            "kind": KINDS.get(decision.kind, decision.kind),
            "at": decision.at,
            "slot": decision.slot,
            "what": decision.what,
            "why": named(decision.why, self._aliases) if decision.kind == "plan" else decision.why,
            "measured": _finite(decision.measured),
            "expected": _finite(decision.expected),
        }

    def _finish(self, status: str, summary: Summary, error: BaseException | None) -> None:
        with self._busy:
            now = self._clock()
            self._pass_to(summary.seconds, now)
            self._look(now, self._reporter.progress(), sample=True)
            for outcome in self._outcomes.end(self._t):
                self._emit(outcome)
            told = {key: value for key, value in summary.as_dict().items() if key not in _LONG}
            for warning in summary.warnings:
                self._emit({"type": "note", "t": self._t, "level": "warning", "text": warning})
            event: dict[str, Any] = {"type": "end", "t": self._t, "status": status, "summary": told}
            self._emit(event | {"error": None if error is None else str(error)})
            self._ended = True

    def _emit(self, event: Event) -> None:
        if self._file is not None:
            self._file.write(event)
        if self._feed is not None:
            self._feed.publish(event)


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: float(value) if math.isfinite(value) else None for name, value in numbers.items()}
