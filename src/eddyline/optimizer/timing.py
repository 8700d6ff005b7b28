"""When to optimise: data-driven, memory-driven, refined, and a mixture of them (dissertation, 26.1).

*Data-driven*: an interval has passed and a statistic has changed by more than a threshold since a plan was last looked
for. *Memory-driven*: state comes near its limit. *Refined*: what waits in queues grows steadily, seen here as CPU per
second of event time that stays above the limit. `auto` takes any of them; the interval keeps it from thrashing, and it
grows while looking finds nothing that is worth a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eddyline.state.shelf import Saved

FIRST_WINDOWS, FIRST_ROWS = 1.0, 20_000
"""Before the first look: so many of the longest windows of event time, and rows."""

INTERVAL_ROWS = 50_000
"""Rows between two looks, at least."""

LONGEST_INTERVAL = 64
"""How many times that it may become."""

THRESHOLD = 1.3
"""The factor by which a statistic must have changed."""

NEAR = 0.9
"""State that takes this share of its limit is near it."""

KEEP = 0.7
"""How much the CPU of the past counts beside that of the last batch."""


@dataclass(frozen=True)
class Usage:
    """CPU seconds since the last batch, bytes held, and the limits (None is no limit); how many of the seconds went to
    building."""

    seconds: float
    bytes: int
    memory_limit: int | None = None
    cpu_limit: float | None = None
    building: float = 0.0


class Timing:
    """Of one slot; windows are `longest` seconds."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._event_time: int | None = None
        self._rows = self._rows_then = 0
        self._seconds = 0.0
        """Of event time, since the start."""
        self._cpu = self._building = 0.0
        """CPU seconds per second of event time, lately, in all and for building."""
        self._spent = self._built = self._over = 0.0
        self._near = False
        self._interval = 1
        self._then: dict[str, float] = {}

    @property
    def started(self) -> bool:
        """Whether event time is known: what came before lies in no stretch of it."""
        return self._event_time is not None

    @property
    def looked(self) -> bool:
        """Whether a plan was ever looked for."""
        return bool(self._then)

    def passed(self, event_time: int | None, rows: int, usage: Usage) -> float:
        """A batch came to this event time; the seconds that passed."""
        self._rows += rows
        self._spent += usage.seconds
        self._built += usage.building
        seconds = 0.0
        if event_time is not None and self._event_time is not None and event_time > self._event_time:
            seconds = (event_time - self._event_time) / 1e6
            keep = KEEP if self._seconds > 0.0 else 0.0
            self._cpu = keep * self._cpu + (1.0 - keep) * self._spent / seconds
            self._building = keep * self._building + (1.0 - keep) * self._built / seconds
            self._spent = self._built = 0.0
            self._seconds += seconds
            limit = usage.cpu_limit
            self._over = self._over + seconds if limit is not None and self._cpu > limit else 0.0
        if event_time is not None and (self._event_time is None or event_time > self._event_time):
            self._event_time = event_time
        self._near = usage.memory_limit is not None and usage.bytes > NEAR * usage.memory_limit
        return seconds

    def due(self) -> str | None:
        """Why it is time to look for a plan; None if it is not."""
        if self._seconds < FIRST_WINDOWS * self._longest or self._rows < FIRST_ROWS:
            return None
        if self._then and self._rows - self._rows_then < INTERVAL_ROWS:
            return None
        if self._near:
            return "memory is near its limit"
        if self._over > self._longest:
            return "more CPU than its limit for a whole window"
        if self._then and self._rows - self._rows_then < self._interval * INTERVAL_ROWS:
            return None
        return "enough has been seen" if not self._then else "an interval has passed"

    def changed(self, figures: Mapping[str, float]) -> str:
        """What changed since the last look, for people; then this is the last look. Empty if nothing did, and the next
        look is further off."""
        self._rows_then = self._rows
        said = [
            f"{name} {self._then[name]:.3g} -> {value:.3g}"
            for name, value in figures.items()
            if name in self._then and not 1.0 / THRESHOLD < (value + 1e-15) / (self._then[name] + 1e-15) < THRESHOLD
        ]
        first = not self._then
        if not first and not said:
            self._interval = min(2 * self._interval, LONGEST_INTERVAL)
            return ""
        self._interval, self._then = 1, dict(figures)
        return "the first look" if first else ", ".join(said)

    def factors(self, probing: float, building: float, known: tuple[float, float]) -> tuple[float, float]:
        """What the plan of now takes for probing and for building, over what was predicted for it."""
        found = zip((self._cpu - self._building, self._building), (probing, building), known, strict=True)
        probe, build = (
            taken / predicted if predicted > 0.0 and taken > 0.0 else old for taken, predicted, old in found
        )
        return probe, build

    def saved(self) -> Saved:
        """For another process."""
        spent = self._cpu, self._building, self._spent, self._built, self._over
        return [
            self._event_time,
            self._rows,
            self._rows_then,
            self._seconds,
            *spent,
            self._interval,
            self._near,
            self._then,
        ]

    def restore(self, saved: Saved) -> None:
        """Go on from there."""
        self._event_time, self._rows, self._rows_then, self._seconds, self._cpu, self._building, *rest = saved
        self._spent, self._built, self._over, self._interval, self._near, self._then = rest
