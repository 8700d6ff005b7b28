"""The story of `eddyline demo`: for each phase of the data, what the adaptive order did and what that was worth.

Everything that is said about a phase, in sentences, in the table and in JSON, comes from its one `PhaseStory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from eddyline.cli.demo_job import ALIASES, WATCHED, DemoPhase, phases
from eddyline.cli.demo_sides import BatchWork, JoinWork, Side

if TYPE_CHECKING:
    from eddyline.routing.decisions import Decision

_ALIAS = list(ALIASES)[WATCHED]


@dataclass(frozen=True)
class Compared:
    """The work of both sides on the same batches, and for each batch how many times the CPU seconds of the adaptive
    order the fixed one took."""

    adaptive: JoinWork
    fixed: JoinWork
    pairs: tuple[float, ...]

    @property
    def times(self) -> float:
        """How many times the CPU seconds of the adaptive order the fixed one took for a row."""
        return self.fixed.times(self.adaptive)

    @property
    def half(self) -> tuple[float, float]:
        """The noise: the middle half of the pairs lies between these.

        >>> Compared(JoinWork(), JoinWork(), (1.0, 2.0, 3.0, 4.0, 5.0)).half
        (2.0, 4.0)
        """
        if len(self.pairs) < 2:
            return min(self.pairs, default=0.0), max(self.pairs, default=0.0)
        low, _, high = quantiles(self.pairs, n=4, method="inclusive")
        return low, high

    @property
    def is_clear(self) -> bool:
        """Whether the difference is larger than the noise."""
        low, high = self.half
        return bool(self.pairs) and not low <= 1.0 <= high

    def as_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        sides = {
            name: asdict(work) | {"rows_per_second": work.rate, "cpu_per_million": work.cpu_per_million}
            for name, work in (("adaptive", self.adaptive), ("fixed", self.fixed))
        }
        return {"times": self.times, "half": self.half, "pairs": self.pairs, "is_clear": self.is_clear, **sides}


@dataclass(frozen=True)
class PhaseStory:
    """A phase of the data. `changes` are the decisions that let the watched stream ask another stream first, each with
    its batch; `first` is the stream that most of its rows asked first in the last batch of the phase, with their share
    (None: the phase had no batch)."""

    phase: DemoPhase
    changes: tuple[tuple[BatchWork, Decision], ...]
    first: tuple[str, float] | None
    compared: Compared

    def as_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {
            "begin": self.phase.begin,
            "end": self.phase.end,
            "rare": self.phase.rare,
            "first": self.first and {"stream": self.first[0], "share": self.first[1]},
            "changes": [
                {"event": batch.end, "slot": d.slot, "before": names(d.before), "after": names(d.after)}
                for batch, d in self.changes
            ],
        } | self.compared.as_dict()


def names(steps: Sequence[str]) -> list[str]:
    """The streams of these steps."""
    return [ALIASES[step] for step in steps]


def stories(seconds: int, adaptive: Side, fixed: Side) -> list[PhaseStory]:
    """The story of each phase, as far as both sides ran."""
    return [_story(phase, adaptive, fixed) for phase in phases(seconds)]


def after_drift(seconds: int, adaptive: Side, fixed: Side) -> Compared:
    """Both sides from the first change of the data on."""
    return _compared(phases(seconds)[1].begin, seconds, adaptive, fixed)


def _story(phase: DemoPhase, adaptive: Side, fixed: Side) -> PhaseStory:
    batches = [batch for batch in adaptive.batches if phase.begin <= batch.middle < phase.end]
    last, first = next((batch.first for batch in reversed(batches) if batch.first), None), None
    if last is not None:
        stream = max(last, key=lambda name: last[name])
        first = stream, last[stream] / sum(last.values())
    changes = tuple(
        (batch, decision)
        for batch in batches
        for decision in batch.decisions
        if decision.subject == _ALIAS and decision.before[:1] != decision.after[:1]
    )
    return PhaseStory(phase, changes, first, _compared(phase.begin, phase.end, adaptive, fixed))


def _compared(begin: float, end: float, adaptive: Side, fixed: Side) -> Compared:
    """The batches between these event times. The first of a run is left out: it compiles and loads code."""
    pairs = [
        (mine.work, other.work)
        for mine, other in zip(adaptive.batches[1:], fixed.batches[1:], strict=False)
        if begin <= mine.middle < end
    ]
    ours, others = (sum(works, JoinWork()) for works in (zip(*pairs, strict=True) if pairs else ((), ())))
    return Compared(ours, others, tuple(other.times(mine) for mine, other in pairs))
