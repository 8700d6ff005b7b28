"""A join that is divided over slots: figures 6 and 7 of paper 004.

A slot stands for a machine of the paper; all slots take their turns in this process. In figure 6 everything fits in
memory, and the figure shows what more slots cost. In figure 7 each slot has a limit. With `spill=off` a job ends with
the batch after which a slot holds more than that, so its line is that of the run without a limit up to there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from eddyline.errors import JobError
from eddyline.runtime.running.engine import check_memory
from eddyline.settings import Settings
from lab.bench.ratio_joins import even, ratio_join
from lab.bench.spill_courses import PLAN, Rounds, SpillCourse, courses
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.table import Table

MINUTES = 40
SLOTS = (1, 2, 3, 4, 5)
COLUMNS = ("side", "minute", "results", "largest_slot", "cpu_seconds")
LIMIT = 0.45
"""The limit of a slot in figure 7, as a share of the whole state."""
LEAVE = "M1, groups leave"
EACH = 4
"""Minutes per point of a figure."""


@dataclass(frozen=True)
class Setup:
    """The paper's rate, as seconds between two rows of a stream, and the join ratio of all groups."""

    every: float
    ratio: float


SMALL, LARGE = Setup(0.02, 1.0), Setup(0.01, 2.0)
RANGE, GROUPS, ROUNDS = 50_000, 300, 3
QUICK = 0.04
"""The rows, the tuple range and the groups of a quick version, as a share of the full ones."""


def figure_6(quick: bool, say: Say) -> Figure:
    """CPU seconds by time and slots, with a small query."""
    sides = {f"M{slots}": replace(PLAN, slots=slots) for slots in SLOTS}
    found = _runs(SMALL, sides, quick)
    table, lines = Table(COLUMNS), dict[str, list[tuple[str | int, float]]]()
    for name, rounds in found.items():
        _add(table, name, rounds[0])
        by_minute = np.median([np.cumsum([step.cpu for step in course.steps]) for course in rounds], axis=0)
        lines[name] = [(minute, float(by_minute[minute - 1])) for minute in range(EACH, MINUTES + 1, EACH)]
        all_of_it = median(course.cpu for course in rounds)
        say(f"{name}: {rounds[0].made} results, {all_of_it:.2f} CPU seconds, {rounds[0].peak} bytes in a slot")
    return Figure(table, Chart("CPU seconds of all slots, small query", "minute", "CPU seconds so far", lines))


def figure_7(quick: bool, say: Say) -> Figure:
    """Results by time and slots, with a large query and a limit for each slot."""
    found = _runs(LARGE, {f"M{slots}": replace(PLAN, slots=slots) for slots in SLOTS}, quick, rounds=1)
    limit = round(LIMIT * found["M1"][0].peak)
    sides = {name: _until(rounds[0], limit) for name, rounds in found.items()}
    leave = _runs(LARGE, {LEAVE: replace(PLAN, memory=limit)}, quick, rounds=1)[LEAVE][0]
    table, lines = Table(COLUMNS), dict[str, list[tuple[str | int, float]]]()
    for name, course in {**sides, LEAVE: leave}.items():
        _add(table, name, course)
        results = np.cumsum([step.results for step in course.steps])
        lines[name] = [(minute, float(results[minute - 1])) for minute in range(EACH, len(results) + 1, EACH)]
        ran = f"{len(results)} minutes" if len(results) == MINUTES else f"out of memory after {len(results)} minutes"
        say(f"{name}: {ran}, {course.made} results")
    say(f"{LEAVE}: {leave.end.results} more in a clean-up of {leave.end.cpu:.2f} CPU seconds")
    return Figure(table, Chart("Results, large query, each slot with a limit", "minute", "results", lines))


def _runs(setup: Setup, sides: Mapping[str, Settings], quick: bool, rounds: int = ROUNDS) -> Rounds:
    """Runs in batches of a minute."""
    scale = QUICK if quick else 1.0
    batch = round(scale * 60 / setup.every)
    groups = round(scale * GROUPS)
    join = ratio_join([setup.ratio] * groups, round(scale * RANGE), even(MINUTES * batch, groups))
    each = {name: replace(settings, groups=groups) for name, settings in sides.items()}
    return courses(join, each, batch, 1 if quick else rounds)


def _until(course: SpillCourse, limit: int) -> SpillCourse:
    """A run as far as a job comes with this limit whose groups cannot leave memory."""
    for number, step in enumerate(course.steps):
        try:
            check_memory(limit, step.held, 0, of_slot=True)
        except JobError:
            return replace(course, steps=course.steps[:number])
    return course


def _add(table: Table, name: str, course: SpillCourse) -> None:
    results = 0
    for minute, step in enumerate(course.steps, 1):
        results += step.results
        table.add(name, minute, results, step.held, step.cpu)
