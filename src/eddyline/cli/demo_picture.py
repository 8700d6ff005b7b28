"""The picture of `eddyline demo`: rows a second over event time for each run, above the route taken."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from eddyline.cli.demo_job import STREAMS, WATCHED, phases
from eddyline.cli.demo_runs import Demo, Ran
from eddyline.errors import JobError
from eddyline.experiments.chart import MISSING

_INCHES, _DOTS = (9.0, 5.6), 100
_POINTS = 30
"""The number of stretches of event time with a rate each; fewer if there are fewer batches."""


def draw(demo: Demo, path: Path) -> None:
    """Writes a PNG; JobError with a line about what to install if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise JobError(MISSING) from None
    figure = Figure(figsize=_INCHES, dpi=_DOTS, layout="constrained")
    rates, routes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    for ran, label, until in (
        (demo.adaptive, "Eddyline: routes follow the data", demo.seconds),
        (demo.fixed, f"a fixed order, first {demo.until} s", demo.until),
    ):
        points = _points(ran, until)
        rates.step([x for x, _ in points], [y for _, y in points], where="pre", label=label)
    if demo.own is not None:
        label = f"Spark's own joins, first {demo.own.until} s"
        rates.plot([0, demo.own.until], [demo.own.rate] * 2, linewidth=3, label=label)
    for phase in phases(demo.seconds):
        for axes in (rates, routes):
            axes.axvline(phase.begin, color="grey", linewidth=1, linestyle="--")
        rates.annotate(
            phase.what.replace(": ", ":\n").replace(", and", ",\nand"),
            (phase.begin, 1.0), (4, -4), xycoords=("data", "axes fraction"), textcoords="offset points",
            va="top", fontsize="x-small", color="dimgrey",
        )  # fmt: skip
    rates.set(ylabel="rows a second", title="A join of four streams whose data drifts", xlim=(0, demo.seconds))
    rates.set_ylim(0, rates.get_ylim()[1] * 1.25)
    rates.yaxis.set_major_formatter("{x:,.0f}")
    rates.grid(axis="y", alpha=0.3)
    rates.legend(loc="lower right", fontsize="small")
    names = list(dict.fromkeys(m.route for m in demo.adaptive.marks if " -> " in m.route))
    for begin, end, route in _stretches(demo.adaptive, demo.seconds):
        if route in names:
            routes.barh(names.index(route), end - begin, left=begin, height=0.7, color=f"C{names.index(route) % 10}")
    routes.set_yticks(range(len(names)), names, fontsize="x-small")
    routes.set(xlabel="event time, seconds", title=f"the route of {STREAMS[WATCHED]}")
    figure.savefig(path)


def _points(ran: Ran, until: int) -> list[tuple[float, float]]:
    """(end of a stretch, rows a second in it), no stretch shorter than a batch."""
    events = sorted({m.event for m in ran.marks if 0 < m.event <= until} | {float(until)})
    ends = [0.0]
    for event in events:
        if event - ends[-1] >= until / _POINTS or event == until:
            ends.append(event)
    points = [(end, ran.rate(begin, end)) for begin, end in pairwise(ends)]
    return [(0.0, points[0][1]), *points]


def _stretches(ran: Ran, until: int) -> list[tuple[float, float, str]]:
    """(begin, end, route) of batches."""
    marks = [(0.0, ""), *((m.event, m.route) for m in ran.marks)]
    return [(a[0], min(b[0], until), b[1]) for a, b in pairwise(marks) if b[0] > a[0]]
