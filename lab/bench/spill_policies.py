"""`bench spill-policies`: what it pays to let the groups leave memory that earn least.

The join of paper 004, figure 11: partition groups of which a third each has join ratio 4, 2 and 1, and a state without
windows that becomes larger than memory. The sides differ in the order in which groups leave; the rest are the defaults.
Output at run time is the results made before the streams end; the clean-up makes all others. Sides take turns batch by
batch, and all must give exactly the results of a run without a limit.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from statistics import median

from lab.bench import Result
from lab.bench.ratio_joins import even, ratio_join, thirds
from lab.bench.spill_courses import PLAN, Rounds, SpillCourse, clean_up, courses, made, missing, whole

GROUPS, RANGE, ROWS, BATCH = 300, 30_000, 360_000, 3_600
"""Partition groups, tuple range, rows of each stream, and those in a batch."""
ROUNDS = {1.5: 3, 3.0: 1}
"""How many times as large as memory the state is, and how many rounds there are. The bar of the clean-up is for the
first: where the groups with the largest join ratio do not fit in memory, all orders leave most results to it."""
OURS, OTHERS = "productivity", ("random", "most-productive")
MORE = {"random": 1.3, "most-productive": 2.0}
"""The bars: results at run time, times those of another order."""
LONGER = {"most-productive": 3.0}
"""The bars: how many times as long the clean-up after another order takes."""
_log = logging.getLogger(__name__)


def run() -> list[Result]:
    """Measure all orders."""
    join = ratio_join(thirds(GROUPS), RANGE, even(ROWS, GROUPS))
    settings = replace(PLAN, groups=GROUPS)
    unlimited = whole(join, settings, BATCH)
    results = []
    for times, rounds in ROUNDS.items():
        limit = round(unlimited.peak / times)
        sides = {name: replace(settings, memory=limit, spill_policy=name) for name in (OURS, *OTHERS)}
        found = courses(join, sides, BATCH, rounds, unlimited)
        _tell(times, found)
        results += compared(times, found, unlimited.made)
    return results


def _tell(times: float, found: Rounds) -> None:
    for name, rounds in found.items():
        _log.info(
            "state %g times memory, %s: %d results at run time in %.1f CPU seconds, %d in a clean-up of %.2f;"
            " groups left %d times",
            times,
            name,
            made(rounds),
            median(course.cpu for course in rounds),
            missing(rounds),
            clean_up(rounds),
            rounds[0].pushes,
        )


def compared(times: float, found: Rounds, results_in_all: int) -> list[Result]:
    """Least-productive-first beside the other orders: medians of the ratios of the rounds."""
    case, ours = f"state {times:g} times memory", found[OURS]
    results = [Result(case, "results at run time / all results", made(ours) / results_in_all, "")]
    bars = LONGER if times == min(ROUNDS) else {}
    for name in OTHERS:
        more, longer = _ratio(ours, found[name], "made"), _ratio(found[name], ours, "cpu")
        results += [
            Result(case, f"results at run time / {name}", more, "", *_bar(MORE.get(name), more)),
            Result(case, f"results of the clean-up, {name} / ours", _ratio(found[name], ours, "results"), ""),
            Result(case, f"CPU time of the clean-up, {name} / ours", longer, "", *_bar(bars.get(name), longer)),
            Result(case, f"elapsed time of the clean-up, {name} / ours", _ratio(found[name], ours, "seconds"), ""),
        ]
    return results


def _ratio(one: list[SpillCourse], other: list[SpillCourse], what: str) -> float:
    def of(course: SpillCourse) -> float:
        value: float = course.made if what == "made" else getattr(course.end, what)
        return value

    return median(of(a) / of(b) for a, b in zip(one, other, strict=True))


def _bar(bar: float | None, value: float) -> tuple[float | None, bool | None]:
    return bar, None if bar is None else value >= bar
