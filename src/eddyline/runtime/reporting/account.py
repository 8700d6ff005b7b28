"""What a job with a checkpoint tells of itself, on whichever engine: its commit counts, its slots say the rest.

Rows are counted over all runs of the job, because the commit counts them; what slots did is told of this run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eddyline.engine.estimate import Estimate, put_together
from eddyline.engine.seen import Seen
from eddyline.plan.explain import explain, warnings
from eddyline.plan.tree import parse_tree
from eddyline.protocol.coordinator import Record
from eddyline.protocol.home import Home
from eddyline.routing.gathered import Gathered
from eddyline.routing.report import Report
from eddyline.runtime.reporting.advice import of_streams, summed_up
from eddyline.runtime.reporting.summary import Course, Progress, Summary
from eddyline.state.log.commits import Commit

COUNTS = ("rows_in", "rows_out", "rows_used", "rows_late", "rows_dead", "expression_errors")
"""What a commit counts, under the names of the summary."""


class Account:
    """Kept by a run; `commit` gives the newest one."""

    def __init__(self, home: Home, course: Course, streams: Sequence[str], commit: Callable[[], Commit]) -> None:
        self._home, self._course, self._commit = home, course, commit
        self._state: dict[str, int] = {"rows": 0, "bytes": 0}
        self._peaks = dict(self._state)
        self._read = dict.fromkeys(streams, 0)
        self._first_error = ""
        self._gathered = Gathered(home.plan, home.slots)
        self._estimates: dict[int, Estimate] = {}
        """The newest of each slot."""
        self.warnings = warnings(home.query)
        """Sources whose state can never expire."""

    def add(self, records: Sequence[Record]) -> None:
        """A batch was committed with these."""
        for what in self._state:
            self._state[what] = sum(r.state.get(what, 0) for r in records)
            self._peaks[what] = max(self._peaks[what], self._state[what])
        for record in records:
            self._gathered.add(record.slot, record.report)
            if "estimated" in record.report:
                self._estimates[record.slot] = Estimate.of_json(record.report["estimated"])
            for told in record.seen:
                for stream in self._read.keys() & told.keys():
                    self._read[stream] += told[stream]["rows"]
            self._first_error = self._first_error or record.first_error

    @property
    def counts(self) -> dict[str, int]:
        """What the job has counted, over all its runs."""
        return {name: self._commit().counts.get(name, 0) for name in COUNTS}

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far in this run, by kind."""
        return dict(self._gathered.counts)

    def report(self) -> Report:
        """What the eddies of all slots did so far in this run."""
        return self._gathered.report(self._course.seconds)

    def explain(self) -> str:
        """The plan that most slots have, what was measured on it so far, and what is believed of each plan that slots
        have."""
        home, report = self._home, self.report()
        tree = parse_tree(report.tree, [source.alias for source in home.query.sources])
        estimates = [e.text(home.plan) for e in put_together(list(self._estimates.values()))]
        parts = explain(home.query, home.split.partitioning, tree), report.text(), *estimates
        return "\n\n".join(part for part in parts if part)

    def progress(self) -> Progress:
        """Where the run is now; may be called from another thread."""
        counts = self.counts
        return Progress(
            rows_in=counts["rows_in"],
            rows_out=counts["rows_out"],
            rows_late=counts["rows_late"],
            rows_dead=counts["rows_dead"],
            state_rows=self._state["rows"],
            memory_bytes=self._state["bytes"],
            batches=self._course.batches,
            seconds=self._course.seconds,
            watermark_us=self._commit().watermarks["used"],
            rows_by_stream=dict(self._read),
        )

    def summary(self, stopped: bool) -> Summary:
        """What was done up to now, by the job as a whole."""
        report = self.report()
        seen = {name: Seen(**told) for name, told in self._commit().streams.items()}
        ends = of_streams({name: s.lateness for name, s in self._home.streams.items()}, seen)
        more: dict[str, Any] = {**self.counts, **self._course.told, **report.as_dict(), **summed_up(ends)}
        return Summary(
            first_error=self._first_error,
            peak_state_rows=self._peaks["rows"],
            peak_memory_bytes=self._peaks["bytes"],
            waiting=self._commit().waiting,
            stopped=stopped,
            decisions=self.decisions,
            migrations=self.decisions.get("migration", 0),
            plan=self.explain(),
            warnings=(*self.warnings, *more.pop("warnings")),
            input_batch=report.input_batch,
            **more,
        )
