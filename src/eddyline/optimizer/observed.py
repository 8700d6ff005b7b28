"""What a running query tells the optimizer: rates, sizes and selectivities, fading with event time.

Rates are counted: rows built per second of event time. Windows are those of the plan, so a source holds rate times
window. Selectivities are solved for: a probe by tuples of span S of a SteM of span T makes live(S + T) / live(S)
tuples of each, and live() is a product of rows and of the selectivities of all conditions inside a span. So in
logarithms every probe that was taken is a linear equation in the selectivities, whatever the plan, and least squares
over all of them finds each, also of conditions that no probe decides alone. What no probe tells stays near a guess: a
key has as many values as the larger side has rows.

Data drifts. A probe that a batch shows to make clearly more or fewer tuples than before is taken to have always done
so, because a mean that fades takes many windows to forget a large number. One that nobody takes any more, as after a
change of the plan, is believed less with every window. And a probe of an intermediate SteM tells no more than that has
tuples, however often it is asked.

Selections are evaluated one by one, so what they let through and how long they took is counted. A probe of an
intermediate SteM finds only what has passed the selections inside its span, which the equations take into account.
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
"""No selectivity is taken for less."""


class ProbedSnapshot(Snapshot, frozen=True):
    """What a kind of probe did."""

    tuples: float
    made: float
    fresh: float


class SelectedSnapshot(Snapshot, frozen=True):
    """What a selection did."""

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
    """How much of it would not have faded since a tuple last took it."""

    def fade(self, keep: float) -> None:
        """Count less."""
        self.tuples *= keep
        self.made *= keep
        self.fresh *= keep

    def add(self, tuples: int, made: int, tuning: OptimizerTuning = DEFAULT) -> None:
        """What a batch did."""
        expected = self.made * tuples / self.tuples if self.tuples else 0.0
        low, high = sorted((expected, float(made)))
        if high > tuning.other * low and high - low > tuning.sure * math.sqrt(high):
            self.made = self.tuples * made / tuples
        self.tuples += tuples
        self.made += made
        self.fresh = 1.0


@dataclass
class Selected:
    """Tuples that a selection took in and let through, and the seconds that took."""

    tuples: float = 0.0
    passed: float = 0.0
    seconds: float = 0.0

    @property
    def share(self) -> float:
        """What it lets through."""
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
    """How often rows of a source were taken in."""

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
        """A stretch of event time, the rows built in it, (tuples, made) of the probes, (tuples, passed, seconds) of the
        selections, and how often rows were taken in; windows are `longest`."""
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
        """Rows per second."""
        return self.rows[source] / self.seconds if self.seconds > 0 else 0.0

    def slice_rate(self, streams: int) -> float:
        """How often per second rows of a stream are taken in."""
        return self.slices / self.seconds / streams if self.seconds > 0 and streams else 0.0

    def made(self, span: int) -> float:
        """Tuples of a span that probes made per second; for a source its rate."""
        if not span & (span - 1):
            return self.rate(span.bit_length() - 1)
        made = self._known(span)
        return made / self.seconds if self.seconds > 0 and made < math.inf else 0.0

    def _known(self, span: int) -> float:
        """Tuples of a span that were seen to be made; infinite for a source, and if no probe makes them."""
        made = [p.made for (start, target), p in list(self.probes.items()) if start | target == span]
        return sum(made) if made else math.inf

    def told(self, condition: Condition) -> float:
        """Tuples whose probes said something about a condition."""
        probes = list(self.probes.items())
        return sum(
            p.tuples for (start, target), p in probes if condition.times(start | target) > condition.times(start)
        )

    def selectivities(
        self, conditions: Sequence[Condition], held: Sequence[float], selections: Sequence[Selection] = ()
    ) -> list[float]:
        """Of each condition, when the SteMs of sources hold so many rows."""
        if not conditions:
            return []
        tuning, logs = self.tuning, [math.log(max(rows, 1.0)) for rows in held]
        equations, values = [], []
        for number, condition in enumerate(conditions):
            equations.append([tuning.guess * (n == number) for n in range(len(conditions))])
            values.append(-tuning.guess * max(logs[s] for s in range(self.sources) if condition.span >> s & 1))
        for (span, target), probed in list(self.probes.items()):  # who explains may be another thread
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
        """Continue from a snapshot."""
        self.seconds, self.rows, self.slices = saved.seconds, list(saved.rows), saved.slices
        self.probes = {key: Probed(p.tuples, p.made, p.fresh) for key, p in saved.probes.items()}
        self.selections = {n: Selected(s.tuples, s.passed, s.seconds) for n, s in saved.selections.items()}
