"""Runs of a join with different settings, batch by batch in turns: results, memory and clean-up of each.

All runs must give the same results in the end. Which groups leave memory may differ a little from round to round,
because the results of groups are counted on a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median

from eddyline.errors import InternalError
from eddyline.settings import Settings
from lab.bench.ratio_joins import RatioJoin
from lab.bench.stepped_job import Digest, Step, SteppedJob

PLAN = Settings(plan="mjoin", optimizer="off")
"""The paper's join is one operator, and has no intermediate states."""

AMPLE = 1 << 50
"""More memory than any state takes."""


@dataclass(frozen=True)
class SpillCourse:
    """One run: its batches, and the clean-up at its end."""

    steps: tuple[Step, ...]
    end: Step
    digest: Digest

    @property
    def made(self) -> int:
        """Results made at run time."""
        return sum(step.results for step in self.steps)

    @property
    def cpu(self) -> float:
        """CPU seconds without the clean-up."""
        return sum(step.cpu for step in self.steps)

    @property
    def peak(self) -> int:
        """The most bytes that the largest slot held after a batch."""
        return max(step.held for step in self.steps)

    @property
    def pushes(self) -> int:
        """How often groups left memory."""
        return sum(step.left > 0 for step in self.steps)


Rounds = Mapping[str, list[SpillCourse]]
"""The runs of each side, round by round."""


def courses(
    join: RatioJoin,
    sides: Mapping[str, Settings],
    batch_rows: int,
    rounds: int = 1,
    beside: SpillCourse | None = None,
) -> Rounds:
    """Run all sides, `rounds` times, in batches of `batch_rows` rows of each stream. Raises InternalError if the
    results are not the same in all runs, and in the one `beside` them."""
    found: dict[str, list[SpillCourse]] = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides)[:: 1 if number % 2 == 0 else -1]
        for name, course in _round(join, {name: sides[name] for name in order}, batch_rows).items():
            found[name].append(course)
    runs = {name: [course.digest for course in of_side] for name, of_side in found.items()}
    if len({digest for digests in runs.values() for digest in digests} | ({beside.digest} if beside else set())) != 1:
        raise InternalError(f"the sides disagree about the results and their hash: {runs}, {beside and beside.digest}")
    return found


def whole(join: RatioJoin, settings: Settings, batch_rows: int) -> SpillCourse:
    """Run a join all of whose state stays in memory, in the form of state that can leave it."""
    return courses(join, {"whole": replace(settings, memory=AMPLE)}, batch_rows)["whole"][0]


def made(of_side: list[SpillCourse]) -> float:
    """Results made at run time, the median of the rounds."""
    return median(course.made for course in of_side)


def missing(of_side: list[SpillCourse]) -> float:
    """Results of the clean-up, the median of the rounds."""
    return median(course.end.results for course in of_side)


def clean_up(of_side: list[SpillCourse]) -> float:
    """CPU seconds of the clean-up, the median of the rounds."""
    return median(course.end.cpu for course in of_side)


def _round(join: RatioJoin, sides: Mapping[str, Settings], batch_rows: int) -> dict[str, SpillCourse]:
    with ExitStack() as stack:
        jobs = {name: stack.enter_context(SteppedJob(join.query, settings)) for name, settings in sides.items()}
        steps: dict[str, list[Step]] = {name: [] for name in sides}
        for rows in join.batches(batch_rows):
            for name, job in jobs.items():
                steps[name].append(job.batch(rows))
        ends = {name: job.end() for name, job in jobs.items()}
        return {name: SpillCourse(tuple(steps[name]), ends[name], job.digest) for name, job in jobs.items()}
