"""A chart as data, and as a PNG: lines or groups of bars over evenly spaced values of x.

matplotlib is imported only when a PNG is drawn: figures as CSV do not need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eddyline.cli.demo_picture import MISSING
from eddyline.errors import JobError

_INCHES, _DOTS = (7.6, 4.6), 80
_COLOURS = 10
"""matplotlib repeats its colours after so many lines."""

Series = Mapping[str, Sequence[tuple[str | int, float]]]
"""The (x, y) points of each line, by the line's label."""


@dataclass(frozen=True)
class Chart:
    """A chart; `level` is a value of y to compare the lines with."""

    title: str
    x: str
    y: str
    series: Series
    bars: bool = False
    log_y: bool = False
    level: float | None = None


def draw(chart: Chart, path: Path) -> None:
    """Write a PNG; JobError with a line about what to install if matplotlib is missing."""
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
    except ImportError:
        raise JobError(MISSING) from None
    figure = Figure(figsize=_INCHES, dpi=_DOTS, layout="constrained")
    axes = figure.subplots()
    if len(chart.series) > _COLOURS:
        axes.set_prop_cycle(color=[colormaps["tab20"](number) for number in range(20)])
    ticks = list(dict.fromkeys(x for points in chart.series.values() for x, _ in points))
    width = 0.8 / max(1, len(chart.series))
    for number, (label, points) in enumerate(chart.series.items()):
        at, values = [ticks.index(x) for x, _ in points], [y for _, y in points]
        if chart.bars:
            axes.bar([x - 0.4 + (number + 0.5) * width for x in at], values, width, label=label)
        else:
            axes.plot(at, values, marker="o", markersize=4, label=label)
    axes.set_xticks(range(len(ticks)), [str(x) for x in ticks], fontsize="small")
    if chart.log_y:
        axes.set_yscale("log")
    if chart.level is not None:
        axes.axhline(chart.level, color="grey", linewidth=1, linestyle="--")
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4 if chart.bars else 3, fontsize="small")
    figure.savefig(path)
