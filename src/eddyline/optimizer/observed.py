"""The statistics of a running query: rates, sizes and selectivities, which fade with event time.

Rates are counted: rows built per second of event time. Windows are those of the plan, so a source holds rate times
window rows. Selectivities are solved for. When a tuple of span S probes a SteM of span T, it makes live(S + T) /
live(S) tuples, and live() is a product of rows and of the selectivities of all conditions inside a span. So in
logarithms every probe is a linear equation in the selectivities, whatever the plan. Least squares over all probes finds
each selectivity, even of a condition that no probe decides alone. A condition that no probe tells anything about stays
near a guess: a key has as many values as the larger side has rows.

Data drifts. If a batch shows that a probe now makes clearly more or fewer tuples than before, its past is rescaled to
the new number, because a fading mean takes many windows to forget a large number. A probe that is not taken any more,
for example after a change of the plan, weighs less with every window. A probe of an intermediate SteM weighs no more
than the SteM has tuples, however often it is probed.

Selections are evaluated one by one, so the tuples that they pass and the time that they take are counted. A probe of an
intermediate SteM finds only tuples that have passed the selections inside its span; the equations take this into
account.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eddyline.codec import Snapshot
from eddyline.optimizer.conditions import Condition
from eddyline.optimizer.tuning import DEFAULT, OptimizerTuning
from eddyline.optimizer.workload import Selection

LEAST = 1e-12
"""The least selectivity."""


class ProbedSnapshot(Snapshot, frozen=True):
    """The counts of one kind of probe."""

    tuples: float
    made: float
    fresh: float


class SelectedSnapshot(Snapshot, frozen=True):
    """The counts of one selection."""

    tuples: float
    passed: float
    seconds: float


class ObservedSnapshot(Snapshot, frozen=True):
    """Fading counts; probes by (span, target), selections by number."""

    seconds: float
    rows: tuple[float, ...]
    probes: Mapping[tuple[int, int], ProbedSnapshot]
    selections: Mapping[int, SelectedSnapshot]
    slices: float


@dataclass
class Probed:
    """Tuples that a kind of probe took in and made."""

    tuples: float = 0.0
    made: float = 0.0
    fresh: float = 1.0
    """The factor by which the counts have faded since a tuple last took this probe."""

    def fade(self, keep: float) -> None:
        """Multiply the counts by `keep`."""
        self.tuples *= keep
        self.made *= keep
        self.fresh *= keep

    def add(self, tuples: int, made: int, tuning: OptimizerTuning = DEFAULT) -> None:
        """Add the counts of a batch."""
        expected = self.made * tuples / self.tuples if self.tuples else 0.0
        low, high = sorted((expected, float(made)))
        if high > tuning.other * low and high - low > tuning.sure * math.sqrt(high):
            self.made = self.tuples * made / tuples
        self.tuples += tuples
        self.made += made
        self.fresh = 1.0


@dataclass
class Selected:
    """Tuples that a selection took in and let through, and the seconds that it took."""

    tuples: float = 0.0
    passed: float = 0.0
    seconds: float = 0.0

    @property
    def share(self) -> float:
        """The share of tuples that it lets through."""
        return min(1.0, (self.passed + 0.5) / (self.tuples + 0.5))


@dataclass
class Observed:
    """Fading counts: rows by source, seconds of event time, probes by (span, target), selections by number."""

    sources: int
    seconds: float = 0.0
    rows: list[float] = field(default_factory=list)
    probes: dict[tuple[int, int], Probed] = field(default_factory=dict)
    selections: dict[int, Selected] = field(default_factory=dict)
    tuning: OptimizerTuning = DEFAULT
    slices: float = 0.0
    """How often a slice of rows was taken in."""

    def __post_init__(self) -> None:
        self.rows = self.rows or [0.0] * self.sources

    def add(
        self,
        seconds: float,
        rows: Sequence[int],
        probes: Mapping[tuple[int, int], tuple[int, int]],
        longest: float,
        selections: Mapping[int, tuple[int, int, float]] | None = None,
        slices: int = 0,
    ) -> None:
        """Add a stretch of event time: the rows built in it, (tuples, made) of each probe, (tuples, passed, seconds) of
        each selection, and how often a slice of rows was taken in. The longest window is `longest` seconds."""
        keep = 0.5 ** (seconds / (self.tuning.half_life * longest)) if longest > 0 else 1.0
        self.seconds = self.seconds * keep + seconds
        self.slices = self.slices * keep + slices
        self.rows = [old * keep + new for old, new in zip(self.rows, rows, strict=True)]
        for probed in self.probes.values():
            probed.fade(keep)
        for key, (tuples, made) in probes.items():
            self.probes.setdefault(key, Probed()).add(tuples, made, self.tuning)
        for selected in self.selections.values():
            selected.tuples *= keep
            selected.passed *= keep
            selected.seconds *= keep
        for number, (tuples, passed, took) in (selections or {}).items():
            selected = self.selections.setdefault(number, Selected())
            selected.tuples += tuples
            selected.passed += passed
            selected.seconds += took

    def rate(self, source: int) -> float:
        """Rows of a source per second of event time."""
        return self.rows[source] / self.seconds if self.seconds > 0 else 0.0

    def slice_rate(self, streams: int) -> float:
        """How often per second a slice of rows is taken in, for each stream."""
        return self.slices / self.seconds / streams if self.seconds > 0 and streams else 0.0

    def made(self, span: int) -> float:
        """Tuples of a span that probes made per second; for a source, its rate."""
        if not span & (span - 1):
            return self.rate(span.bit_length() - 1)
        made = self._known(span)
        return made / self.seconds if self.seconds > 0 and made < math.inf else 0.0

    def _known(self, span: int) -> float:
        """The observed number of tuples of a span; infinite for a source, and if no probe makes them."""
        made = [p.made for (start, target), p in list(self.probes.items()) if start | target == span]
        return sum(made) if made else math.inf

    def told(self, condition: Condition) -> float:
        """The number of tuples whose probes tell something about a condition."""
        probes = list(self.probes.items())
        return sum(
            p.tuples for (start, target), p in probes if condition.times(start | target) > condition.times(start)
        )

    def selectivities(
        self, conditions: Sequence[Condition], held: Sequence[float], selections: Sequence[Selection] = ()
    ) -> list[float]:
        """The selectivity of each condition, if the SteMs of sources hold this many rows."""
        if not conditions:
            return []
        tuning, logs = self.tuning, [math.log(max(rows, 1.0)) for rows in held]
        equations, values = [], []
        for number, condition in enumerate(conditions):
            equations.append([tuning.guess * (n == number) for n in range(len(conditions))])
            values.append(-tuning.guess * max(logs[s] for s in range(self.sources) if condition.span >> s & 1))
        for (span, target), probed in list(self.probes.items()):  # another thread may call `explain` meanwhile
            evidence = min(probed.tuples, self._known(target), tuning.most)
            if evidence < tuning.few:
                continue
            weight = math.sqrt(evidence / tuning.few) * probed.fresh**2
            here = [c.times(span | target) - c.times(span) for c in conditions]
            rows = sum(logs[s] for s in range(self.sources) if target >> s & 1)
            if target & (target - 1):
                rows += sum(math.log(s.selectivity) for s in selections if not s.span & ~target)
            made = math.log((probed.made + 0.5) / (probed.tuples + 0.5))
            equations.append([weight * exponent for exponent in here])
            values.append(weight * (made - rows))
        found, *_ = np.linalg.lstsq(np.array(equations, np.float64), np.array(values, np.float64), rcond=None)
        return [float(min(1.0, max(LEAST, math.exp(min(0.0, log))))) for log in found]

    def saved(self) -> ObservedSnapshot:
        """A snapshot for another process."""
        return ObservedSnapshot(
            seconds=self.seconds,
            rows=tuple(self.rows),
            probes={key: ProbedSnapshot(p.tuples, p.made, p.fresh) for key, p in self.probes.items()},
            selections={n: SelectedSnapshot(s.tuples, s.passed, s.seconds) for n, s in self.selections.items()},
            slices=self.slices,
        )

    def restore(self, saved: ObservedSnapshot) -> None:
        """Restore from a snapshot."""
        self.seconds, self.rows, self.slices = saved.seconds, list(saved.rows), saved.slices
        self.probes = {key: Probed(p.tuples, p.made, p.fresh) for key, p in saved.probes.items()}
        self.selections = {n: Selected(s.tuples, s.passed, s.seconds) for n, s in saved.selections.items()}
