"""Decides when to optimize: data-driven, memory-driven, refined, and a mixture of them (dissertation, 26.1).

A *look* compares the statistics with those of the last change; the optimizer then searches for a plan if one of them
has changed by more than a threshold, or if there is a pressing reason. When a look is due depends on the setting.
*data*: when an interval has passed. *memory*: when the state comes near its limit, or the input queues grow steadily.
*refined*: also when queues inside the plan grow steadily, when CPU per second of event time stays above its limit, or
when batches stay too long although rows wait. *auto*: in any of these cases.

A slot takes in all rows of a batch before the batch ends. So the size of a queue inside the plan is the number of
tuples that went through it in a batch. The size of the input queue is the rows of the batch and the rows that still
wait in the sources: under overload batches become smaller, and only the sources know.

Neither noise nor overload causes thrashing. There is an interval between two looks. It doubles whenever a look finds
that no statistic has changed, and it is short again when the measured CPU has changed, which costs nothing to know. A
*pressing* reason (all but *data*) does not wait for the grown interval and does not ask whether a statistic has
changed, because measurements correct the costs. But if nothing has changed, the time until the next pressing reason
counts doubles; it is reset after a whole window without one. The interval between glances at the library grows too, but
not as far, so that known statistics are noticed soon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eddyline.codec import Snapshot
from eddyline.optimizer.pressure import NO_PRESSURE, Pressure
from eddyline.optimizer.trend import Trend
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning

GLANCE = "statistics were seen before"
"""The reason for taking a plan from the library, without a search."""


@dataclass(frozen=True)
class Usage:
    """The CPU seconds of a batch, the bytes held, and their limits (None is no limit); the seconds spent on selections;
    the number of tuples that went through queues inside the plan; and the pressure of the input."""

    seconds: float
    bytes: int
    memory_limit: int | None = None
    cpu_limit: float | None = None
    selecting: float = 0.0
    between: int = 0
    pressure: Pressure = NO_PRESSURE


class TimingSnapshot(Snapshot, frozen=True):
    """All counters of `Timing`, under the same names."""

    event_time: int | None
    rows: int
    rows_then: int
    rows_glanced: int
    glance: int
    seconds: float
    calm: float
    cpu: tuple[float, ...]
    spent: tuple[float, ...]
    over: float
    slow: float
    near: bool
    input: tuple[float, ...]
    between: tuple[float, ...]
    interval: int
    quiet: float
    patience: int
    then: Mapping[str, float]
    held: int
    changes: int
    since: float
    stretch: float


class Timing:
    """Decides for one slot. The longest window is `longest` seconds."""

    def __init__(self, longest: float, when: str = "auto", tuning: OptimizerTuning = DEFAULT) -> None:
        self._longest, self._when, self._tuning = longest, when, tuning
        self._event_time: int | None = None
        self._rows = self._rows_then = self._rows_glanced = 0
        self._seconds = self._calm = 0.0
        """Seconds of event time since the start, and since the last pressing reason."""
        self._cpu: list[float] = []
        """Recent CPU seconds per second of event time: in all, and for selections. Empty if unknown."""
        self._spent, self._over, self._slow = [0.0, 0.0], 0.0, 0.0
        """Seconds of event time for which CPU was above its limit, and for which batches were too long."""
        self._near = False
        self._input, self._between = Trend(None, self._tuning), Trend(None, self._tuning)
        self._interval = self._patience = self._glance = 1
        self._quiet = 0.0
        """The CPU when the interval last grew."""
        self._then: dict[str, float] = {}
        self.held = self.changes = 0
        """Bytes held after the last batch, and how often statistics have changed."""
        self._since = self._stretch = 0.0
        """The event time of the last change of statistics, and how long they had been stable before it."""

    @property
    def started(self) -> bool:
        """Whether event time is known. Rows that arrived before that belong to no stretch of event time."""
        return self._event_time is not None

    @property
    def looked(self) -> bool:
        """Whether there was a first look."""
        return bool(self._then)

    @property
    def cpu(self) -> float:
        """Recent CPU seconds per second of event time; 0 if unknown."""
        return self._cpu[0] if self._cpu else 0.0

    @property
    def seconds(self) -> float:
        """Seconds of event time since the start."""
        return self._seconds

    @property
    def stable(self) -> float:
        """How long statistics are expected to stay the same, in seconds: as long as they have been stable now, or were
        before the last change, whichever is longer."""
        return max(self._seconds - self._since, self._stretch)

    def passed(self, event_time: int | None, rows: int, usage: Usage) -> float:
        """Take into account a batch that reached this event time; returns the seconds of event time that passed."""
        self._rows += rows
        now = usage.seconds, usage.selecting
        self._spent = [old + new for old, new in zip(self._spent, now, strict=True)]
        self._input.add(rows + usage.pressure.backlog)
        self._between.add(usage.between)
        self.held = usage.bytes
        self._near = usage.memory_limit is not None and usage.bytes > self._tuning.near * usage.memory_limit
        seconds = 0.0
        if event_time is not None and self._event_time is not None and event_time > self._event_time:
            seconds = (event_time - self._event_time) / 1e6
            fresh = [spent / seconds for spent in self._spent]
            before = self._cpu or fresh
            keep = self._tuning.keep
            self._cpu = [keep * old + (1.0 - keep) * new for old, new in zip(before, fresh, strict=True)]
            self._spent = [0.0, 0.0]
            self._seconds += seconds
            if self._quiet > 0.0 and not 1.0 / self._tuning.threshold < self.cpu / self._quiet < self._tuning.threshold:
                self._interval, self._quiet = 1, 0.0
            limit = usage.cpu_limit
            self._over = self._over + seconds if limit is not None and self.cpu > limit else 0.0
            slow = usage.pressure.backlog > 0 and usage.pressure.busy > self._tuning.busy
            self._slow = self._slow + seconds if slow else 0.0
            self._calm = 0.0 if self.pressing else self._calm + seconds
            self._patience = 1 if self._calm > self._longest else self._patience
        if event_time is not None and (self._event_time is None or event_time > self._event_time):
            self._event_time = event_time
        return seconds

    @property
    def pressing(self) -> str | None:
        """A reason to look for another plan whatever the statistics say; None if there is none."""
        if self._when == "data":
            return None
        if self._near:
            return "memory is near its limit"
        if self._input.steady:
            return "input queues grow steadily"
        if self._when != "memory":
            if self._over > self._longest:
                return "more CPU than its limit for a whole window"
            if self._slow > self._longest:
                return "batches were too long for a whole window, and rows wait in the sources"
            if self._between.steady:
                return "queues inside the plan grow steadily"
        return None

    def due(self, library: bool = False) -> str | None:
        """The reason why it is time to look for a plan; None if it is not. With a `library`, the reason may be GLANCE:
        look only there."""
        tuning, interval = self._tuning, self._tuning.interval_rows
        if self._seconds < tuning.first_windows * self._longest or self._rows < tuning.first_rows:
            return None
        since, driven = self._rows - self._rows_then, self._when in ("auto", "data")
        if not self.looked:
            return self.pressing or ("enough rows have been seen" if driven else None)
        if since >= self._patience * interval and (pressing := self.pressing):
            return pressing
        if driven and since >= self._interval * interval:
            return "an interval has passed"
        glanced = self._rows - max(self._rows_then, self._rows_glanced)
        return GLANCE if driven and library and glanced >= self._glance * interval else None

    def differs(self, figures: Mapping[str, float]) -> str:
        """The statistics that have changed since the last change that was recorded, for display; empty if none has."""
        threshold = self._tuning.threshold
        return ", ".join(
            f"{name} {self._then[name]:.3g} -> {value:.3g}"
            for name, value in figures.items()
            if name in self._then and not 1.0 / threshold < (value + 1e-15) / (self._then[name] + 1e-15) < threshold
        )

    def changed(self, figures: Mapping[str, float]) -> str:
        """Record a look, and return the statistics that have changed since the last recorded change, for display. If
        none has, the result is empty, and the next look is further off."""
        first, said, pressing = not self._then, self.differs(figures), self.pressing
        self._rows_then = self._rows
        self._input, self._between = Trend(None, self._tuning), Trend(None, self._tuning)
        if not first and not said:
            longest = self._tuning.longest_interval
            self._interval, self._quiet = min(2 * self._interval, longest), self.cpu
            self._patience = min(2 * self._patience, longest) if pressing else self._patience
            return ""
        self._interval = self._patience = self._glance = 1
        self._then, self.changes = dict(figures), self.changes + 1
        self._since, self._stretch = self._seconds, self._seconds - self._since
        return "the first look for a better plan" if first else said

    def glanced(self) -> None:
        """Record a glance at the library that found no plan worth taking. The next look does not move; the next glance
        is further off."""
        self._rows_glanced, self._glance = self._rows, min(2 * self._glance, self._tuning.longest_glance)

    def new_plan(self) -> None:
        """Forget the CPU of the previous plan: it tells nothing about the new one."""
        self._cpu, self._spent, self._over, self._slow, self._quiet = [], [0.0, 0.0], 0.0, 0.0, 0.0

    def factor(self, predicted: float, known: float) -> float:
        """The CPU that the current plan takes without selections, divided by the prediction; `known` if either is
        unknown."""
        taken = self._cpu[0] - self._cpu[1] if self._cpu else 0.0
        return taken / predicted if predicted > 0.0 and taken > 0.0 else known

    def saved(self) -> TimingSnapshot:
        """A snapshot for another process."""
        return TimingSnapshot(
            event_time=self._event_time,
            rows=self._rows,
            rows_then=self._rows_then,
            rows_glanced=self._rows_glanced,
            glance=self._glance,
            seconds=self._seconds,
            calm=self._calm,
            cpu=tuple(self._cpu),
            spent=tuple(self._spent),
            over=self._over,
            slow=self._slow,
            near=self._near,
            input=tuple(self._input.sizes),
            between=tuple(self._between.sizes),
            interval=self._interval,
            quiet=self._quiet,
            patience=self._patience,
            then=dict(self._then),
            held=self.held,
            changes=self.changes,
            since=self._since,
            stretch=self._stretch,
        )

    def restore(self, saved: TimingSnapshot) -> None:
        """Restore from a snapshot."""
        self._event_time, self._near, self._then = saved.event_time, saved.near, dict(saved.then)
        self._rows, self._rows_then, self._rows_glanced = saved.rows, saved.rows_then, saved.rows_glanced
        self._seconds, self._calm = saved.seconds, saved.calm
        self._over, self._slow = saved.over, saved.slow
        self._cpu, self._spent = list(saved.cpu), list(saved.spent)
        self._interval, self._patience, self._glance = saved.interval, saved.patience, saved.glance
        self._quiet, self.held, self.changes = saved.quiet, saved.held, saved.changes
        self._since, self._stretch = saved.since, saved.stretch
        self._input = Trend(list(saved.input), self._tuning)
        self._between = Trend(list(saved.between), self._tuning)
