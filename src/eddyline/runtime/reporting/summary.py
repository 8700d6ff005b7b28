"""The numbers of a run: its progress while it runs, and its summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any


@dataclass(frozen=True)
class Progress:
    """The numbers of a run at one moment."""

    rows_in: int = 0
    rows_out: int = 0
    rows_late: int = 0
    rows_dead: int = 0
    state_rows: int = 0
    memory_bytes: int = 0
    batches: int = 0
    seconds: float = 0.0
    watermark_us: int | None = None
    """The query's watermark, in microseconds since 1970, UTC; None: not known yet."""
    rows_by_stream: Mapping[str, int] = field(default_factory=dict)
    """Rows that this run read from each stream, including dead and late ones."""
    run_rows_in: int = 0
    """Rows that this run read; with a checkpoint, `rows_in` counts all runs."""
    run_rows_out: int = 0
    """Results of this run."""
    groups_on_disk: int = 0
    """Groups with rows that are on disk and not in memory."""
    log_bytes: int = 0
    """The size of the log on disk; 0 if there is none."""
    groups_left: int = 0
    """Groups that left memory in this run; a group counts each time."""
    spilled_rows: int = 0
    """Rows that left memory with them."""
    sweeps: int = 0
    """Groups that were swept in this run; a group counts each time."""
    sweep_results: int = 0
    """Results that sweeps made."""
    results_behind_us: int = 0
    """How far the results of groups on disk are behind the watermark, in microseconds of event time: all results of
    earlier rows are made."""
    swept: int = 0
    to_sweep: int = 0
    """At the end of the streams the results of groups on disk are made: `swept` of `to_sweep` are done."""
    sweep_seconds: float = 0.0
    """Seconds since that began."""
    slots_rebuilt: int = 0
    """How often a slot rebuilt its state from the log in this run, because it was not where its turn ran."""
    backlog_rows: int | None = None
    """Rows of the sources that were ready when the last batch began and are not in it; None: unknown."""
    little_memory: bool = False
    """Whether `memory` is far below what the query needs to work in."""

    def inside_batch(self, rows: int, seconds: float) -> Progress:
        """The same when `rows` more rows of a batch are processed and the batch goes on.

        >>> Progress(rows_in=10, run_rows_in=5).inside_batch(3, 2.0).rows_per_second
        4.0
        """
        return replace(self, rows_in=self.rows_in + rows, run_rows_in=self.run_rows_in + rows, seconds=seconds)

    @property
    def sweep_seconds_left(self) -> float | None:
        """About how long it still takes; None: not known yet.

        >>> Progress(swept=10, to_sweep=40, sweep_seconds=2.5).sweep_seconds_left
        7.5
        """
        return self.sweep_seconds * (self.to_sweep - self.swept) / self.swept if self.swept else None

    @property
    def rows_per_second(self) -> float:
        """Rows of this run over the time of this run; 0 before its first batch."""
        return self.run_rows_in / self.seconds if self.seconds > 0 else 0.0

    @property
    def watermark(self) -> datetime | None:
        """The query's watermark, in UTC; None: not known yet.

        >>> print(Progress(watermark_us=1_500_000).watermark, Progress(watermark_us=1 << 60).watermark)
        1970-01-01 00:00:01.500000+00:00 9999-12-31 23:59:59.999999+00:00
        """
        if self.watermark_us is None:
            return None
        try:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.watermark_us)
        except OverflowError:
            return (datetime.max if self.watermark_us > 0 else datetime.min).replace(tzinfo=UTC)


