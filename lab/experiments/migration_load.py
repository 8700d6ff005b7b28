"""Intermediate tuples and results by time while a plan is changed: figures 16.5 to 16.8 of dissertation 002.

After ten seconds the plan is changed by each strategy; the old and the new plan alone run beside them. Runs are paced
(paced.py). With low load the machine has twice the CPU that the old plan needs; with high load it has less than the old
plan needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from eddyline.errors import InternalError
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.migration_length import Config
from lab.experiments.migration_runs import MOVING, NEW, OLD, PARALLEL, PAUSING, Changed, change
from lab.experiments.paced import Moment, need, paced
from lab.experiments.table import Table

LOW = Config((10, 10, 10, 10), (0.1, 0.02, 0.02), 10, 1.0)
HIGH = Config((20, 20, 20, 20), (0.2, 0.05, 0.05), 10, 2.0)
SHARES = {"low": 2.0, "high": 0.6}
"""The CPU of the machine over the need of the old plan."""
SECONDS, QUICK_SECONDS, AT, BATCH = 30.0, 14.0, 10.0, 0.25
QUICK = 0.3
"""The scale of a quick version, as a share of the full scale."""
SIDES: dict[str, tuple[str | None, tuple[str, str]]] = {
    "moving state, pausing": (PAUSING, (OLD, NEW)),
    "moving state": (MOVING, (OLD, NEW)),
    "parallel track": (PARALLEL, (OLD, NEW)),
    "old plan": (None, (OLD, NEW)),
    "new plan": (None, (NEW, NEW)),
}

_known: dict[tuple[str, bool], dict[str, Changed]] = {}
"""Runs by load, kept because two figures show the same runs."""


def figure_5(quick: bool, say: Say) -> Figure:
    """Intermediate tuples by time, with low load."""
    return _tuples("low", quick, say)


def figure_6(quick: bool, say: Say) -> Figure:
    """Results by time, with low load."""
    return _rate("low", quick, say)


def figure_7(quick: bool, say: Say) -> Figure:
    """Intermediate tuples by time, with high load."""
    return _tuples("high", quick, say)


def figure_8(quick: bool, say: Say) -> Figure:
    """Results by time, with high load."""
    return _rate("high", quick, say)


def _tuples(load: str, quick: bool, say: Say) -> Figure:
    def shown(seen: Sequence[Moment]) -> list[float]:
        return [float(moment.state_rows + moment.queued) for moment in seen]

    return _over_time(load, quick, say, "Tuples in intermediate states and rows in input queues", "tuples", shown)


def _rate(load: str, quick: bool, say: Say) -> Figure:
    def shown(seen: Sequence[Moment]) -> list[float]:
        counts = [(0.0, 0), *((moment.at, moment.results) for moment in seen)]
        return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(counts)]

    return _over_time(load, quick, say, "Output rate", "results a second", shown)


def _over_time(
    load: str, quick: bool, say: Say, title: str, unit: str, shown: Callable[[Sequence[Moment]], list[float]]
) -> Figure:
    """A figure with a line for each side, second by second."""
    sides = _runs(load, quick)
    config = LOW if load == "low" else HIGH
    cpu = SHARES[load] * need(sides["old plan"].batches, config.window)
    table = Table(("load", "side", "second", "results", "queued", "state_tuples"))
    lines: dict[str, list[tuple[str | int, float]]] = {}
    for label, run in sides.items():
        share = need(run.batches, config.window) / cpu if label.endswith("plan") else 0.0
        took = (
            f"{share:.2f} of the CPU" if share else f"{run.length:.3g} s of event time, {run.seconds:.3g} CPU seconds"
        )
        say(f"{load} load, {label}: {took}")
        seen = paced(run.batches, cpu, 1 << 62, round(run.batches[-1].end))
        for m in seen:
            table.add(load, label, m.at, m.results, m.queued, m.state_rows)
        lines[label] = [(f"{m.at:g}", value) for m, value in zip(seen, shown(seen), strict=True)]
    return Figure(table, Chart(f"{title}, {load} load", "second", unit, lines))


def _runs(load: str, quick: bool) -> dict[str, Changed]:
    if (load, quick) not in _known:
        config = LOW if load == "low" else HIGH
        config = replace(config, scale=config.scale * (QUICK if quick else 1.0))
        join = config.join((QUICK_SECONDS if quick else SECONDS) / config.window)
        runs = {label: change(join, how, AT, BATCH, config.window, plans) for label, (how, plans) in SIDES.items()}
        if len({run.results for run in runs.values()}) != 1:
            raise InternalError(f"the plans disagree: { {label: run.results for label, run in runs.items()} }")
        _known[load, quick] = runs
    return _known[load, quick]
