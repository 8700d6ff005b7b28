"""The reporter of a run. The command line, `--live`, metrics and Python read it, whichever engine runs the job.

Any thread may call it at any time. The engine returns one frozen `Standing`, so all its numbers are of one moment; the
work of the eddy (`report`) may be one packet newer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eddyline.bound.model import BoundQuery
from eddyline.counts import SpillCounts
from eddyline.engine.groups.online import RunningEstimate
from eddyline.engine.standing import Standing
from eddyline.plan.explain import warnings
from eddyline.routing.report import Report
from eddyline.runtime.reporting.advice import of_streams, summed_up
from eddyline.runtime.reporting.summary import Course, Progress, Summary
from eddyline.spill.group_table import GroupTable


class ObservedEngine(Protocol):
    """The part of an engine that its reporter reads."""

    @property
    def standing(self) -> Standing:
        """The counts and the state of the run after the last batch."""

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far in this run, by kind."""

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of the aggregates of open groups after the last batch, at most of so many groups; none unless the
        settings ask for them."""

    def report(self, seconds: float) -> Report:
        """The work of the eddy so far in this run, `seconds` after its start."""

    def explain(self) -> str:
        """The plan, and the measurements on it so far."""


class Reporter:
    """Reports on one run of a query."""

    def __init__(
        self,
        query: BoundQuery,
        engine: ObservedEngine,
        course: Course,
        memory_limit: int | None = None,
        slots: int = 1,
        notes: Sequence[str] = (),
        little_memory: bool = False,
    ) -> None:
        """`memory_limit` is the setting `memory`; the run begins with so many `slots`. `notes` are more warnings;
        `little_memory` is in the progress."""
        self._engine, self._course, self.memory_limit = engine, course, memory_limit
        self.query, self.slots = query, slots
        self.lateness = {s.stream.name: s.stream.lateness for s in query.sources if not s.stream.is_table}
        self._asked = {s.stream.name for s in query.sources if s.stream.is_asked}
        self._columns = {s.stream.name: s.stream.given for s in query.sources}
        self.schema = query.schema
        """The columns of the results."""
        self.warnings, self._little_memory = [*warnings(query), *notes], little_memory
        """Warnings about columns that are text because of a missing value, sources whose state can never expire, and
        settings that do nothing."""

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far in this run, by kind."""
        return self._engine.decisions

    def explain(self) -> str:
        """The plan, and the measurements on it so far."""
        return self._engine.explain()

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of the aggregates of open groups after the last batch, at most of so many groups."""
        return self._engine.estimates(groups)

    def report(self) -> Report:
        """The work of the eddy so far in this run."""
        return self._engine.report(self._course.seconds)

    @property
    def standing(self) -> Standing:
        """The counts and the state of the run after the last batch."""
        return self._engine.standing

    @property
    def groups(self) -> GroupTable:
        """The accounts of the partition groups after the last batch."""
        return self._engine.standing.groups

    def progress(self) -> Progress:
        """The progress of the run after the last batch."""
        now, course = self._engine.standing, self._course
        return Progress(
            rows_in=now.job.rows_in,
            rows_out=now.job.rows_out,
            rows_late=now.job.rows_late,
            rows_dead=now.job.rows_dead,
            state_rows=now.held.rows,
            memory_bytes=now.held.bytes,
            batches=course.batches,
            seconds=course.seconds,
            watermark_us=now.watermark,
            rows_by_stream={
                name: now.run.streams[name].rows if name in now.run.streams else 0 for name in self.lateness
            },
            run_rows_in=now.run.rows_in,
            run_rows_out=now.run.rows_out,
            groups_on_disk=now.disk.groups,
            log_bytes=now.disk.log_bytes,
            results_behind_us=now.behind,
            slots_rebuilt=now.rebuilt,
            backlog_rows=course.backlog,
            little_memory=self._little_memory,
            **_spill(now.run.spill),
        )

    def summary(self, stopped: bool) -> Summary:
        """The summary of the run so far."""
        now, report = self._engine.standing, self.report()
        ends = summed_up(of_streams(self.lateness, now.job.streams, self._asked, self._columns))
        return Summary(
            first_error=now.job.first_error,
            peak_state_rows=now.peak.rows,
            peak_memory_bytes=now.peak.bytes,
            memory_limit=self.memory_limit,
            waiting=now.waiting,
            stopped=stopped,
            decisions=self.decisions,
            migrations=self.decisions.get("migration", 0),
            plan=self.explain(),
            warnings=(*self.warnings, *ends.pop("warnings")),
            input_batch=report.input_batch,
            run_rows_in=now.run.rows_in,
            run_rows_out=now.run.rows_out,
            finished=now.finished,
            prefer=now.prefer,
            groups_on_disk=now.disk.groups,
            peak_groups_on_disk=now.peak_disk.groups,
            peak_log_bytes=now.peak_disk.log_bytes,
            groups=now.groups.as_dict(),
            slots_rebuilt=now.rebuilt,
            estimates=tuple(estimate.as_dict() for estimate in self.estimates()),
            **(_spill(now.run.spill) | now.job.totals | self._course.told | report.as_dict() | ends),
        )


def _spill(counts: SpillCounts) -> dict[str, int]:
    """The fields of the progress and of the summary."""
    return {
        "groups_left": counts.left,
        "spilled_rows": counts.rows,
        "sweeps": counts.sweeps,
        "sweep_results": counts.results,
    }