@dataclass(frozen=True)
class Summary:
    """The object that `--json` prints; rows_in = rows_used + rows_late + rows_dead. With a checkpoint, rows are counted
    over all runs of the job; everything else is of this run."""

    rows_in: int = 0
    rows_out: int = 0
    rows_used: int = 0
    rows_late: int = 0
    rows_dead: int = 0
    run_rows_in: int = 0
    """Rows that this run read."""
    run_rows_out: int = 0
    """Results of this run."""
    expression_errors: int = 0
    first_error: str = ""
    """The message of the first expression error, if a user function raised one or a column was cast."""
    peak_state_rows: int = 0
    peak_memory_bytes: int = 0
    memory_limit: int | None = None
    """The bytes of state that each slot may have (the setting `memory`); None: no limit."""
    waiting: int = 0
    """Rows and groups that wait for the watermark; the next run of a job with a checkpoint continues with them."""
    groups_left: int = 0
    """Groups that left memory; a group counts each time."""
    spilled_rows: int = 0
    """Rows that left memory with them."""
    sweeps: int = 0
    """Groups that were swept; a group counts each time."""
    sweep_results: int = 0
    """Results that sweeps made, later than they would have come from memory."""
    groups_on_disk: int = 0
    """Groups with rows that are on disk and not in memory, at the end of the run."""
    peak_groups_on_disk: int = 0
    peak_log_bytes: int = 0
    """The largest size of the log on disk; 0 if there is none."""
    groups: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The accounts of the partition groups (`GroupTable.as_dict`) before the streams ended, where groups can leave
    memory."""
    slots_rebuilt: int = 0
    """How often a slot rebuilt its state from the log, because it was not where its turn ran."""
    migrations: int = 0
    batches: int = 0
    seconds: float = 0.0
    start_seconds: float = 0.0
    stopped: bool = False
    """Whether the run was stopped before its streams ended; then results that wait for a watermark are not flushed."""
    finished: bool = False
    """Whether the streams have ended and all results are emitted. A job that is not finished can continue from its
    checkpoint."""
    prefer: str = ""
    """The condition of the rows that came first at the end (the setting `prefer`); empty: none."""
    decisions: Mapping[str, int] = field(default_factory=dict)
    """The number of decisions, by kind."""
    plan: str = field(default="", repr=False)
    routes: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """The route of each source at the end."""
    steps: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """The work of each step on the tuples of each signature."""
    packets: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """For each meta-queue: how large packets were, and how long tuples waited."""
    input_batch: int = 0
    """The number of rows in one slice of the input, at the end of the run."""
    decisions_log: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """The last decisions, oldest first."""
    warnings: tuple[str, ...] = ()
    """Warnings about sources whose state can never expire, and about streams that are nearly all dead or out of
    order."""
    streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By stream or table: rows read, late and dead, how far out of order, the LATENESS that would have kept all rows,
    and the reason of the first dead row."""
    estimates: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """With estimates=on: estimates of the aggregates of the groups that are open, as where a run was stopped."""
    late: str = ""
    """A description of late rows."""
    dead: str = ""
    """A description of dead rows."""

    @property
    def rows_per_second(self) -> float:
        """Rows of this run over the time of this run."""
        return self.run_rows_in / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return asdict(self)


class Course:
    """The times and batches of a run by its clock: its start-up `began`, then the `first` batch began, then the `last`
    batch ended."""

    def __init__(self, clock: Callable[[], float], began: float | None) -> None:
        self._clock = clock
        self.began = self.first = self.last = clock() if began is None else began
        self.batches = 0
        self.backlog: int | None = None
        """Rows of the sources that were ready when the last batch began and are not in it; None: unknown."""
        self._ready = False

    def begin(self) -> None:
        """Record that start-up is over: the first batch begins."""
        self.first = self.last = self._clock()
        self._ready = True

    def look(self) -> float:
        """Record the current time as the end of the last batch; returns the seconds since the last call. A run that
        ends before `begin` consists of start-up only."""
        if not self._ready:
            self.begin()
        before, self.last = self.last, self._clock()
        return self.last - before

    @property
    def seconds(self) -> float:
        """Seconds since the first batch began, at the end of the last batch."""
        return self.last - self.first

    @property
    def now(self) -> float:
        """Seconds since the first batch began, at present."""
        return self._clock() - self.first

    @property
    def told(self) -> dict[str, Any]:
        """The fields of the summary that describe the course."""
        start = round(self.first - self.began, 6)
        return {"batches": self.batches, "seconds": round(self.seconds, 6), "start_seconds": start}
