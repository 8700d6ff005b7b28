"""The picture of `eddyline demo`: what a row cost both sides over event time, above the stream that was asked first."""

from __future__ import annotations

from pathlib import Path

from eddyline.cli.demo_job import STREAMS, WATCHED, phases
from eddyline.cli.demo_sides import Side
from eddyline.errors import JobError
from eddyline.extras import install

MISSING = f"a PNG needs matplotlib, which is not installed: {install('plots')}"
_INCHES, _DOTS = (9.0, 5.6), 100


def draw(seconds: int, adaptive: Side, fixed: Side, path: Path) -> None:
    """Writes a PNG; JobError with a line about what to install if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise JobError(MISSING) from None
    figure = Figure(figsize=_INCHES, dpi=_DOTS, layout="constrained")
    costs, routes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    for side, label in (adaptive, "adaptive order"), (fixed, "fixed order"):
        batches = side.batches[1:]  # the first compiles and loads code
        costs.step([b.end for b in batches], [b.work.cpu_per_million for b in batches], where="pre", label=label)
    for phase in phases(seconds):
        for axes in (costs, routes):
            axes.axvline(phase.begin, color="grey", linewidth=1, linestyle="--")
        costs.annotate(
            phase.what.replace(", and", ",\nand"),
            (phase.begin, 1.0), (4, -4), xycoords=("data", "axes fraction"), textcoords="offset points",
            va="top", fontsize="x-small", color="dimgrey",
        )  # fmt: skip
    costs.set(ylabel="CPU seconds a million rows", title="A join of four streams whose data drifts", xlim=(0, seconds))
    costs.set_ylim(0, costs.get_ylim()[1] * 1.25)
    costs.grid(axis="y", alpha=0.3)
    costs.legend(loc="center left", fontsize="small")
    for batch in adaptive.batches:
        bottom = 0.0
        for number, name in enumerate(STREAMS):
            share = batch.first.get(name, 0) / max(1, sum(batch.first.values()))
            routes.bar(batch.begin, share, batch.end - batch.begin, bottom, align="edge", color=f"C{number}")
            bottom += share
    for number, name in enumerate(STREAMS):
        if number != WATCHED:
            routes.bar(0, 0, color=f"C{number}", label=name)
    routes.legend(loc="center left", fontsize="x-small")
    routes.set(xlabel="event time, seconds", title=f"the stream that {STREAMS[WATCHED]} asked first", ylabel="share")
    figure.savefig(path)
