"""Plans that the optimizer changes while they run: figures 16.9 to 16.13 of dissertation 002.

The runs are those of `bench migration`: `plan=auto` beside an unchanged plan. Throughput is rows per CPU second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lab.bench.migration import BATCH, MANY, ONCE, SECONDS, SideMeasurements, courses
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.table import Table

STABLE = (ONCE[0],) * 2
QUICK_SECONDS = 3.0
EACH = 4
"""Batches per point of a figure."""

_known: dict[tuple[object, bool], dict[str, SideMeasurements]] = {}
"""Runs kept because two figures show the same runs."""


def figure_9(quick: bool, say: Say) -> Figure:
    """Throughput where nothing changes."""
    return _figure(STABLE, quick, say, "throughput")


def figure_10(quick: bool, say: Say) -> Figure:
    """Throughput with one change."""
    return _figure(ONCE, quick, say, "throughput")


def figure_11(quick: bool, say: Say) -> Figure:
    """Memory with one change."""
    return _figure(ONCE, quick, say, "memory")


def figure_12(quick: bool, say: Say) -> Figure:
    """Throughput with many changes."""
    return _figure(MANY, quick, say, "throughput")


def figure_13(quick: bool, say: Say) -> Figure:
    """Memory with many changes."""
    return _figure(MANY, quick, say, "memory")


def _figure(fan_outs: tuple[tuple[float, float], ...], quick: bool, say: Say, shown: str) -> Figure:
    """A figure with a line for each side."""
    key = fan_outs, quick
    if key not in _known:
        _known[key] = courses(fan_outs, QUICK_SECONDS if quick else SECONDS)
    sides, table = _known[key], Table(("side", "second", "throughput", "memory"))
    lines: dict[str, list[tuple[str | int, float]]] = {}
    for label, course in sides.items():
        speed, memory = _by_point(course.rows) / _by_point(course.cpu), _by_point(course.memory) / EACH
        seconds = [round((n + 1) * EACH * BATCH, 6) for n in range(len(speed))]
        for second, *values in zip(seconds, speed.tolist(), memory.tolist(), strict=True):
            table.add(label, second, *values)
        chosen = speed if shown == "throughput" else memory
        lines[label] = [(f"{second:g}", float(value)) for second, value in zip(seconds, chosen, strict=True)]
        for at, plan in course.changes:
            say(f"{label}: {plan} from second {at:.1f} on")
    half = len(sides["auto"].cpu) // 2
    ratio = sides["unchanged"].cpu[half:].sum() / sides["auto"].cpu[half:].sum()
    say(f"in the second half throughput is {ratio:.3f} times that of the unchanged plan")
    title, unit = ("Throughput", "rows a CPU second") if shown == "throughput" else ("State", "bytes")
    return Figure(table, Chart(title, "second", unit, lines))


def _by_point(values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = values[: len(values) // EACH * EACH].reshape(-1, EACH).sum(axis=1)
    return sums
