"""Groups that move between slots, and disk: figures 14 to 17, 20 and 21 of paper 004, with real slots.

The join is that of spilling.py. In figures 14 to 16 two slots have half of the groups each, which are busy in turns,
and memory is large. In figures 17, 20 and 21 three slots have a limit each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median

import numpy as np

from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import DEFAULT, BalanceTuning
from eddyline.protocol.spiller import HIGH
from lab.bench.moving_courses import MovingCourse, MovingSide, moving_courses
from lab.bench.ratio_joins import Phase, RatioJoin, even, ratio_join
from lab.bench.spill_courses import AMPLE, PLAN, whole
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.table import Table

BUSY = (5, 10, 10, 10, 10, 10, 5)
"""Minutes for which the groups of one of two machines get ten times the rows of the other, in turns."""
HOUR = 60
RATIO, MANY = 3.0, 6.0
"""The join ratio of all groups; in figure 20, so that results are most of the clean-up."""
OFF = "no relocation"
COLUMNS = ("side", "minute", "results", "slot", "memory", "moves", "cpu_seconds")
POINTS = 12
"""Points of a line."""


@dataclass(frozen=True)
class MovingScale:
    """The size of a run: `batches` in an hour, with `rows` rows of each stream in all."""

    groups: int
    tuple_range: int
    rows: int
    batches: int
    rounds: int = 1

    @property
    def batch(self) -> int:
        """Rows of a stream in a batch."""
        return self.rows // self.batches

    @property
    def seconds(self) -> float:
        """Seconds of stream time in a batch."""
        return HOUR * 60 / self.batches


TURNS, QUICK_TURNS = MovingScale(300, 30_000, 72_000, 240), MovingScale(30, 3_000, 9_600, 96)
DISK, QUICK_DISK = MovingScale(300, 30_000, 100_000, 100, 3), MovingScale(30, 3_000, 12_000, 60)

_known: dict[bool, dict[str, MovingCourse]] = {}
"""Runs kept because three figures show them."""


# Machines that are busy in turns


def figure_14(quick: bool, say: Say) -> Figure:
    """CPU by time, by the ratio of memory below which groups move."""
    found = _turns(quick, say)
    sides = {name: found[name] for name in (OFF, "50 %, 45 s", "80 %, 45 s", "90 %, 45 s")}
    return _figure(sides, _scale(quick, TURNS), "CPU of all slots, by least/most memory", "CPU seconds so far", _cpu)


def figure_15(quick: bool, say: Say) -> Figure:
    """CPU by time, by the least time between two moves."""
    found = _turns(quick, say)
    sides = {name: found[name] for name in (OFF, "90 %, 15 s", "90 %, 30 s", "90 %, 45 s")}
    return _figure(sides, _scale(quick, TURNS), "CPU of all slots, by the interval", "CPU seconds so far", _cpu)


def figure_16(quick: bool, say: Say) -> Figure:
    """State of both slots by time, with and without moves."""
    found, scale = _turns(quick, say), _scale(quick, TURNS)
    figure = _figure({name: found[name] for name in (OFF, "90 %, 15 s")}, scale, "State by slot", "bytes", _cpu)
    lines = {
        f"M{slot + 1}, {name}": _points([float(held[slot]) for held in found[name].held], scale)
        for name in (OFF, "90 %, 15 s")
        for slot in range(2)
    }
    return replace(figure, chart=replace(figure.chart, series=lines))


def _turns(quick: bool, say: Say) -> dict[str, MovingCourse]:
    scale = _scale(quick, TURNS)
    if quick not in _known:
        one = np.where(np.arange(scale.groups) * 2 < scale.groups, 10.0, 1.0)
        parts = [round(scale.rows * minutes / HOUR) for minutes in BUSY]
        phases = [Phase(rows, one[:: 1 if number % 2 == 0 else -1]) for number, rows in enumerate(parts)]
        join = ratio_join([RATIO] * scale.groups, scale.tuple_range, phases)
        settings, first = replace(PLAN, memory=AMPLE), SlotMap(2, scale.groups)
        sides = {OFF: MovingSide(settings, first)}
        for percent, interval in ((50, 45), (80, 45), (90, 45), (90, 30), (90, 15)):
            tuning = _only(percent / 100, interval)
            sides[f"{percent} %, {interval} s"] = MovingSide(settings, first, tuning)
        _known[quick] = moving_courses(join, sides, scale.batch, scale.seconds)
    found = _known[quick]
    for name, course in found.items():
        held = course.held[-1]
        say(
            f"{name}: {course.moves} moves, {course.cpu:.2f} CPU seconds, {course.cpu / found[OFF].cpu:.3f} of {OFF};"
            f" least/most memory {min(held) / max(held):.3f} at the end"
        )
    return found


def _only(ratio: float, interval: float) -> BalanceTuning:
    """The conditions of the paper: least/most and the interval, and nothing else."""
    soon = replace(DEFAULT, memory_max=0.0, difference=0.0, patience=1, trial_batches=1, rest=0.0)
    return replace(soon, ratio=ratio, stop=ratio, interval=interval, cpu_max=np.inf, pays=-np.inf)


# A limit for each slot


def figure_17(quick: bool, say: Say) -> Figure:
    """Results by time, where memory is enough if groups move."""
    scale = _scale(quick, DISK)
    join = _join(scale)
    limit = _limit(join, scale, 0.8)
    sides = {OFF: _side(scale, limit, False), "relocation": _side(scale, limit, True)}
    return _results_of(join, sides, scale, "Results, memory is enough", say)


def figure_20(quick: bool, say: Say) -> Figure:
    """Results by time, where memory is not enough, with and without moves; the clean-up."""
    scale = _scale(quick, DISK)
    join = _join(scale, [MANY] * scale.groups)
    limit = _limit(join, scale, 1.25)
    sides = {OFF: _side(scale, limit, False), "lazy-disk": _side(scale, limit, True)}
    return _results_of(join, sides, scale, "Results, memory is not enough", say)


def figure_21(quick: bool, say: Say) -> Figure:
    """Results by time, where the groups of one slot have join ratio 4 and the others 1."""
    scale = _scale(quick, DISK)
    join = _join(scale, [4.0 if group * 3 < scale.groups else 1.0 for group in range(scale.groups)])
    limit, first = _limit(join, scale, 2.0), SlotMap(3, scale.groups)
    sides = {
        mode: replace(_side(scale, limit, True, mode), first=first) for mode in ("lazy-disk", "active-disk", "auto")
    }
    return _results_of(join, sides, scale, "Results, join ratios 4 and 1", say)


def _join(scale: MovingScale, ratios: list[float] | None = None) -> RatioJoin:
    return ratio_join(ratios or [RATIO] * scale.groups, scale.tuple_range, even(scale.rows, scale.groups))


def _limit(join: RatioJoin, scale: MovingScale, times: float) -> int:
    """The `memory` of a slot with which all state is so many times what three slots hold before groups leave."""
    peak = whole(join, replace(PLAN, groups=scale.groups), scale.batch).peak
    return round(peak / times / HIGH / 3)


def _side(scale: MovingScale, limit: int, moves: bool, mode: str = "lazy-disk") -> MovingSide:
    """A run that begins with two thirds of the groups on the first of three slots."""
    places = np.searchsorted([2 / 3, 5 / 6], np.arange(scale.groups) / scale.groups, side="right")
    settings = replace(PLAN, memory=limit, spill=mode)
    return MovingSide(settings, SlotMap.of(3, places), DEFAULT if moves else None)


def _results_of(join: RatioJoin, sides: Mapping[str, MovingSide], scale: MovingScale, title: str, say: Say) -> Figure:
    """A figure of the rounds whose results at run time are the median: the CPU that slots take, which varies, has a
    part in which groups move."""
    rounds, shown = [moving_courses(join, sides, scale.batch, scale.seconds) for _ in range(scale.rounds)], {}
    for name in sides:
        courses = sorted((found[name] for found in rounds), key=lambda course: course.made)
        shown[name] = course = courses[len(courses) // 2]
        made = ", ".join(str(course.made) for course in courses)
        say(
            f"{name}: {made} results at run time; clean-up of {course.ends[0].results} in"
            f" {median(course.clean_up for course in courses):.2f} CPU seconds in the slowest slot;"
            f" {course.moves} moves, {course.count('force-spill')} forced spills"
        )
    return _figure(shown, scale, title, "results so far", _results)


# Figures


def _scale(quick: bool, full: MovingScale) -> MovingScale:
    small = QUICK_TURNS if full is TURNS else QUICK_DISK
    return small if quick else full


def _cpu(course: MovingCourse) -> list[float]:
    return list(accumulate(sum(step.turns) for step in course.steps))


def _results(course: MovingCourse) -> list[float]:
    return list(accumulate(float(step.results) for step in course.steps))


def _figure(
    sides: Mapping[str, MovingCourse],
    scale: MovingScale,
    title: str,
    unit: str,
    shown: Callable[[MovingCourse], list[float]],
) -> Figure:
    table, lines = Table(COLUMNS), dict[str, list[tuple[str | int, float]]]()
    for name, course in sides.items():
        results = _results(course)
        for number, (step, held) in enumerate(zip(course.steps, course.held, strict=True)):
            for slot, size in enumerate(held):
                minute = (number + 1) * HOUR / scale.batches
                table.add(name, minute, int(results[number]), slot, size, course.moves, step.turns[slot])
        lines[name] = _points(shown(course), scale)
    return Figure(table, Chart(title, "minute", unit, lines))


def _points(values: list[float], scale: MovingScale) -> list[tuple[str | int, float]]:
    """Evenly spaced points of a line."""
    each = max(1, scale.batches // POINTS)
    return [(f"{(at + 1) * HOUR / scale.batches:g}", values[at]) for at in range(each - 1, len(values), each)]
