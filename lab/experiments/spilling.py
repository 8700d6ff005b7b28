"""Groups that leave memory: figures 9 to 12 of paper 004, a load that alternates between two halves of the groups, and
the knob between first results and completion (paper 001, section 3.1), which is the setting `spill_delay`.

The join, its rates, tuple range, join ratios and 300 groups are the paper's (lab/bench/ratio_joins.py). It has no
windows, so its state only grows; groups leave from `HIGH` of `memory` on, and the results that they miss are made in a
clean-up at the end. `memory` is such that without a limit the state would become twice as large as that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median

import numpy as np

from eddyline.protocol.spiller import HIGH
from lab.bench.ratio_joins import APART, Phase, RatioJoin, even, ratio_join, thirds
from lab.bench.spill_courses import PLAN, Rounds, SpillCourse, clean_up, courses, made, missing, whole
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.table import Table

MINUTES, EVERY = 50, 0.03
"""How long a run is, and the seconds between two rows of a stream."""
TIMES = 2.0
"""The state without a limit, times what may be held before groups leave."""
PUSHES = (10, 30, 50, 100)
"""Percent of the state that leaves at a time."""
PUSH = 30
ORDERS = {"least productive first": "productivity", "random": "random", "most productive first": "most-productive"}
MORE_ORDERS = {"largest first": "largest", "longest without a row first": "inactive"}
WHOLE = "all in memory"
HALVES = (5, 10, 10, 10, 10, 5)
"""Minutes for which one half of the groups has ten times the rows of the other, in turns."""
DELAYS = (2.5, 10, 25)
"""Minutes of a run by which results may come later because rows of them are on disk."""
COLUMNS = ("side", "minute", "results", "memory", "groups_left", "cpu_seconds")
CLEAN_UP = "clean-up"


@dataclass(frozen=True)
class Scale:
    """The size of a run. A batch has `batch` rows of each stream."""

    groups: int
    tuple_range: int
    rows: int
    batch: int
    rounds: int


@dataclass(frozen=True)
class Leaving:
    """Which groups leave memory first, by the value of the setting `spill`; how many percent of the state leave at a
    time; and after how many minutes of the run groups on disk are swept, if it is not at the end."""

    order: str
    percent: float
    delay: float | None = None


FULL = Scale(300, 30_000, round(MINUTES * 60 / EVERY), 1000, 3)
QUICK = Scale(30, 3_000, 10_000, 250, 1)

_known: dict[bool, tuple[SpillCourse, Rounds]] = {}
"""Runs kept because two figures show the same runs."""


def figure_9(quick: bool, say: Say) -> Figure:
    """Results by time, by how much leaves at a time."""
    return _by_time(*_pushes(quick, say), "Results, by the share that is pushed", "results", _results)


def figure_10(quick: bool, say: Say) -> Figure:
    """Memory by time, by how much leaves at a time."""
    return _by_time(*_pushes(quick, say), "State in memory, by the share that is pushed", "bytes", _memory, 2.5)


def figure_11(quick: bool, say: Say) -> Figure:
    """Results by time and order, where a third of the groups each has join ratio 4, 2 and 1."""
    join = _join(quick, thirds(_scale(quick).groups))
    return _by_time(*_orders(join, quick, say, ORDERS), "Results, join ratios 4, 2 and 1", "results", _results)


def figure_12(quick: bool, say: Say) -> Figure:
    """Results by time and order, where all groups have join ratio 3."""
    join = _join(quick, [3.0] * _scale(quick).groups)
    return _by_time(*_orders(join, quick, say, ORDERS), "Results, join ratio 3", "results", _results)


def alternating(quick: bool, say: Say) -> Figure:
    """Results by time and order, where the halves of the groups are busy in turns."""
    scale = _scale(quick)
    one = np.where(np.arange(scale.groups) * 2 < scale.groups, 10.0, 1.0)
    parts = [round(scale.rows * minutes / MINUTES) for minutes in HALVES]
    phases = [Phase(rows, one[:: 1 if number % 2 == 0 else -1]) for number, rows in enumerate(parts)]
    join = ratio_join([3.0] * scale.groups, scale.tuple_range, phases)
    found = _orders(join, quick, say, {**ORDERS, **MORE_ORDERS})
    return _by_time(*found, "Results, halves of the groups busy in turns", "results", _results)


def delays(quick: bool, say: Say) -> Figure:
    """Results by time, by how long they may wait for rows on disk."""
    sides = {f"{minutes:g} minutes": Leaving("random", PUSH, minutes) for minutes in DELAYS}
    join = _join(quick, [3.0] * _scale(quick).groups)
    found = _runs(join, quick, {**sides, "at the end": Leaving("random", PUSH)})
    _tell(say, *found)
    return _by_time(*found, "Results, by how late they may come", "results", _results)


def _scale(quick: bool) -> Scale:
    return QUICK if quick else FULL


def _join(quick: bool, ratios: Sequence[float]) -> RatioJoin:
    scale = _scale(quick)
    return ratio_join(ratios, scale.tuple_range, even(scale.rows, scale.groups))


def _pushes(quick: bool, say: Say) -> tuple[SpillCourse, Rounds]:
    """Groups leave in a random order; the sides differ in how much leaves at a time."""
    if quick not in _known:
        join = _join(quick, [3.0] * _scale(quick).groups)
        sides = {f"{percent} %": Leaving("random", percent) for percent in PUSHES}
        _known[quick] = _runs(join, quick, sides)
    _tell(say, *_known[quick])
    return _known[quick]


def _orders(join: RatioJoin, quick: bool, say: Say, orders: Mapping[str, str]) -> tuple[SpillCourse, Rounds]:
    """`PUSH` percent of the state leave at a time; the sides differ in the order in which groups leave."""
    found = _runs(join, quick, {name: Leaving(spill, PUSH) for name, spill in orders.items()})
    _tell(say, *found)
    return found


def _runs(join: RatioJoin, quick: bool, sides: Mapping[str, Leaving]) -> tuple[SpillCourse, Rounds]:
    """The run without a limit, and all sides."""
    scale = _scale(quick)
    settings = replace(PLAN, groups=scale.groups)
    unlimited = whole(join, settings, scale.batch)
    limited = replace(settings, memory=round(unlimited.peak / TIMES / HIGH))
    minute = scale.rows * APART / 1e6 / MINUTES  # in seconds of event time
    each = {
        name: replace(
            limited,
            spill_policy=side.order,
            spill_share=HIGH * side.percent / 100,
            spill_delay=None if side.delay is None else side.delay * minute,
        )
        for name, side in sides.items()
    }
    return unlimited, courses(join, each, scale.batch, scale.rounds, unlimited)


def _tell(say: Say, unlimited: SpillCourse, sides: Rounds) -> None:
    say(f"{WHOLE}: {unlimited.made} results, {unlimited.peak} bytes")
    for name, rounds in sides.items():
        say(
            f"{name}: {made(rounds):.0f} results at run time, {missing(rounds):.0f} in a clean-up of"
            f" {clean_up(rounds):.2f} CPU seconds, {median(one.cpu for one in rounds):.2f} before it, groups left"
            f" {rounds[0].pushes} times"
        )


def _by_time(
    unlimited: SpillCourse,
    sides: Rounds,
    title: str,
    unit: str,
    shown: Callable[[SpillCourse], list[float]],
    minutes: float = 5.0,
) -> Figure:
    """A figure of the first round, with a line for each side and a point every few minutes."""
    table, lines = Table(COLUMNS), dict[str, list[tuple[str | int, float]]]()
    for name, course in {WHOLE: unlimited, **{name: rounds[0] for name, rounds in sides.items()}}.items():
        a_batch, results = MINUTES / len(course.steps), _results(course)
        for number, (step, so_far) in enumerate(zip(course.steps, results, strict=True), 1):
            table.add(name, number * a_batch, int(so_far), step.held, step.left, step.cpu)
        end = course.end
        table.add(name, CLEAN_UP, course.made + end.results, end.held, end.left, end.cpu)
        points = [(number * a_batch, value) for number, value in enumerate(shown(course), 1)]
        lines[name] = [(f"{at:g}", value) for at, value in points if at % minutes < a_batch / 2]
    return Figure(table, Chart(title, "minute", unit, lines))


def _results(course: SpillCourse) -> list[float]:
    """Results so far, by batch."""
    return list(accumulate(float(step.results) for step in course.steps))


def _memory(course: SpillCourse) -> list[float]:
    return [float(step.held) for step in course.steps]
