"""Runs of a join whose groups may move between real slots, batch by batch in turns (004, sections 5 and 6).

All slots take their turns in this process, and the CPU of each turn is measured alone: a slot stands for a machine of
the paper, so a batch takes as long as the turn of its slowest slot. The clock of the distribution manager is the time
of the streams: a batch has the rows of so many seconds. All runs must give the same results in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count

from eddyline.balance.forced import spill_mode
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import BalanceTuning
from eddyline.errors import InternalError
from eddyline.protocol.adapted import Placer, stays
from eddyline.protocol.balancer import Balancer
from eddyline.routing.decisions import Decision
from eddyline.settings import Settings
from lab.bench.ratio_joins import RatioJoin
from lab.bench.stepped_job import Digest, ScriptedMap, Step, SteppedJob


@dataclass(frozen=True)
class MovingSide:
    """The settings of a run, the slot of each group at first, and how groups move; None: they stay."""

    settings: Settings
    first: SlotMap
    tuning: BalanceTuning | None = None


@dataclass
class MovingCourse:
    """One run: its batches, and the clean-up at its end."""

    steps: list[Step] = field(default_factory=list)
    held: list[tuple[int, ...]] = field(default_factory=list)
    """Bytes of state of each slot, by batch."""
    decisions: list[Decision] = field(default_factory=list)
    ends: list[Step] = field(default_factory=list)
    digest: Digest = (0, 0)

    @property
    def made(self) -> int:
        """Results made at run time."""
        return sum(step.results for step in self.steps)

    @property
    def clean_up(self) -> float:
        """CPU seconds of the clean-up in the slot that takes longest."""
        return max(self.ends[0].turns)

    @property
    def moves(self) -> int:
        """The number of moves, each from one slot to another."""
        return self.count("move") + self.count("undo-move")

    @property
    def cpu(self) -> float:
        """CPU seconds of all turns, without the clean-up."""
        return sum(sum(step.turns) for step in self.steps)

    def count(self, kind: str) -> int:
        """The number of decisions of a kind."""
        return sum(decision.kind == kind for decision in self.decisions)


def moving_courses(
    join: RatioJoin, sides: Mapping[str, MovingSide], batch_rows: int, seconds: float
) -> dict[str, MovingCourse]:
    """Run all sides in batches of `batch_rows` rows of each stream, which come in so many seconds. Raises InternalError
    if the results are not the same in all runs."""
    with ExitStack() as stack:
        jobs, found = dict[str, SteppedJob](), {name: MovingCourse() for name in sides}
        told: dict[str, Callable[[], list[Decision]]] = {}
        for name, side in sides.items():
            settings = replace(side.settings, slots=side.first.slots, groups=side.first.groups, balance="moving-state")
            job = jobs[name] = stack.enter_context(SteppedJob(join.query, settings, ScriptedMap(side.first)))
            job.batch([])
            placer, told[name] = _placer(job, settings, side.tuning, seconds)
            job.place_by(placer)
        for number, rows in enumerate(join.batches(batch_rows)):
            for name in list(jobs)[:: 1 if number % 2 == 0 else -1]:
                found[name].steps.append(jobs[name].batch(rows))
                found[name].held.append(tuple(record.held.bytes for record in jobs[name].records))
                found[name].decisions += told[name]()
        for name, job in jobs.items():
            found[name].ends.append(job.end())
            found[name].digest = job.digest
    if len({course.digest for course in found.values()}) != 1:
        raise InternalError(f"the sides disagree: { ({name: course.digest for name, course in found.items()}) }")
    return found


def _placer(
    job: SteppedJob, settings: Settings, tuning: BalanceTuning | None, seconds: float
) -> tuple[Placer, Callable[[], list[Decision]]]:
    if tuning is None:
        return stays, list
    ticks, force = count(0.0, seconds), None if job.spiller is None else job.spiller.force
    balancer = Balancer(settings.memory, lambda: next(ticks), tuning, spill_mode(settings.spill), force)
    return balancer, balancer.decisions
